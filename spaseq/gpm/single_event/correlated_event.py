"""Correlated GPMs on one event, without columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import expressions, possible
from spaseq.algebra.substitution import sensitive
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.compile import Options, compile_filter, compile_term, is_volatile
from spaseq.expr.env import DictEnv
from spaseq.expr.uses import calls_functions
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.single_event.event_graph import EventGraph, NeedsColumns, Solution
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_pattern import EventPattern
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, expression_variables
from spaseq.limits import Limits
from spaseq.rdf.terms.term import Triple

Step: TypeAlias = Callable[[Solution], "Solution | None"]
"""What BIND or FILTER makes of a solution; None if it goes."""


class CorrelatedEvent:
    """A pattern that is the same for all bindings, and BIND and FILTER after it.

    Args:
        joined: the pattern.
        steps: BIND and FILTER, in order.
        made: the variables of BIND.
        variables: of the solutions.
        limits: if an expression calls a function, whose results may be long or take time.
    """

    def __init__(
        self,
        joined: EventPattern,
        steps: Sequence[Step],
        made: frozenset[str],
        variables: Sequence[str],
        limits: Limits | None,
    ) -> None:
        self._joined, self._steps = joined, steps
        self._made, self._variables, self._limits = made, variables, limits

    @classmethod
    def of(
        cls,
        pattern: n.Pattern,
        variables: Sequence[str],
        evaluator_of: Callable[[n.Pattern], GpmEvaluator],
        options: Options,
        limits: Limits,
    ) -> CorrelatedEvent | None:
        """A GPM's pattern; None if it is no such one, or needs columns.

        Args:
            pattern: it has variables for what earlier steps bind.
            variables: of its solutions.
            evaluator_of: makes the evaluator of the join.
            options: of its expressions.
            limits: of an evaluation.
        """
        steps, made, calls = list[Step](), set[str](), False
        while isinstance(pattern, n.Filter | n.Extend):
            expr = pattern.expr
            if is_volatile(expr) or exists_uses(expr):
                return None
            calls |= calls_functions(expr)
            if isinstance(pattern, n.Filter):
                steps.append(_filter(expr, options))
            else:
                steps.append(_bind(pattern.variable, expr, options))
                made.add(pattern.variable)
            pattern = pattern.pattern
        bound = possible(pattern)
        if sensitive(pattern) or not all(
            expression_variables(e) <= bound for e in expressions_inside(pattern)
        ):
            return None
        whole = _whole(evaluator_of(pattern), options, limits)
        if whole is None:
            return None
        joined, own_calls = whole
        bounds = limits if calls or own_calls else None
        return cls(joined, steps[::-1], frozenset(made), variables, bounds)

    @classmethod
    def substituted(
        cls,
        pattern: n.Pattern,
        variables: Sequence[str],
        evaluator_of: Callable[[n.Pattern], GpmEvaluator],
        options: Options,
        limits: Limits,
    ) -> CorrelatedEvent | None:
        """A pattern in which bindings have been substituted; None if it needs columns."""
        shown = {*variables}
        while isinstance(pattern, n.Project):
            shown.intersection_update(pattern.variables)
            pattern = pattern.pattern
        whole = _whole(evaluator_of(pattern), options, limits)
        if whole is None:
            return None
        joined, calls = whole
        columns = [v if v in shown else "" for v in variables]  # no variable has the name ""
        return cls(joined, (), frozenset(), columns, limits if calls else None)

    def solutions(
        self, triples: Sequence[Triple], values: Mapping[str, str]
    ) -> list[tuple[str | None, ...]] | None:
        """The terms of each solution on an event, None where they are unbound.

        None if columns have to find them.
        """
        if not self._made.isdisjoint(values):
            return None
        try:
            if self._limits is None:
                return self._rows(triples, values)
            with spending(Budget(self._limits, seconds=self._limits.timeout_s)):
                return self._rows(triples, values)
        except (LimitExceeded, NeedsColumns):
            return None

    def _rows(
        self, triples: Sequence[Triple], values: Mapping[str, str]
    ) -> list[tuple[str | None, ...]]:
        rows = []
        for solution in self._joined.solutions(EventGraph(triples)):
            if any(solution.get(name, term) != term for name, term in values.items()):
                continue
            env: Solution | None = {**solution, **values}
            for step in self._steps:
                env = None if env is None else step(env)
            if env is not None:
                rows.append(tuple(map(env.get, self._variables)))
        return rows


def _whole(
    evaluator: GpmEvaluator, options: Options, limits: Limits
) -> tuple[EventPattern, bool] | None:
    """(a pattern on one event, whether it calls a function); None if it needs columns."""
    operators = EventOperators(evaluator, options, limits.solutions)
    pattern = operators.pattern()
    return (pattern, operators.calls) if pattern.is_whole else None


def expressions_inside(pattern: n.Pattern) -> list[ast.Expr]:
    """The expressions of a pattern and its parts."""
    inner = (expressions_inside(part) for part in n.children(pattern))
    return [*expressions(pattern), *(expr for some in inner for expr in some)]


def _filter(expr: ast.Expr, options: Options) -> Step:
    test = compile_filter(expr, options)
    return lambda env: env if test(DictEnv(env)) else None


def _bind(variable: str, expr: ast.Expr, options: Options) -> Step:
    term = compile_term(expr, options)

    def bound(env: Solution) -> Solution:
        text = term(DictEnv(env))
        return env if text is None else {**env, variable: text}

    return bound
