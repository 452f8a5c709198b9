"""Builds the Tree NFA of a pattern; its states are the sets of matched steps.

From a state an edge leads to every step that is not matched yet. A search chooses among them by
what is stored at that moment ("Lazy Chain Automata", section 7). An edge has the ordering filters
of section 4.1 (which matched steps bound the instants of its solutions), the join key, and every
check that becomes possible with its step: conditions, and negated steps as early as section 4.4.2
allows. A pattern of n steps has 2^n states, which are made when a search reaches them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spaseq.automaton.lazy.match_checks import (
    ConditionCheck,
    DifferentEventsCheck,
    GapCheck,
    JoinCheck,
)
from spaseq.automaton.lazy.tree_nodes import (
    AbsenceCheck,
    Bounds,
    MatchCheck,
    Source,
    StepSet,
    TreeEdge,
    TreeState,
)
from spaseq.automaton.program.partial_order import Absence, Pattern
from spaseq.automaton.run.machine import Machine
from spaseq.expr.env import Env
from spaseq.expr.uses import timestamp_uses, variables_of
from spaseq.lang import ast


class Tree:
    """The states of one pattern, for searches that start at the step `trigger`.

    None: the search continues from a match around the pattern.
    """

    def __init__(self, pattern: Pattern, machine: Machine, trigger: int | None) -> None:
        self.pattern, self.trigger = pattern, trigger
        self.size = _size(pattern)  # steps, including the steps of negated steps
        self._machine = machine
        self._states: dict[StepSet, TreeState] = {}
        self._variables = [dict(machine.takes[s.edge].columns) for s in pattern.steps]
        self._certain = [machine.gpms[s.gpm].certain for s in pattern.steps]
        last = pattern.last
        self._not_last = set(last[: last.index(trigger)]) if trigger is not None else set()

    def state(self, matched: StepSet) -> TreeState:
        """The state in which some steps are matched."""
        state = self._states.get(matched)
        if state is None:
            empty = [i for i in self.pattern.own if i not in matched]
            edges = tuple(self.edge(matched, i) for i in empty)
            state = self._states[matched] = TreeState(self, matched, edges)
        return state

    def edge(self, matched: StepSet, step: int) -> TreeEdge:
        """The edge that matches a step in a state."""
        target = matched | {step}
        joins = list(self._joins(step, matched))
        apart = self.pattern.apart[step] & matched
        checks: list[MatchCheck] = [
            *(JoinCheck((step, c), s) for c, s, sure in joins if not sure),
            *(DifferentEventsCheck(frozenset({step, i})) for i in sorted(apart)),
            *self._checks(matched, target),
        ]
        cached = [c for c in checks if self._outlives(c, step)]
        beside = frozenset[int]().union(*(c.steps for c in cached)) - {step}
        if not beside or all(isinstance(c, DifferentEventsCheck) for c in cached):
            cached, beside = [], frozenset()  # the cache would cost more than the checks
        return TreeEdge(
            step,
            self.pattern.steps[step].gpm,
            tuple(c for c, _, sure in joins if sure),
            tuple(s for _, s, sure in joins if sure),
            self._bounds(step, matched),
            step in self._not_last,
            tuple(cached),
            tuple(sorted(beside)),
            self._bounds(step, beside),
            tuple(c for c in checks if c not in cached),
            target,
        )

    def _outlives(self, check: MatchCheck, step: int) -> bool:
        """Whether later searches can use the outcome of a check again."""
        return self.trigger is not None and self.trigger not in (check.steps | {step})

    def _bounds(self, step: int, matched: StepSet) -> Bounds:
        pattern = self.pattern
        gaps = [g for g in pattern.gaps if len(g.lasts) == len(g.firsts) == 1]
        return Bounds(
            self._latest(pattern.before[step] & matched),
            self._earliest(frozenset(i for i in matched if step in pattern.before[i])),
            tuple((i, g.ms) for g in gaps for i in g.lasts if step in g.firsts and i in matched),
            tuple((i, g.ms) for g in gaps for i in g.firsts if step in g.lasts and i in matched),
            tuple(sorted(pattern.together[step] & matched)[:1]),
        )

    def _latest(self, steps: StepSet) -> tuple[int, ...]:
        before = self.pattern.before
        return tuple(sorted(i for i in steps if not any(i in before[j] for j in steps)))

    def _earliest(self, steps: StepSet) -> tuple[int, ...]:
        before = self.pattern.before
        return tuple(sorted(i for i in steps if not before[i] & steps))

    # --- bindings ---------------------------------------------------------------------------------

    def _joins(self, step: int, matched: StepSet) -> Iterator[tuple[int, Source, bool]]:
        """(A column of the step, a source of the same variable, whether both certainly bind it)."""
        for variable, column in self._variables[step].items():
            sure = self._sure(variable, matched)
            if sure is not None:
                yield column, sure, variable in self._certain[step]
            else:
                for i in sorted(matched):
                    if variable in self._variables[i]:
                        yield column, (i, self._variables[i][variable]), False

    def _sure(self, variable: str, steps: StepSet) -> Source | None:
        """A step that certainly binds a variable; not the trigger if there is another."""
        sure = [i for i in steps if variable in self._certain[i]]
        if not sure:
            return None
        best = min(sure, key=lambda i: (i == self.trigger, i))
        return best, self._variables[best][variable]

    def _sources(self, variable: str, step: int, matched: StepSet) -> tuple[Source, ...] | None:
        """The sources of a variable as a FILTER of a step sees it; None if not all are matched."""
        own = self._variables[step].get(variable)
        mine = () if own is None else ((step, own),)
        if variable in self._certain[step]:
            return mine
        earlier = frozenset(i for i in range(step) if variable in self._variables[i])
        sure = self._sure(variable, earlier & matched)
        if sure is not None:
            return (*mine, sure)
        if not earlier <= matched:
            return None
        return (*mine, *((i, self._variables[i][variable]) for i in sorted(earlier)))

    # --- checks -----------------------------------------------------------------------------------

    def _checks(self, before: StepSet, after: StepSet) -> Iterator[MatchCheck]:
        """The checks that become possible between two states, cheap checks first."""
        for gap in self.pattern.gaps:
            check = GapCheck(gap)
            if len(check.steps) > 2 and check.steps <= after and not check.steps <= before:
                yield check
        yield from self._conditions(before, after)
        for absence in self.pattern.absences:
            newly = self._decidable(absence, after) and not self._decidable(absence, before)
            if absence.before and newly:
                yield self.absent(absence, after)

    def _conditions(self, before: StepSet, after: StepSet) -> Iterator[MatchCheck]:
        for step in sorted(after & set(self.pattern.own)):
            own = self.pattern.steps[step]
            compiled = self._machine.takes[own.edge].conditions
            written = self._machine.gpms[own.gpm].conditions
            for holds, expr in zip(compiled, written, strict=True):
                if step in before and self._condition(holds, expr, step, before):
                    continue
                condition = self._condition(holds, expr, step, after)
                if condition is not None:
                    yield condition

    def _condition(
        self, holds: Callable[[Env], bool], expr: ast.Expr, step: int, matched: StepSet
    ) -> ConditionCheck | None:
        """A condition of a step, if all steps that it sees are matched."""
        sources: dict[str, tuple[Source, ...]] = {}
        for variable in variables_of(expr):
            known = self._sources(variable, step, matched)
            if known is None:
                return None
            sources[variable] = known
        steps = self.pattern.steps
        times = {
            name: tuple(i for i in range(step) if steps[i].name == name)
            for name in timestamp_uses(expr)
        }
        looks = {step, *(i for known in sources.values() for i, _ in known)}
        looks.update(i for timed in times.values() for i in timed)
        if not looks <= matched:
            return None
        return ConditionCheck(holds, step, sources, times, frozenset(looks))

    def _decidable(self, absence: Absence, matched: StepSet) -> bool:
        """Whether the steps around a negated step, and all bindings it uses, are matched."""
        if not matched.issuperset(absence.after + absence.before):
            return False
        return all(self._known(v, matched) for v in self._mentioned(absence)) and all(
            i in matched
            for i, step in enumerate(self.pattern.steps)
            if step.name in self._timed(absence)
        )

    def _known(self, variable: str, matched: StepSet) -> bool:
        if self._sure(variable, matched) is not None:
            return True
        return all(i in matched for i, vs in enumerate(self._variables) if variable in vs)

    def absent(self, absence: Absence, matched: StepSet) -> AbsenceCheck:
        """The check that a negated step has no match."""
        mentioned, timed = self._mentioned(absence), self._timed(absence)
        looks = set(absence.after + absence.before)
        for i in matched:
            uses = mentioned & self._variables[i].keys()
            if uses or self.pattern.steps[i].name in timed:
                looks.add(i)
        if not absence.after and self.trigger is not None:
            looks.add(self.trigger)  # in first place, its reach depends on the end of the window
        ways = tuple(Tree(p, self._machine, None).state(matched) for p in absence.patterns)
        return AbsenceCheck(absence.negation, ways, frozenset(looks))

    def _mentioned(self, absence: Absence) -> set[str]:
        """The variables of the GPMs and FILTERs of a negated step, and of negated steps in it."""
        return set(_each(absence, self._names_at))

    def _names_at(self, gpm: int) -> Iterable[str]:
        columns = self._machine.gpms[gpm]
        return [*columns.variables, *(v for e in columns.conditions for v in variables_of(e))]

    def _timed(self, absence: Absence) -> set[str]:
        """The GPMs whose TIMESTAMP a negated step uses."""
        return set(_each(absence, self._times_at))

    def _times_at(self, gpm: int) -> Iterable[str]:
        return [n for e in self._machine.gpms[gpm].conditions for n in timestamp_uses(e)]


def _size(pattern: Pattern) -> int:
    inner = (_size(p) for absence in pattern.absences for p in absence.patterns)
    return max([len(pattern.steps), *inner])


def _each(absence: Absence, of: Callable[[int], Iterable[str]]) -> Iterator[str]:
    for pattern in absence.patterns:
        for i in pattern.own:
            yield from of(pattern.steps[i].gpm)
        for inner in pattern.absences:
            yield from _each(inner, of)
