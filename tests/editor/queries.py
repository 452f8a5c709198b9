"""The example queries of the project, and marked texts for tests of places."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

EXAMPLES = [
    path
    for folder in ("streams", "benchmarks", "tests")
    for path in sorted((ROOT / folder).rglob("*.rq"))
    if "w3c" not in path.parts and not path.name.endswith(".lift.rq")
]

QUERY = """\
# Two rooms. \U0001f600
PREFIX : <http://example/>
PREFIX t: <http://traffic.example/ns#>
SELECT ?room (AVG(?high) AS ?mean)
WITHIN 5 MINUTES
AFTER MATCH SKIP TO FIRST Low
FROM STREAM S <http://example/readings>
FROM NAMED <http://example/kb>
WHERE {
  SEQ(Low: High+[; 5 SECONDS] UNTIL Off)
  DEFINE GPM Low ON S { ?r :room ?room ; :celsius ?low FILTER(?low < 20) }
  DEFINE GPM High ON S {
    ?q :room ?room ; :celsius ?high
    GRAPH <http://example/kb> { ?room a t:Street }
    BIND(?high + 1 AS ?more) FILTER(TIMESTAMP(Low) < ?more)
  }
  DEFINE GPM Off ON S { ?o :off ?room }
}
"""


def marked(text: str) -> tuple[str, int]:
    """A text with one mark ‸, without it, and the offset of the mark."""
    before, mark, after = text.partition("‸")
    assert mark
    return before + after, len(before)


def at(text: str, nth: int = 0) -> int:
    """The offset of the nth occurrence of a text in QUERY."""
    place = -1
    for _ in range(nth + 1):
        place = QUERY.index(text, place + 1)
    return place
