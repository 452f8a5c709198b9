"""Families that are matched together have the solutions that each has by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.families import Family, families_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import Triple
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.unit_stages import FamilyPatterns
from tests.thresholds import Force

QUERY = """PREFIX : <http://e/> SELECT ?x ?v WITHIN {window} SECONDS FROM STREAM S <http://e/s>
    WHERE {{ SEQ({steps}) DEFINE GPM A ON S {{ ?x :a ?v FILTER (?v > {least}) }}
    DEFINE GPM B ON S {{ ?x :b ?w FILTER (?w < ?v - {fall}) }} }}"""

NOTHING = KnowledgeBase.empty()

SHAPES = [
    {"window": "10", "steps": "A; B"},
    {"window": "20", "steps": "A; B"},
    {"window": "10", "steps": "B: A"},
]


def integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def triple(i: int) -> Triple:
    return f"<http://e/{i % 3}>", f"<http://e/{'ab'[i % 2]}>", integer(i * 7 % 10)


def batch(*crowds: int) -> EventBatch:
    """Events with so many triples each."""
    sizes = enumerate(crowds)
    events = [(1000 * n, f"g{n}", [triple(n + i) for i in range(size)]) for n, size in sizes]
    return batch_from_events("http://e/s", events, InstantCounter())


@pytest.fixture
def plans(force: Force) -> list[QueryPlan]:
    force("family_queries=2")
    options = CompileOptions(several=True)
    return [
        compile_query(QUERY.format(least=i % 7, fall=i % 4, **shape), f"q{i}", options)
        for i in range(9)
        for shape in SHAPES
    ]


def stage(
    family: Family,
    plans: list[QueryPlan],
    joint: JointPatterns | None = None,
    limits: Limits = DEFAULT_LIMITS,
    reports: list[BadInput] | None = None,
) -> FamilyPatterns:
    members = {n: plans[n] for n in family.members}
    take = [].append if reports is None else reports.append
    return FamilyPatterns(family, members, NOTHING, take, limits, joint)


def shown(rows: SolutionBatch) -> list[str]:
    """All rows, in any order."""
    columns: list[list[object]] = [rows.time.tolist(), rows.k.tolist(), rows.gpm.tolist()]
    columns += [rows.texts(v) for v in sorted(rows.values)]
    columns += [rows.numbers[v].value.tolist() for v in sorted(rows.numbers)]
    return sorted(map(repr, zip(*columns, strict=True)))


def compared(
    plans: list[QueryPlan], events: EventBatch, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[bool, bool]]:
    """For each family: has it solutions, and are they those that it has by itself, with reports."""
    joint, index = JointPatterns(), VerticalPartition(events)
    both: tuple[list[BadInput], list[BadInput]] = [], []
    families = families_of(plans)
    stages = [stage(family, plans, joint, limits, both[0]) for family in families]
    for family, own in zip(families, stages, strict=True):
        rows = own.match(events, index)
        alone = stage(family, plans, None, limits, both[1]).match(events)
        assert rows.values.keys() == alone.values.keys()
        assert rows.numbers.keys() == alone.numbers.keys()
        yield len(rows) > 0, shown(rows) == shown(alone) and both[0] == both[1]


def test_solutions_are_those_of_each_family(plans: list[QueryPlan]) -> None:
    assert [*compared(plans, batch(*range(12)))] == [(True, True)] * 3


def test_a_family_without_solutions_has_all_columns(plans: list[QueryPlan]) -> None:
    assert [*compared(plans, batch(0, 0))] == [(False, True)] * 3


def test_an_event_beyond_a_limit_is_judged_family_by_family(plans: list[QueryPlan]) -> None:
    found = [*compared(plans, batch(1, 10, 1), Limits(solutions=60))]
    assert found == [(True, True)] * 3


def test_many_solutions_are_made_family_by_family(plans: list[QueryPlan], force: Force) -> None:
    force("probed_events=2")
    force("joint_rows=5")
    assert [*compared(plans, batch(*range(12)))] == [(True, True)] * 3


def test_a_family_that_comes_is_joined_when_no_other_comes(plans: list[QueryPlan]) -> None:
    joint, families = JointPatterns(), families_of(plans)
    stages = [stage(family, plans, joint) for family in families[:2]]
    events = batch(3, 3)

    def joined(own: FamilyPatterns) -> bool:
        return joint.solutions(own, VerticalPartition(events)) is not None

    assert all(map(joined, stages))
    late = stage(families[2], plans, joint)
    assert not joined(late) and joined(late) and joined(stages[0])
    del stages[:]
    again = [stage(family, plans, joint) for family in families[:2]]
    assert not joined(again[0]) and joined(again[0]) and joined(late)
