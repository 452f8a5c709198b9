"""The definitions of queries and families for Spark's workers: each travels to them once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.spark.stages.standing_tasks import (
    Definition,
    FamilyDefinition,
    QueryDefinition,
)

MOST = 32
"""More broadcasts than these become one, without the definitions that nobody uses."""


class DefinitionShelf:
    """Numbers definitions, and broadcasts those that are new before a batch.

    `edition` changes whenever definitions have been dropped.
    """

    def __init__(self, context: Any) -> None:
        self._context, self.edition = context, 0
        self._next = 0
        self._pickled: dict[int, bytes] = {}  # all of them
        self._members: dict[int, frozenset[int]] = {}  # of a family: its members' definitions
        self._new: dict[int, bytes] = {}  # those that no broadcast has
        self._plans: dict[tuple[str, str, str], int] = {}
        self._shelves: list[tuple[int, Any]] = []

    def query(self, plan: QueryPlan) -> int:
        """The number of a query's definition; equal queries have one."""
        own = plan.signature
        key = plan.identity.title, own.fingerprint, own.canonical
        if key not in self._plans:
            self._plans[key] = self._add(QueryDefinition(replace(plan, shaped=None)))
        return self._plans[key]

    def family(self, family: Family, plans: Callable[[int], QueryPlan]) -> int:
        """The number of a family's definition, given the plan of each member."""
        numbers = {member: self.query(plans(member)) for member in family.members}
        first = replace(family.first, shaped=None)
        found = self._add(FamilyDefinition(replace(family, first=first), numbers))
        self._members[found] = frozenset(numbers.values())
        return found

    def _add(self, definition: Definition) -> int:
        number, self._next = self._next, self._next + 1
        self._pickled[number] = self._new[number] = pickle.dumps(definition, 5)
        return number

    def shelves(self, used: Callable[[], Collection[int]]) -> tuple[tuple[int, Any], ...]:
        """All broadcasts; `used` gives the numbers of the definitions that units have."""
        if self._new:
            if len(self._shelves) >= MOST:
                self._tidy(used())
            last, shelf = max(self._new), self._context.broadcast(self._new)
            self._shelves.append((last, shelf))
            self._new = {}
        return tuple(self._shelves)

    def _tidy(self, used: Collection[int]) -> None:
        """Make one broadcast of the definitions that are used."""
        kept = {*used}
        for number in used:
            kept |= self._members.get(number, frozenset())
        self._pickled = {n: data for n, data in self._pickled.items() if n in kept}
        self._members = {n: some for n, some in self._members.items() if n in kept}
        self._plans = {key: n for key, n in self._plans.items() if n in kept}
        for _, shelf in self._shelves:
            shelf.destroy()
        self._shelves, self._new = [], self._pickled
        self.edition += 1
