"""What is evaluated as one in a run: a query by itself, or a family of queries.

A unit has the number of its first query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from spaseq.lang.shapes import QUERY
from spaseq.plan.families import Family, UnitPlan, families_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.records import record


class EventReader(Protocol):
    """What reads the events of a registered stream, or the changes of a graph."""

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        """The solutions of many events."""

    def push(self, rows: SolutionBatch) -> None:
        """Take solutions."""


@record
class QueryUnits:
    """The units of a run's queries.

    `families` has those that are families, by number. `plans` has the plan of each unit. If
    answers are `limited`, those that a limit counts together come from one stage 2.
    """

    queries: tuple[QueryPlan, ...]
    families: Mapping[int, Family]
    plans: Mapping[int, QueryPlan]
    limited: bool = False

    @classmethod
    def of(
        cls,
        queries: Sequence[QueryPlan],
        families: Sequence[Family] | None = None,
        limited: bool = False,
    ) -> QueryUnits:
        """The units of some queries, with all families that there are unless some are given."""
        all_families = families_of(queries) if families is None else families
        known = {family.members[0]: family for family in all_families}
        members = {n for family in all_families for n in family.members}
        plans = {
            n: known[n].plan if n in known else plan
            for n, plan in enumerate(queries)
            if n in known or n not in members
        }
        return cls(tuple(queries), known, plans, limited)

    def shipped(self) -> QueryUnits:
        """The units without what only the planner reads: workers get less."""
        families = {
            n: replace(family, first=family.first.without_shape())
            for n, family in self.families.items()
        }
        queries = [query.without_shape() for query in self.queries]
        return QueryUnits.of(queries, [*families.values()], self.limited)

    def members(self, unit: int) -> tuple[int, ...]:
        """The queries of a unit."""
        return self.families[unit].members if unit in self.families else (unit,)

    def key(self, unit: int) -> tuple[str, ...] | None:
        """The variables by which stage 2 of a unit can be split; a family by its members."""
        return split_key(self.plans[unit], self.limited)

    def unit_plan(self, unit: int) -> UnitPlan:
        """The plans of a unit's queries."""
        plans = {number: self.queries[number] for number in self.members(unit)}
        return UnitPlan(plans, self.families.get(unit))


def split_key(plan: QueryPlan, limited: bool) -> tuple[str, ...] | None:
    """The variables by which stage 2 of a query can be split, or of a family; None if by none.

    If answers are `limited`, a partition is not split. A family is split by its members at least.
    """
    partition, key = plan.sequence.partition, plan.sequence.key.variables
    if limited and key is not None:
        key = partition or None
    knows_members = QUERY in partition and not plan.inputs.windows  # stage 1 of it does
    return key or ((QUERY,) if knows_members else None)
