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
    Row("a1 b1 c1 b2 c2", "A: (B; C | C)", "a1 b1 c1 · a1 c1 · a1 b2 c2 · a1 c2"),
    Row("a1 b1 c1 b2", "(A; B | A, C | A: C)", "a1 b1 · a1 c1"),
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
    Row("b1 b2 b3 c1", "B+[:]; C", "b1 b2 b3 c1", select="MAX"),
    Row("b1 c1 b2 c2", "B+; C", "b1 c1 · b1 b2 c2", select="MAX"),
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


_SIX = "a1 b1 b2 x b3 c"
_ALL_BUT_ONE = "a1 b1 b2 b3 c · a1 b1 b2 c"

LOOPS = [
    Row(_SIX, "A; B+; C", f"{_ALL_BUT_ONE} · a1 b1 c"),
    Row(_SIX, "A; B+[:]; C", f"{_ALL_BUT_ONE} · a1 b1 b3 c · a1 b1 c"),
    Row(_SIX, "A: B+[,]; C", "a1 b1 b2 c · a1 b1 c · a1 b2 c · a1 b3 c"),
    Row(_SIX, "A; B++; C", "a1 b1 b2 b3 c"),
    Row(_SIX, "A: B++[,]; C", "a1 b1 b2 c · a1 b2 c · a1 b3 c"),
    Row(_SIX, "A; B?+; C", "a1 b1 c"),
    Row(_SIX, "A; B+ UNTIL U; C", "a1 b1 b2 c · a1 b1 c"),
    Row(_SIX, "A; (B | C)+ UNTIL U", "a1 b1 · a1 b1 b2"),
    Row(_SIX, "A; B++ UNTIL U; C", "a1 b1 b2 c"),
    Row(_SIX, "A; U!; B?; C", "a1 b1 c"),
    # Own operators.
    Row("a1 b1 c1 x b2 c2", "A; (B, C)+[;]", "a1 b1 c1 · a1 b1 c1 b2 c2"),
    Row("a1 b1 c1 x b2 c2", "A; (B, C)+", "a1 b1 c1 · a1 b1 c1 b2 c2"),
    Row("a1 b1 c1 x b2 c2", "A, (B, C)+", "a1 b1 c1"),
    Row("a1 b1 c1 x b2 c2", "A, (B, C)+[;]", "a1 b1 c1 · a1 b1 c1 b2 c2"),
    Row("b1 c1 x c2", "(B?, C){2}[;]", ""),
    Row("b1 c1 c2 b2 c3", "(B?, C){2}[;]", "b1 c1 c2 · c1 c2 · b1 c1 b2 c3 · c1 b2 c3 · c2 b2 c3"),
    Row("a1 b1 b2 c1 b3 c2", "A: (B+, C){2}[;]",
        "a1 b1 b2 c1 b3 c2 · a1 b2 c1 b3 c2"),
    Row("a1 b1 b2 b3 b4", "A; B{2}[:]", "a1 b1 b2 · a1 b1 b3 · a1 b1 b4"),
    Row("a1 b1 x x b2", "A; B+[; 2 SECONDS]", "a1 b1"),
    Row("a1 b1 x b2", "A; B+[; 2 SECONDS]", "a1 b1 · a1 b1 b2"),
    # Greedy loops. One repetition more may end where the next step begins, and not later.
    Row("a1 b1 c1 b2 c2", "A; B++; C", "a1 b1 c1 · a1 b1 b2 c2"),
    Row("a1 b1 c1 b2 c2", "A; B++: C", "a1 b1 c1 · a1 b1 b2 c2"),
    Row("a1 b1 b2 b3 c", "A; B{1,2}+; C", "a1 b1 b2 c"),
    Row("a1 b1 b2 b3 c", "A; B{2}+; C", "a1 b1 b2 c"),
    Row("a1 c1 b1 c2", "A; B*+; C", "a1 c1 · a1 b1 c2"),
    Row("a1 b1 x b2", "A; B++", "a1 b1 b2"),
    Row("a1 b1 x b2", "A, B++", "a1 b1"),
    Row("a1 b1 x b2 b3", "A; B++", "a1 b1 b2", "3 SECONDS"),
    Row("a1 b1 b2 b3", "A; B{1,2}+", "a1 b1 b2"),
    Row("a1 b1 b2 x b3", "A; B{1,3}+[,]", "a1 b1 b2"),
    Row("a1 b1 b2 b3", "A: B{1,2}+[,]", "a1 b1 b2 · a1 b2 b3 · a1 b3"),
    Row("a1 b1 x b2 b3", "A; B++ UNTIL U", "a1 b1"),
    Row("b1 b2 a1 b3 a2", "B++; A", "b1 b2 a1 · b2 a1 · b1 b2 b3 a2 · b2 b3 a2 · b3 a2"),
    Row("a1 b1 c1 b2 x c2 b3", "A; (B; C)++", "a1 b1 c1 b2 c2"),
    Row("a1 b1 b2 c", "A; (B | (B; B))++; C", "a1 b1 b2 c"),
    Row("a1 b1 b2 b3 c", "A: B++; C", "a1 b1 b2 b3 c · a1 b1 b3 c · a1 b2 b3 c · a1 b3 c"),
    Row("a1 b1 b2 x c1", "A; (B+ UNTIL U; C)++", "a1 b1 b2 c1 · a1 b1 c1"),
    Row("a1 b1 x b2 c2", "A; (B{2} UNTIL U; C)*+", "a1"),
    # UNTIL. Without a step before it, it counts from the instant of the first repetition.
    Row("a1 x b1", "A; B+ UNTIL U", ""),
    Row("x b1 b2 x b3", "B{2,} UNTIL U", "b1 b2"),
    Row("a1 x c1", "A; B* UNTIL U; C", "a1 c1"),
    Row("a1 x a2 b1 c1", "A+; B*+ UNTIL U; C", "a1 a2 b1 c1 · a1 c1 · a2 b1 c1"),
    Row("a1 b1 x c1 b2 c2", "A; (B; C)+ UNTIL U", "a1 b1 c1"),
    Row("a1 b1 x b2 c", "A; B? UNTIL U; C", "a1 b1 c · a1 c"),
    Row("a1 x b2 c", "A; B? UNTIL U; C", "a1 c"),
    Row("a1 b1 x b2 c", "A: B+[:] UNTIL U; C", "a1 b1 c"),
    # Negation beside a step that may be empty.
    Row("a1 x c1 b1", "A; U!; C?; B", ""),
    Row("a1 c1 x b1", "A; U!; C?; B", "a1 c1 b1"),
    Row("x a1 b1", "A?; U!; B", "a1 b1"),
    Row("b1 x a1", "B; U!; A?", ""),
    Row("a1 b1 x", "A; B?; U!", "", "9 SECONDS"),
    Row("a1 b1 x", "A; B?; U!", "a1 · a1 b1", "1 SECONDS"),
    Row("a1 c1 x b1", "A; (C?; U!; B)", ""),
    Row("a1 x c1 b1", "A; (C?; U!; B)", "a1 c1 b1"),
]  # fmt: skip
"""Loops and negations beside steps that may be empty, derived by hand: letters, and U is x."""


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
    """The query of a row of LETTERS, SELECTION or LOOPS."""
    gpms = "\n".join(
        f'DEFINE GPM {x} ON S {{ ?{x}e :value ?{x} FILTER(STRSTARTS(?{x}, "{x.lower()}")) }}'
        for x in ("ABCU" if "U" in row.sequence.replace("UNTIL", "") else "ABC")
    ).replace('STRSTARTS(?U, "u")', 'STRSTARTS(?U, "x")')
    skip = f"AFTER MATCH {row.after_match}" if row.after_match else ""
    return f"""{_PREFIX}SELECT {row.select} * WITHIN {row.within} {skip}
    FROM STREAM S <{stream}> WHERE {{ SEQ({row.sequence}) {gpms} }}"""


def nquads(values: str) -> str:
    """A stream of a row as N-Quads."""
    return "".join(event(value, second) for second, value in enumerate(values.split()))


def event(value: str, second: int) -> str:
    """One event as N-Quads; its graph is named after its second."""
    graph = f"<http://example/g{second}>"
    time = f'"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"^^<{_XSD}dateTime>'
    return (
        triples(value, second).replace(" .", f" {graph} .")
        + f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
    )


def triples(value: str, second: int) -> str:
    """The triples of one event as N-Triples."""
    term = f'"{value}"^^<{_XSD}integer>' if value.isdigit() else f'"{value}"'
    return f"<http://example/e{second}> <{VALUE}> {term} .\n"
