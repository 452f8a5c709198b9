"""A used stage restores a snapshot with solutions that came one by one."""

from __future__ import annotations

import pytest

from spaseq.automaton.run.event_rows import EventRows
from spaseq.compile import CompileOptions, compile_query
from spaseq.stages.sequence import SequenceStage

_HEAD = (
    "SELECT * WITHIN 1 MINUTES FROM STREAM S <http://e/s> SEQ(A; B) { "
    "DEFINE GPM A ON S { ?a <http://e/p> ?v } "
)
QUERIES = {
    "sets": _HEAD + "DEFINE GPM B ON S { ?b <http://e/q> ?w } }",
    "runs": _HEAD + "DEFINE GPM B ON S { ?b <http://e/q> ?w FILTER (?w > ?v) } }",
}


def _push(stage: SequenceStage, gpm: int, subject: str, time: int) -> list[str]:
    values = (f"<http://e/{subject}>", f'"{time}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    stage.push(EventRows(0, time, 0, None, [(gpm, values)]))
    return [dict(answer.bindings)["a"] for answer in stage.advance(time)]


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_match_has_the_solutions_of_the_snapshot(query: str) -> None:
    plan = compile_query(query, "q", options=CompileOptions(pushed=True))
    one, other = SequenceStage(plan), SequenceStage(plan)
    assert _push(one, 0, "mine", 1) == _push(other, 0, "another", 1) == []
    other.restore(one.snapshot())
    assert _push(other, 1, "last", 2) == ["<http://e/mine>"]
