"""The examples of the language page as data: (stream, sequence, options, answers)."""

from __future__ import annotations

from dataclasses import dataclass

S = "http://example/s"
VALUE = "http://example/value"
_PREFIX = "PREFIX : <http://example/>\n"


@dataclass(frozen=True)
class Row:
    """One row of a table; `values` are one event each, a second apart from 0 on one stream."""

    values: str
    sequence: str
    answers: str  # separated by " · ", in order
    within: str = "1 HOURS"

    @property
    def id(self) -> str:
        return f"{self.values} {self.sequence}".replace(" ", "_")


NUMBERS = [
    Row("14 88 11 10 16", "A; B+; C",
        "14 11 16 · 14 11 10 16 · 88 11 16 · 88 11 10 16 · 11 10 16"),
    Row("14 10 16", "A, B?, C", "14 10 16 · 10 16"),
    Row("14 88 16", "A; B!; C", "14 16 · 88 16"),
    Row("14 88 16", "A, B!, C", "88 16"),
    Row("14 12 11 16", "A, B+, C", "14 12 11 16 · 12 11 16"),
]  # fmt: skip
"""A: any; B: value < A's; C: value = 16."""

LETTERS = [
    Row("a1 a2 b1 b2 c", "A; B", "a1 b1 · a2 b1"),
    Row("a1 a2 b1 b2 c", "A: B", "a1 b1 · a1 b2 · a2 b1 · a2 b2"),
    Row("a1 a2 b1 b2 c", "A, B", "a2 b1"),
    Row("a1 a2 b1 b2 c", "A: B: C", "a1 b1 c · a1 b2 c · a2 b1 c · a2 b2 c"),
    Row("a1 a2 b1 b2 c", "A: B+: C",
        "a1 b1 c · a1 b2 c · a1 b1 b2 c · a2 b1 c · a2 b2 c · a2 b1 b2 c"),
    Row("a1 a2 b1 b2 c", "(A AND C)", "a1 c · a2 c"),
    Row("a1 a2 b1 b2 c", "B!; C", "", "1 SECONDS"),
    Row("a1 a2 b1 b2 c", "C; B!", "c", "1 SECONDS"),
]  # fmt: skip
"""Each letter is matched by a GPM of its own, without correlation."""


def number_query(row: Row) -> str:
    """The query of a row of NUMBERS."""
    return f"""{_PREFIX}SELECT * WITHIN {row.within} FROM STREAM S <{S}>
    WHERE {{ SEQ({row.sequence})
      DEFINE GPM A ON S {{ ?e1 :value ?a }}
      DEFINE GPM B ON S {{ ?e2 :value ?b FILTER(?b < ?a) }}
      DEFINE GPM C ON S {{ ?e3 :value ?c FILTER(?c = 16) }} }}"""


def letter_query(row: Row) -> str:
    """The query of a row of LETTERS."""
    gpms = "\n".join(
        f'DEFINE GPM {x} ON S {{ ?{x}e :value ?{x} FILTER(STRSTARTS(?{x}, "{x.lower()}")) }}'
        for x in "ABC"
    )
    return f"""{_PREFIX}SELECT * WITHIN {row.within} FROM STREAM S <{S}>
    WHERE {{ SEQ({row.sequence}) {gpms} }}"""


def nquads(values: str) -> str:
    """A stream of a row as N-Quads."""
    lines = []
    for i, value in enumerate(values.split()):
        literal = value if not value.isdigit() else f"{value}"
        term = (
            f'"{literal}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            if value.isdigit()
            else f'"{literal}"'
        )
        lines.append(f"<http://example/e{i}> <{VALUE}> {term} <http://example/g{i}> .")
        time = f"1970-01-01T00:00:{i:02}Z"
        lines.append(
            f"<http://example/g{i}> <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{time}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
        )
    return "\n".join(lines) + "\n"
