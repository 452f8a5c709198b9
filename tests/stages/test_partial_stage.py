"""Partial matches that are compared as row numbers are those that are compared as matches."""

from __future__ import annotations

from random import Random
from unittest.mock import Mock, patch

import numpy as np
import pytest

from spaseq.algebra.answers import PartialAnswer
from spaseq.automaton.batch.match_builder import among
from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.query_plan import CompileOptions, QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.stages.live_matches import LiveMatches
from spaseq.stages.numbered_levels import NumberedLevels
from spaseq.stages.sequence import SequenceStage
from tests.sizes import sizes

STREAMS = ("http://e/s", "http://e/t")
NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def plan_of(sequence: str, partition: str, within: int = 20) -> QueryPlan:
    gpms = "".join(f"DEFINE GPM {n} ON S, T {{ ?{n} <http://e/{n}> ?k }} " for n in "ABC")
    gpms += (
        "DEFINE GPM R ON S, T { ?R <http://e/B> ?r . FILTER (!BOUND(PREV(?r)) || ?r >= PREV(?r)) } "
    )
    gpms += "DEFINE GPM H ON S, T { ?H <http://e/C> ?h . FILTER (?h > ?k) } "
    gpms += "DEFINE GPM L ON S, T { ?L <http://e/B> ?l } DEFINE GPM M ON S { ?M <http://e/C> ?m } "
    query = f"""SELECT * WITHIN {within} MILLISECONDS {partition}
    FROM STREAM S <{STREAMS[0]}> FROM STREAM T <{STREAMS[1]}> SEQ({sequence}) {{ {gpms} }}"""
    return compile_query(query, options=CompileOptions(partial=True))


def found(plan: QueryPlan, seed: int) -> list[PartialAnswer]:
    """The partial matches of random events with many ties, in batches, with restarts."""
    random, stage = Random(seed), SequenceStage(plan)
    matcher = PatternStage(plan, KnowledgeBase.empty())
    counters = [InstantCounter(), InstantCounter()]
    partials: list[PartialAnswer] = []
    for batch in range(6):
        for stream, counter in zip(STREAMS, counters, strict=True):
            events = []
            for time in sorted(random.choices(range(20 * batch, 20 * batch + 20), k=12)):
                names = random.sample("ABC", random.randint(1, 2))
                text = "".join(
                    f"_:x <http://e/{n}> {NUMBER.format(random.randint(1, 3))} .\n" for n in names
                )
                events.append((time, None, triples_of(text)))
            stage.push(matcher.match(batch_from_events(stream, events, counter)))
        stage.advance(20 * batch + 19)
        partials += stage.partials()
        if random.random() < 0.3:
            other = SequenceStage(plan)
            other.restore(stage.snapshot())
            stage = other
    stage.close()
    return partials + stage.partials()


ROWS = ["A; B; C", "A: B; C", "A, B: C", "A: B: M!", "M!; A; B", "A; M!; B"]
LONG = [sequence for sequence in ROWS if "M!; A" not in sequence]
LOOPS = ["A; L+; C", "A: L+[:]; M", "A; L++; C", "A: L*; C", "A; L?; C", "(A: L)+; C", "L+; A; L"]
REGISTERS = ["A; R+; C", "A: H; B", "A: R+; H", "M!; A; H; B", "A; (H | L); C", "A: L+; A"]


@sizes(1, 3, 6)
@pytest.mark.parametrize("sequence", ROWS + LOOPS + REGISTERS)
def test_numbers_and_matches_agree(sequence: str, examples: int) -> None:
    _agree(plan_of(sequence, "", 20 if sequence in LONG else 4), examples)


@sizes(1, 3, 6)
@pytest.mark.parametrize("sequence", ROWS)
def test_numbers_and_matches_agree_with_a_partition(sequence: str, examples: int) -> None:
    if "M" not in sequence:
        _agree(plan_of(sequence, "PARTITION BY (?k)"), examples)


