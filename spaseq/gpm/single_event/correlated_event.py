"""Correlated GPMs on one event, without columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spaseq.algebra import nodes as n
from spaseq.algebra.substitution import given
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.single_event.event_graph import EventGraph, NeedsColumns
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_pattern import EventPattern
from spaseq.limits import Limits


class CorrelatedEvent:
    """A pattern whose values of some variables are given with the event.

    Args:
        pattern: it gets the values where it has `Given`.
        variables: of the solutions; no variable has the name "".
        limits: if an expression calls a function, whose results may be long or take time.
    """

    def __init__(
        self, pattern: EventPattern, variables: Sequence[str], limits: Limits | None
    ) -> None:
        self._pattern, self._variables, self._limits = pattern, variables, limits

    @classmethod
    def of(
        cls,
        pattern: n.Pattern,
        names: frozenset[str],
        variables: Sequence[str],
        evaluator_of: Callable[[n.Pattern], GpmEvaluator],
        options: Options,
        limits: Limits,
    ) -> CorrelatedEvent | None:
        """A GPM's pattern; None if it needs columns.

        Args:
            pattern: it has variables for what earlier steps bind.
            names: of the variables whose values are given.
            variables: of its solutions.
            evaluator_of: makes the evaluator of a pattern.
            options: of its expressions.
            limits: of an evaluation.
        """
        known, shown = given(pattern, names), {*variables}
        while isinstance(known, n.Project):
            shown.intersection_update(known.variables)
            known = known.pattern
        if known is None:
            return None
        operators = EventOperators(evaluator_of(known), options, limits.solutions)
        whole = operators.pattern()
        if not whole.is_whole:
            return None
        columns = [v if v in shown else "" for v in variables]
        return cls(whole, columns, limits if operators.calls else None)

    def solutions(
        self, graph: EventGraph, values: Mapping[str, str]
    ) -> list[tuple[str | None, ...]] | None:
        """The terms of each solution on an event, None where they are unbound.

        None if columns have to find them.
        """
        graph.given = values
        try:
            if self._limits is None:
                return self._rows(graph)
            with spending(Budget(self._limits, seconds=self._limits.timeout_s)):
                return self._rows(graph)
        except (LimitExceeded, NeedsColumns):
            return None

    def _rows(self, graph: EventGraph) -> list[tuple[str | None, ...]]:
        return [tuple(map(one.get, self._variables)) for one in self._pattern.solutions(graph)]
