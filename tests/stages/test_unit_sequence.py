"""Stage 2 is made when a match is possible, and answers as if it had been there before."""

from __future__ import annotations

from spaseq.automaton.run.event_rows import EventRows
from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_graph import EventGraph
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.unit_sequence import EMPTY_STATE
from tests.stages.single_query import SingleQuery

PLAN = compile_query(
    "SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://e/s> "
    "WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x <http://e/a> ?y } "
    "DEFINE GPM B ON S { ?x <http://e/b> ?y } }"
)


class Late:
    """A late stage; `made` are the stages that it has made."""

    def __init__(self) -> None:
        self.made: list[SequenceStage] = []
        self.stage = SingleQuery(PLAN)
        self.stage.unit._make = self._make

    def _make(self) -> SequenceStage:
        self.made.append(SequenceStage(PLAN))
        return self.made[-1]


def rows(*events: tuple[int, str]) -> SolutionBatch:
    """The solutions of events, each a time (ms) and a predicate."""
    triples = [(ms, None, [("<http://e/x>", f"<http://e/{p}>", '"1"')]) for ms, p in events]
    batch = batch_from_events("http://e/s", triples, InstantCounter())
    return PatternStage(PLAN, KnowledgeBase.empty()).match(batch)


def test_no_stage_is_made_without_rows() -> None:
    late = Late()
    late.stage.push(rows((1, "other")))
    late.stage.unit.use_values(((0, KnowledgeBase.empty()),))
    assert not late.stage.advance(1000) and not late.stage.partials() and not late.stage.close()
    assert (late.stage.unit.suppressed, late.stage.live_runs(), late.stage.waits()) == (0, 0, False)
    assert late.stage.snapshot() == EMPTY_STATE
    assert not late.made


def test_rows_of_a_match_make_it() -> None:
    late = Late()
    late.stage.advance(1000)
    late.stage.push(rows((2000, "a")))
    assert not late.stage.advance(2000) and late.stage.waits() and not late.made
    late.stage.push(rows((3000, "b")))
    assert len(late.stage.advance(3000)) == 1
    assert len(late.made) == 1


def test_partial_matches_are_counted_in_it() -> None:
    late = Late()
    late.stage.push(rows((2000, "a")))
    late.stage.advance(2000)
    assert late.stage.live_runs() == 1 and len(late.made) == 1


def test_rows_leave_with_their_window() -> None:
    late = Late()
    late.stage.push(rows((2000, "a")))
    late.stage.advance(2000)
    late.stage.advance(62_001)
    assert not late.stage.waits()
    late.stage.push(rows((62_002, "b")))
    late.stage.advance(62_002)
    assert not late.made


def test_single_events_wait_for_nothing() -> None:
    late, event = Late(), SingleEventStage(PLAN, PatternStage(PLAN, KnowledgeBase.empty()))
    late.stage.push(rows((2000, "a")))
    late.stage.advance(2000)
    graph = EventGraph([("<http://e/x>", "<http://e/b>", '"1"')])
    found = event.match("http://e/s", 3000, 0, None, graph)
    assert isinstance(found, EventRows)
    late.stage.push(found)
    assert len(late.stage.advance(3000)) == 1


def test_a_snapshot_is_gone_on_from() -> None:
    first, second, third = Late(), Late(), Late()
    second.stage.restore(first.stage.snapshot())
    assert not second.made
    second.stage.push(rows((2000, "a")))
    second.stage.advance(2000)
    third.stage.restore(second.stage.snapshot())
    third.stage.push(rows((3000, "b")))
    assert len(third.stage.advance(3000)) == 1


def test_the_states_of_a_stage_that_was_not_made() -> None:
    found = Late().stage.live_states()
    assert found == SequenceStage(PLAN).live_states()
