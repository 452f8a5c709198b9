"""The variables of a complete match as SELECT and HAVING see them, and those computed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from spaseq.algebra.answers import TraceItem
from spaseq.automaton.run.matches import Binding
from spaseq.expr.compile import compile_term
from spaseq.expr.env import Env
from spaseq.plan.query_plan import ComputedVariable, QueryPlan

Groups: TypeAlias = "Mapping[str, tuple[str, ...]]"
"""The values of group variables."""

Computed: TypeAlias = "tuple[ComputedVariable, Callable[[Env], str | None]]"
"""A variable, and what computes its value."""


class MatchEnv:
    """The variables of a complete match; `end` is its end (ms)."""

    __slots__ = ("_singles", "end", "extra", "groups", "trace")

    def __init__(
        self, singles: Iterable[Binding], groups: Groups, trace: Sequence[TraceItem], end: int
    ) -> None:
        self._singles, self.groups, self.trace, self.end = dict(singles), groups, trace, end
        self.extra: dict[str, str] = {}  # projected expressions so far

    def value(self, name: str) -> str | None:
        values = self.groups.get(name)
        if values:
            return values[-1]
        known = self._singles.get(name)
        return known if known is not None else self.extra.get(name)

    def previous(self, name: str) -> str | None:
        return None

    def group(self, name: str) -> Sequence[str]:
        values = self.groups.get(name)
        if values is not None:
            return values
        known = self._singles.get(name)
        return () if known is None else (known,)

    def time(self, gpm: str) -> int | None:
        return max((t.time for t in self.trace if t.gpm == gpm), default=None)

    def now(self) -> int | None:
        return self.end


class _EventEnv:
    """The same at an event of a GPM, where the group variables `each` have the event's values."""

    __slots__ = ("_each", "_match", "_moments", "place")

    def __init__(self, match: MatchEnv, each: Iterable[str], moments: Sequence[int]) -> None:
        self._match, self._moments, self.place = match, moments, 0
        self._each = {v: match.groups[v] for v in each if v in match.groups}

    def value(self, name: str) -> str | None:
        values = self._each.get(name)
        return self._match.value(name) if values is None else values[self.place]

    def previous(self, name: str) -> str | None:
        values = self._each.get(name)
        return None if values is None or not self.place else values[self.place - 1]

    def group(self, name: str) -> Sequence[str]:
        return self._match.group(name)

    def time(self, gpm: str) -> int | None:
        return self._match.time(gpm)

    def now(self) -> int | None:
        return self._moments[self.place]


def computed_values(plan: QueryPlan) -> list[Computed]:
    """The computed variables of a query's matches."""
    return [(v, compile_term(v.expr, plan.expressions)) for v in plan.answers.computed]


def values_of(computed: Sequence[Computed], match: MatchEnv) -> tuple[list[Binding], Groups]:
    """The values of the computed single variables and of all group variables of a match."""
    singles, groups = list[Binding](), {**match.groups}
    for variable, term in computed:
        moments = [item.time for item in match.trace if item.gpm == variable.gpm]
        env, values = _EventEnv(match, variable.each or (), moments), list[str]()
        for env.place in range(len(moments)):
            value = term(env)
            if value is not None:
                values.append(value)
        if variable.each is not None:
            groups[variable.name] = tuple(values)
        elif values:
            singles.append((variable.name, values[0]))
    return singles, groups
