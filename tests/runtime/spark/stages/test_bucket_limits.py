"""When a bucket has too many partial matches does not depend on micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.algebra.answers import Answer
from spaseq.compile import compile_query
from spaseq.errors import TooManyWaiting
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions, StateLimits
from spaseq.plan.families import QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionCodec
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.following.logged_output import until_failure
from spaseq.runtime.spark.rows.stage_rows import items_of
from spaseq.runtime.spark.stages.bucket_state import Buckets
from tests.runtime.machines import HEAD, IRIS
from tests.runtime.spark.stages.test_bucket_state import FakeMap, FakeValue, triples

GPMS = """{{ DEFINE GPM A ON N, S {{ ?machine :starts ?load }}
    DEFINE GPM B ON N, S {{ {other} :stops ?code {more} }} }}"""

PLANS = {
    "sets": compile_query(HEAD + "SEQ (A; B) " + GPMS.format(other="?machine", more="")),
    "runs": compile_query(
        HEAD + "SEQ (A; B) " + GPMS.format(other="?m", more="FILTER(STR(?code) > STR(?load))")
    ),
}

EVENTS = [
    (1000 * (n - n % 2), None, triples(f"m{n * 5 % 7}", "starts" if n % 5 < 3 else "stops", n % 10))
    for n in range(80)
]


def frames(plan: QueryPlan, cuts: Sequence[int]) -> Iterator[pd.DataFrame]:
    """The rows that micro-batches bring to a bucket."""
    matcher, counter = PatternStage(plan, KnowledgeBase.empty()), InstantCounter()
    for begin, end in pairwise([0, *cuts, len(EVENTS)]):
        found = matcher.match(batch_from_events(IRIS[0], EVENTS[begin:end], counter))
        mark = EVENTS[end][0] if end < len(EVENTS) else EVENTS[-1][0] + 1
        rows: list[tuple[Any, ...]] = [
            (-1, stream, 0, mark, "", b"") for stream in range(len(plan.inputs.streams))
        ]
        if len(found):
            rows.append((0, 0, 0, 0, "", SolutionCodec(plan.patterns.columns).encode(found)))
        names = ["reader", "stream", "partition", "time", "ties", "payload"]
        yield pd.DataFrame(rows, columns=names)


def outcome(
    plan: QueryPlan, cuts: Sequence[int], most: int
) -> tuple[list[Answer], TooManyWaiting | None]:
    """The answers of a run, and why it ends."""
    limits, (meta, chunks) = StateLimits(rows=most), (FakeValue(), FakeMap())
    groups = QueryGroups.of(QueryUnits.of([plan]))
    buckets = Buckets(groups, "id", "", None, limits.stages(StageOptions()), limits)
    buckets.warm.clear()
    answers: list[Answer] = []
    for frame in frames(plan, cuts):
        out = pd.concat(buckets.batch(0, 0, iter([frame]), meta, chunks))
        rows = sorted(zip(out["query"], out["order"], out["payload"], strict=True))
        items, failure = until_failure([*items_of(rows)])
        answers += [answer for query, some in items if query == 0 for answer in some]  # type: ignore[union-attr]
        if failure is not None:
            return answers, failure
    return answers, None


@pytest.mark.each_once
@pytest.mark.parametrize("most", [2, 3, 5])
@pytest.mark.parametrize("name", sorted(PLANS))
@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, 79), max_size=9))
def test_answers_and_the_failure_do_not_depend_on_batches(
    name: str, most: int, cuts: set[int]
) -> None:
    plan = PLANS[name]
    answers, failure = outcome(plan, sorted(cuts), most)
    expected, reason = outcome(plan, [], most)
    assert (answers, str(failure).split(":")[0]) == (expected, str(reason).split(":")[0])
    if failure is not None:
        assert reason is not None
        assert failure.instant == reason.instant
        free, _ = outcome(plan, [], 10**6)
        assert answers == [answer for answer in free if answer.end < failure.instant]


def test_a_query_fails_where_the_first_bucket_does() -> None:
    plan = PLANS["sets"]
    answers, _ = outcome(plan, [], 10**6)
    early, late = (TooManyWaiting("", 0, answers[i].end) for i in (3, 5))
    items, failure = until_failure([(-1, late), (-1, early), (0, answers), (1, answers)])
    assert failure is early
    assert items == [(0, [a for a in answers if a.end < early.instant]), (1, answers)]
