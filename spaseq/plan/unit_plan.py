"""The queries that are evaluated as one: a query by itself, or the members of a family."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record


@record
class UnitPlan:
    """The plans of a unit's queries, by number; a query that is in no `family` is the only one.

    A family's `plans` may soon have further members.
    """

    plans: Mapping[int, QueryPlan]
    family: Family | None = None

    @property
    def plan(self) -> QueryPlan:
        """What is evaluated: the plan of the query, or of the family."""
        return self.only[1] if self.family is None else self.family.plan

    @property
    def only(self) -> tuple[int, QueryPlan]:
        """The number and the plan of the query by itself."""
        ((number, plan),) = self.plans.items()
        return number, plan
