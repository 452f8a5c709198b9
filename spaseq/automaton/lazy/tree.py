"""The Tree NFA of a pattern: its states are the sets of slots that have been filled.

From a state an edge leads to every slot still empty; a search chooses among them by what is stored
at that moment ("Lazy Chain Automata", section 7). An edge knows the ordering filters of 4.1 - which
filled slots bound the instants of its solutions - the join key, and every check that becomes
possible when its slot is filled: conditions, and negated steps as early as 4.4.2's first chance.
There are 2^n states; only those that a search reaches are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from spaseq.automaton.lazy.match_checks import (
    Absent,
    Agreement,
    Apart,
    ConditionCheck,
    Distance,
    MatchCheck,
    Source,
)
from spaseq.automaton.program.partial_order import Absence, Pattern
from spaseq.automaton.run.machine import Machine
from spaseq.expr.env import Env
from spaseq.expr.uses import timestamp_uses, variables_of
from spaseq.lang import ast

Filled = frozenset[int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How filled slots bound the instants of a solution."""

    after: tuple[int, ...]  # they come right before
    before: tuple[int, ...]  # they come right after
    within: tuple[tuple[int, int], ...]  # (earlier slot, gap in ms)
    since: tuple[tuple[int, int], ...]  # (later slot, gap in ms)
    together: tuple[int, ...]  # they have the same timestamp


@dataclass(frozen=True, slots=True, eq=False)
class TreeEdge:
    """Filling one slot more.

    The tests in `kept` do not look at the slot that a search started from but, beside the new
    solution, at the slots `beside` only. So which solutions pass them can be kept for the next
    search that has the same solutions there; these lie within `kept_bounds`.
    """

    slot: int
    gpm: int
    columns: tuple[int, ...]  # of the join key
    sources: tuple[Source, ...]  # where its values are
    bounds: Bounds
    not_last: bool  # its event must be before the one that the search started from
    kept: tuple[MatchCheck, ...]
    beside: tuple[int, ...]
    kept_bounds: Bounds
    filters: tuple[MatchCheck, ...]  # all others
    target: Filled

    @property
    def is_tested(self) -> bool:
        """Whether a solution in reach may fail."""
        return bool(self.kept or self.filters)


@dataclass(frozen=True, slots=True, eq=False)
class TreeState:
    """Some slots filled; no edges: all of them."""

    tree: Tree
    filled: Filled
    edges: tuple[TreeEdge, ...]


