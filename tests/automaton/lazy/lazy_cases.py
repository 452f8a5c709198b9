"""Cases for the lazy evaluator: features of its queries, and runs with a fixed order of steps.

A step's number is its place in the text, among the steps of one path through the alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, permutations
from typing import TypeAlias

from rdflib import Graph

from spaseq.algebra.answers import Answer
from spaseq.automaton.program.partial_order import patterns_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stages.sequence import SequenceStage
from tests.oracle.engine import solved
from tests.oracle.model import Streamset
from tests.oracle.strategies import EVERYTHING

Order: TypeAlias = tuple[int, ...] | None
"""The order in which the search takes the steps before the last one; None: rarest first."""

LEFT_OUT = frozenset(
    {",", ";", "+", "*", "{n,m}", "repeated-bracket", "PREV", "aggregate", "LIST", "CONSTRUCT"}
)
FEATURES = EVERYTHING - LEFT_OUT
"""Features of queries for the lazy evaluator; group variables need a repetition."""

MOST_ORDERS = 24


def orders(plan: QueryPlan) -> list[Order]:
    """Every order of the steps, for at most four steps."""
    most = max(len(pattern.steps) for pattern in patterns_of(plan.sequence.program))
    return [None, *list(permutations(range(most)))[:MOST_ORDERS]]


def solutions(
    plan: QueryPlan, streams: Streamset, kb: Mapping[str, Graph] | None = None
) -> list[SolutionBatch]:
    """The output of stage 1 for a streamset in the oracle's form."""
    return [piece.solutions for piece in solved(plan, streams, kb, None)]


def run_in(order: Order, plan: QueryPlan, batches: Sequence[SolutionBatch]) -> list[Answer]:
    """The answers with one fixed order of steps."""
    return list(_answers([order], plan, batches, ()))


def run_changing(
    changing: Sequence[Order], plan: QueryPlan, batches: Sequence[SolutionBatch]
) -> list[Answer]:
    """The answers with a changing order of steps; each change goes through a snapshot."""
    times = sorted({time for batch in batches for time in batch.time.tolist()})
    return list(_answers(changing, plan, batches, times[:: 1 + len(times) // 16]))


def with_order(plan: QueryPlan, order: Order) -> QueryPlan:
    """The plan with this order of steps for its lazy evaluator."""
    choice = replace(plan.sequence.evaluator, order=order)
    return replace(plan, sequence=replace(plan.sequence, evaluator=choice))


def _answers(
    changing: Sequence[Order],
    plan: QueryPlan,
    batches: Sequence[SolutionBatch],
    times: Sequence[int],
) -> Iterator[Answer]:
    following = cycle(changing)
    stage = SequenceStage(with_order(plan, next(following)))
    for batch in batches:
        stage.push(batch)
    for time in times:
        yield from stage.advance(time)
        snapshot = stage.snapshot()
        stage = SequenceStage(with_order(plan, next(following)))
        stage.restore(snapshot)
    yield from stage.close()
