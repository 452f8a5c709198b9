"""Partial matches that are compared as row numbers are those that are compared as matches."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest

from spaseq.algebra.answers import PartialAnswer
from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.planning_options import CompileOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import batch_from_events, triples_of
from spaseq.stages.numbered_levels import NumberedLevels
from spaseq.stages.sequence import PatternStage, SequenceStage

STREAMS = ("http://e/s", "http://e/t")


def plan_of(sequence: str, partition: str) -> QueryPlan:
    gpms = "".join(f"DEFINE GPM {n} ON S, T {{ ?{n} <http://e/{n}> ?k }} " for n in "ABC")
    query = f"""SELECT * WITHIN 20 MILLISECONDS {partition}
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
                text = "".join(f'_:x <http://e/{n}> "{random.randint(1, 3)}" .\n' for n in names)
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


@pytest.mark.parametrize("partition", ["", "PARTITION BY (?k)"])
@pytest.mark.parametrize("sequence", ["A; B; C", "A: B; C", "A, B: C"])
def test_numbers_and_matches_agree(sequence: str, partition: str) -> None:
    plan = plan_of(sequence, partition)
    for seed in range(6):
        numbered = found(plan, seed)
        with patch.object(NumberedLevels, "of", return_value=None):
            assert numbered == found(plan, seed)
        assert numbered
