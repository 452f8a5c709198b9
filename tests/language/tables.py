"""The examples of the language reference as data: (stream, sequence, options, answers)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

S = "http://example/s"
VALUE = "http://example/value"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_PREFIX = "PREFIX : <http://example/>\n"


@dataclass(frozen=True)
class Row:
    """One row of a table; each value is an event on one stream, one per second from 0."""

    values: str
    sequence: str
    answers: str  # separated by " · ", in order
    within: str = "1 HOURS"
    select: str = ""
    after_match: str = ""

    @property
    def id(self) -> str:
        parts = self.values, self.select, self.sequence, self.after_match
        return " ".join(filter(None, parts)).replace(" ", "_")

    @property
    def expected(self) -> list[str]:
        return self.answers.split(" · ") if self.answers else []


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
"""Each letter has a separate GPM, without correlation."""


_AB, _ABC = "a1 a2 b1 b2 c", "a1 b1 c1"
_PAIRS = "a1 b1 · a2 b1 · a1 b2 · a2 b2"

SELECTION = [
    Row(_AB, "A: B", _PAIRS, select="ALL"),
    Row(_AB, "A: B", "a1 b1 · a1 b2", select="NEXT"),
    Row(_AB, "A: B", "a2 b1 · a2 b2", select="LAST"),
    Row(_AB, "A: B", _PAIRS, select="MAX"),
    Row(_AB, "A: B", "a2 b1", select="STRICT"),
    Row(_AB, "A: B+: C", "a1 b1 b2 c", select="NEXT"),
    Row(_AB, "A: B+: C", "a2 b1 b2 c", select="LAST"),
    Row(_AB, "A: B+: C", "a1 b1 b2 c · a2 b1 b2 c", select="MAX"),
    Row(_AB, "A: B+: C", "a2 b1 b2 c", select="STRICT"),
    Row(_AB, "A: B", _PAIRS, after_match="NO SKIP"),
    Row(_AB, "A: B", "a1 b1 · a2 b1", after_match="CONSUME"),
    Row(_AB, "A: B", "a1 b1 · a2 b1", after_match="SKIP TO NEXT EVENT"),
    Row(_AB, "A: B", "a1 b1", after_match="SKIP PAST LAST EVENT"),
    Row(_AB, "A: B", "a1 b1", after_match="SKIP TO FIRST B"),
    Row(_AB, "A: B", "a1 b1 · a2 b1 · a2 b2", after_match="SKIP TO LAST A"),
    Row(_AB, "A: B+: C", "a1 b1 b2 c", after_match="SKIP TO LAST B"),
    Row(_AB, "A: B", "a2 b1 · a2 b2", select="LAST", after_match="SKIP TO LAST A"),
    Row(_AB, "A: B", "a2 b1", select="LAST", after_match="CONSUME"),
    Row(_ABC, "(A: B | B: C)", "a1 b1", after_match="CONSUME"),
    Row(_ABC, "(A: B | B: C)", "a1 b1 · b1 c1", after_match="SKIP TO NEXT EVENT"),
    Row(_ABC, "(A: B | B: C)", "a1 b1", after_match="SKIP PAST LAST EVENT"),
    Row(_ABC, "(A: B | B: C)", "a1 b1 · b1 c1", after_match="SKIP TO FIRST B"),
    Row(_ABC, "(A: B | B: C)", "a1 b1 · b1 c1", after_match="SKIP TO FIRST C"),
]
"""Selection strategies, derived by hand: letters as above, answers in order."""


def row_query(row: Row, stream: str = S) -> str:
    """The query of any row, over a stream with this IRI."""
    return number_query(row, stream) if row in NUMBERS else letter_query(row, stream)


def number_query(row: Row, stream: str = S) -> str:
    """The query of a row of NUMBERS."""
    return f"""{_PREFIX}SELECT * WITHIN {row.within} FROM STREAM S <{stream}>
    WHERE {{ SEQ({row.sequence})
      DEFINE GPM A ON S {{ ?e1 :value ?a }}
      DEFINE GPM B ON S {{ ?e2 :value ?b FILTER(?b < ?a) }}
      DEFINE GPM C ON S {{ ?e3 :value ?c FILTER(?c = 16) }} }}"""


def letter_query(row: Row, stream: str = S) -> str:
    """The query of a row of LETTERS or SELECTION."""
    gpms = "\n".join(
        f'DEFINE GPM {x} ON S {{ ?{x}e :value ?{x} FILTER(STRSTARTS(?{x}, "{x.lower()}")) }}'
        for x in "ABC"
    )
    skip = f"AFTER MATCH {row.after_match}" if row.after_match else ""
    return f"""{_PREFIX}SELECT {row.select} * WITHIN {row.within} {skip}
    FROM STREAM S <{stream}> WHERE {{ SEQ({row.sequence}) {gpms} }}"""


def nquads(values: str) -> str:
    """A stream of a row as N-Quads."""
    return "".join(event(value, second) for second, value in enumerate(values.split()))


def event(value: str, second: int) -> str:
    """One event as N-Quads; its graph is named after its second."""
    graph = f"<http://example/g{second}>"
    term = f'"{value}"^^<{_XSD}integer>' if value.isdigit() else f'"{value}"'
    time = f'"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"^^<{_XSD}dateTime>'
    return (
        f"<http://example/e{second}> <{VALUE}> {term} {graph} .\n"
        f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
    )