class Tree:
    """The states of one pattern for searches that start from one slot (None: from outside)."""

    def __init__(self, pattern: Pattern, machine: Machine, trigger: int | None) -> None:
        self.pattern, self.trigger = pattern, trigger
        self.size = _size(pattern)  # slots, those of negated steps included
        self._machine = machine
        self._states: dict[Filled, TreeState] = {}
        self._variables = [dict(machine.takes[s.edge].columns) for s in pattern.slots]
        self._certain = [machine.gpms[s.gpm].certain for s in pattern.slots]
        last = pattern.last
        self._not_last = set(last[: last.index(trigger)]) if trigger is not None else set()

    def state(self, filled: Filled) -> TreeState:
        """The state in which some slots have been filled."""
        found = self._states.get(filled)
        if found is None:
            empty = [i for i in self.pattern.own if i not in filled]
            edges = tuple(self.edge(filled, i) for i in empty)
            found = self._states[filled] = TreeState(self, filled, edges)
        return found

    def edge(self, filled: Filled, slot: int) -> TreeEdge:
        """The edge that fills a slot in a state."""
        target = filled | {slot}
        joins = list(self._joins(slot, filled))
        filters: list[MatchCheck] = [
            *(Agreement((slot, c), s) for c, s, sure in joins if not sure),
            *(Apart(slot, i) for i in sorted(self.pattern.apart[slot] & filled)),
            *self._checks(filled, target),
        ]
        kept = [f for f in filters if self._outlives(f, slot)]
        beside = frozenset[int]().union(*(f.slots for f in kept)) - {slot}
        if not beside or all(isinstance(f, Apart) for f in kept):
            kept, beside = [], frozenset()  # keeping would cost more than testing
        return TreeEdge(
            slot,
            self.pattern.slots[slot].gpm,
            tuple(c for c, _, sure in joins if sure),
            tuple(s for _, s, sure in joins if sure),
            self._bounds(slot, filled),
            slot in self._not_last,
            tuple(kept),
            tuple(sorted(beside)),
            self._bounds(slot, beside),
            tuple(f for f in filters if f not in kept),
            target,
        )

    def _outlives(self, check: MatchCheck, slot: int) -> bool:
        """Whether a check's outcome can be used again by later searches."""
        return self.trigger is not None and self.trigger not in (check.slots | {slot})

    def _bounds(self, slot: int, filled: Filled) -> Bounds:
        pattern = self.pattern
        gaps = [g for g in pattern.gaps if len(g.lasts) == len(g.firsts) == 1]
        return Bounds(
            self._latest(pattern.before[slot] & filled),
            self._earliest(frozenset(i for i in filled if slot in pattern.before[i])),
            tuple((i, g.ms) for g in gaps for i in g.lasts if slot in g.firsts and i in filled),
            tuple((i, g.ms) for g in gaps for i in g.firsts if slot in g.lasts and i in filled),
            tuple(sorted(pattern.together[slot] & filled)[:1]),
        )

    def _latest(self, slots: Filled) -> tuple[int, ...]:
        before = self.pattern.before
        return tuple(sorted(i for i in slots if not any(i in before[j] for j in slots)))

    def _earliest(self, slots: Filled) -> tuple[int, ...]:
        before = self.pattern.before
        return tuple(sorted(i for i in slots if not before[i] & slots))

    # --- bindings ---------------------------------------------------------------------------------

    def _joins(self, slot: int, filled: Filled) -> Iterator[tuple[int, Source, bool]]:
        """A column of the slot's, where its variable has a value, and whether both surely do."""
        for variable, column in self._variables[slot].items():
            sure = self._sure(variable, filled)
            if sure is not None:
                yield column, sure, variable in self._certain[slot]
            else:
                for i in sorted(filled):
                    if variable in self._variables[i]:
                        yield column, (i, self._variables[i][variable]), False

    def _sure(self, variable: str, slots: Filled) -> Source | None:
        """A slot that certainly binds a variable; not the trigger, if there is another."""
        sure = [i for i in slots if variable in self._certain[i]]
        if not sure:
            return None
        best = min(sure, key=lambda i: (i == self.trigger, i))
        return best, self._variables[best][variable]

    def _sources(self, variable: str, slot: int, filled: Filled) -> tuple[Source, ...] | None:
        """Where a place at a slot finds a variable; None if it cannot be known yet."""
        own = self._variables[slot].get(variable)
        mine = () if own is None else ((slot, own),)
        if variable in self._certain[slot]:
            return mine
        earlier = frozenset(i for i in range(slot) if variable in self._variables[i])
        sure = self._sure(variable, earlier & filled)
        if sure is not None:
            return (*mine, sure)
        if not earlier <= filled:
            return None
        return (*mine, *((i, self._variables[i][variable]) for i in sorted(earlier)))

    # --- checks -----------------------------------------------------------------------------------

    def _checks(self, before: Filled, after: Filled) -> Iterator[MatchCheck]:
        """What can be checked from one state on and not earlier, cheap checks first."""
        for gap in self.pattern.gaps:
            check = Distance(gap)
            if len(check.slots) > 2 and check.slots <= after and not check.slots <= before:
                yield check
        yield from self._conditions(before, after)
        for absence in self.pattern.absences:
            newly = self._decidable(absence, after) and not self._decidable(absence, before)
            if absence.before and newly:
                yield self.absent(absence, after)

    def _conditions(self, before: Filled, after: Filled) -> Iterator[MatchCheck]:
        for slot in sorted(after & set(self.pattern.own)):
            step = self.pattern.slots[slot]
            compiled = self._machine.takes[step.edge].conditions
            written = self._machine.gpms[step.gpm].conditions
            for holds, expr in zip(compiled, written, strict=True):
                if slot in before and self._condition(holds, expr, slot, before):
                    continue
                condition = self._condition(holds, expr, slot, after)
                if condition is not None:
                    yield condition

    def _condition(
        self, holds: Callable[[Env], bool], expr: ast.Expr, slot: int, filled: Filled
    ) -> ConditionCheck | None:
        """A condition of a slot, if all that it sees has been filled."""
        sources: dict[str, tuple[Source, ...]] = {}
        for variable in variables_of(expr):
            found = self._sources(variable, slot, filled)
            if found is None:
                return None
            sources[variable] = found
        slots = self.pattern.slots
        times = {
            name: tuple(i for i in range(slot) if slots[i].name == name)
            for name in timestamp_uses(expr)
        }
        looks = {slot, *(i for found in sources.values() for i, _ in found)}
        looks.update(i for found in times.values() for i in found)
        if not looks <= filled:
            return None
        return ConditionCheck(holds, sources, times, frozenset(looks))

    def _decidable(self, absence: Absence, filled: Filled) -> bool:
        """Whether a negated step's place, and all bindings that it uses, are filled."""
        if not filled.issuperset(absence.after + absence.before):
            return False
        return all(self._known(v, filled) for v in self._mentioned(absence)) and all(
            i in filled
            for i, slot in enumerate(self.pattern.slots)
            if slot.name in self._timed(absence)
        )

    def _known(self, variable: str, filled: Filled) -> bool:
        if self._sure(variable, filled) is not None:
            return True
        return all(i in filled for i, vs in enumerate(self._variables) if variable in vs)

    def absent(self, absence: Absence, filled: Filled) -> Absent:
        """The check that a negated step has no match."""
        mentioned, timed = self._mentioned(absence), self._timed(absence)
        looks = set(absence.after + absence.before)
        for i in filled:
            uses = mentioned & self._variables[i].keys()
            if uses or self.pattern.slots[i].name in timed:
                looks.add(i)
        if not absence.after and self.trigger is not None:
            looks.add(self.trigger)  # in first place, the window's end decides how far it reaches
        ways = tuple(Tree(p, self._machine, None).state(filled) for p in absence.patterns)
        return Absent(absence.negation, ways, frozenset(looks))

    def _mentioned(self, absence: Absence) -> set[str]:
        """The variables of a negated step's GPMs and FILTERs, and of negated steps in it."""
        return set(_each(absence, self._names_at))

    def _names_at(self, gpm: int) -> Iterable[str]:
        columns = self._machine.gpms[gpm]
        return [*columns.variables, *(v for e in columns.conditions for v in variables_of(e))]

    def _timed(self, absence: Absence) -> set[str]:
        """The GPMs whose TIMESTAMP a negated step asks for."""
        return set(_each(absence, self._times_at))

    def _times_at(self, gpm: int) -> Iterable[str]:
        return [n for e in self._machine.gpms[gpm].conditions for n in timestamp_uses(e)]


def _size(pattern: Pattern) -> int:
    inner = (_size(p) for absence in pattern.absences for p in absence.patterns)
    return max([len(pattern.slots), *inner])


def _each(absence: Absence, of: Callable[[int], Iterable[str]]) -> Iterator[str]:
    for pattern in absence.patterns:
        for i in pattern.own:
            yield from of(pattern.slots[i].gpm)
        for inner in pattern.absences:
            yield from _each(inner, of)
