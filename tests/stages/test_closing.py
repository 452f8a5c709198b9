"""The end of all streams gives the answers that a watermark behind all events gives."""

from __future__ import annotations

import pytest

from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.stages.sequence import SequenceStage

PLAN = compile_query(
    "SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://e/s> FROM NAMED <http://e/g> "
    "WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x <http://e/a> ?y } DEFINE GPM B ON S { "
    "?x <http://e/b> ?z OPTIONAL { GRAPH <http://e/g> { ?y <http://e/n> ?n FILTER(?n != ?y) } } } }"
)


@pytest.mark.parametrize("watermarks", [[], [9], [12], [20]])
def test_events_wait_before_and_behind_a_change_of_the_knowledge_base(
    watermarks: list[int],
) -> None:
    empty = KnowledgeBase.empty()
    stage = SequenceStage(PLAN, knowledge=empty)
    stage.use_values(((EARLIEST, empty), (10, KnowledgeBase.empty())))
    events = [(4, "a"), (5, "b"), (14, "a"), (15, "b")]
    triples = [(ms, None, [("<http://e/x>", f"<http://e/{p}>", '"1"')]) for ms, p in events]
    batch = batch_from_events("http://e/s", triples, InstantCounter())
    stage.push(PatternStage(PLAN, empty).match(batch))
    answers = [answer for time in watermarks for answer in stage.advance(time)]
    assert [answer.end[0] for answer in [*answers, *stage.close()]] == [5, 15]