@pytest.mark.each_once
@sizes(1, 3, 6)
@pytest.mark.parametrize("partition", ["", "PARTITION BY (?k)"])
@pytest.mark.parametrize("sequence", LONG)
def test_numbers_and_matches_agree_if_windows_close_in_the_batch(
    sequence: str, partition: str, examples: int
) -> None:
    if not partition or "M" not in sequence:
        _agree(plan_of(sequence, partition, 5), examples)


def test_matches_whose_windows_close_in_the_batch_do_not_wait() -> None:
    with patch.object(LiveMatches, "add", autospec=True) as add:
        assert _matches_added(plan_of("A; B; C", "", 3), add) == 0


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [
        ([[1], [4]], [[4], [5]], [False, True]),
        ([[1, 2, 3]], [[1, 2, 4], [1, 2, 3]], [True]),
        ([[0, 2**40, 5], [0, 2**40, 6]], [[0, 2**40, 6]], [False, True]),  # a wide span
        ([[7, 7]], [], [False]),
        ([], [[7, 7]], []),
    ],
)
def test_rows_among_others(
    some: list[list[int]], others: list[list[int]], expected: list[bool]
) -> None:
    width = max(map(len, some + others))
    both = [np.array(rows, np.int64).reshape(-1, width) for rows in (some, others)]
    assert among(*both).tolist() == expected


def _agree(plan: QueryPlan, examples: int) -> None:
    for seed in range(examples):
        numbered = found(plan, seed)
        with patch.object(NumberedLevels, "of", return_value=None):
            assert numbered == found(plan, seed)
        assert numbered


@pytest.mark.parametrize("sequence", ["A; B; C", "A; L+; C", "A; R+; C", "A; (B | L)"])
def test_few_matches_are_made(sequence: str) -> None:
    """Matches of all steps, and those that become longer in the same batch, are not made."""
    with patch.object(LiveMatches, "add", autospec=True) as add:
        assert _matches_added(plan_of(sequence, ""), add) == 1


def _matches_added(plan: QueryPlan, add: Mock) -> int:
    stage = SequenceStage(plan)
    counter, matcher = InstantCounter(), PatternStage(plan, KnowledgeBase.empty())
    events = [
        (time, None, triples_of(f"_:x <http://e/{n}> {NUMBER.format(1)} ."))
        for time, n in enumerate("ABCBCA")
    ]
    stage.push(matcher.match(batch_from_events(STREAMS[0], events, counter)))
    stage.advance(10)
    return len(add.mock_calls)


def test_counts_are_kept_only_for_partitions_that_have_begun() -> None:
    """Under WITHIN n EVENTS, instants at which no match begins are forgotten."""
    query = """SELECT * WITHIN 3 EVENTS PARTITION BY (?k) FROM STREAM S <http://e/s> SEQ(A; B)
    { DEFINE GPM A ON S { ?A <http://e/A> ?k } DEFINE GPM B ON S { ?B <http://e/B> ?k } }"""
    stage = SequenceStage(compile_query(query, options=CompileOptions(partial=True)))
    matcher = PatternStage(stage._plan, KnowledgeBase.empty())
    counter = InstantCounter()

    def push(time: int, *names_and_keys: tuple[str, int]) -> list[PartialAnswer]:
        triples = "".join(f'_:x <http://e/{n}> "{k}" .\n' for n, k in names_and_keys)
        events = [(time, None, triples_of(triples))]
        stage.push(matcher.match(batch_from_events(STREAMS[0], events, counter)))
        stage.advance(time)
        return stage.partials()

    assert stage._partial is not None and stage._partial._counts is not None
    counts = stage._partial._counts
    for time in range(50):
        push(time, *(("B", key) for key in range(5)))
    assert not counts
    push(50, ("A", 1), ("A", 2))
    assert {len(count.instants) for count in counts.values()} == {1}
    assert [*push(51, ("B", 2)), *push(52, ("A", 1))] == []
    (partial,) = push(53, ("A", 1))
    assert partial.closed == (53, 0)
    assert not [*push(54, ("B", 2)), *push(55, ("B", 2))]
    assert len(counts) == 1
