"""The algebra over one event, whose solutions are Python dicts, also of correlated GPMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import possible, visible
from spaseq.algebra.substitution import given, mentions
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.leaves import TermOrNone
from spaseq.expr.uses import calls_functions, is_volatile
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.patterns.exists import Existence, with_alternatives
from spaseq.gpm.single_event.event_graph import (
    EventGraph,
    NeedsColumns,
    Operator,
    Solution,
    are_compatible,
    known_table,
)
from spaseq.gpm.single_event.event_pattern import EventPattern, EventTest
from spaseq.gpm.single_event.sub_select import SubSelect, sub_select
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.limits import Limits

Partners: TypeAlias = Callable[[Solution, EventGraph], "Sequence[Solution]"]
"""Joins one solution with the solutions of an operand on an event."""


class EventOperators:
    """Makes the operators of graph patterns; paths and endpoints need columns.

    `calls` says whether a condition or a BIND calls a function, so that it may exceed a limit.
    """

    def __init__(
        self, evaluator: GpmEvaluator, options: Options, most: int, counts_all: bool = False
    ) -> None:
        """
        Args:
            evaluator: of the whole pattern.
            options: for its expressions.
            most: maximum number of solutions of a pattern before conditions are tested.
            counts_all: whether equal solutions count, as in a sub-SELECT.
        """
        self._evaluator, self.options, self.most = evaluator, options, most
        self.counts_all, self.calls = counts_all, False

    @property
    def indexes_places(self) -> bool:
        """Whether joins by place use an index."""
        return self._evaluator.evaluation.places

    def pattern(self) -> EventPattern:
        """The evaluator's own pattern."""
        return self._joined(self._evaluator.pattern)

    def constant(self, pattern: n.Pattern) -> Solutions | None:
        """The solutions of a part that uses neither an event nor an endpoint; None for others."""
        return self._evaluator.constant(pattern)

    def _joined(self, pattern: n.Pattern) -> EventPattern:
        parts = self._evaluator.parts(pattern)
        self.calls |= any(calls_functions(c.expr) for c in parts.conditions)
        return EventPattern(parts, self)

    def operator(self, pattern: n.Pattern) -> Operator | None:
        """The solutions of a part on an event; None if it needs columns."""
        known = self.constant(pattern)
        if known is not None:
            return _listed(known)
        match pattern:
            case n.BGP() | n.Join() | n.Filter():
                joined = self._joined(pattern)
                return joined.solutions if joined.is_whole else None
            case n.Union(left, right):
                return self._union(left, right)
            case n.Minus(left, right):
                return self._minus(left, right)
            case n.LeftJoin(left, right, expr):
                return self._left_join(left, right, expr)
            case n.Extend(inner, variable, expr):
                return self._extended(inner, variable, expr)
            case n.Given(variables):
                return lambda graph: [{v: graph.given[v] for v in variables}]
            case n.Project() | n.Distinct() | n.OrderBy() | n.Slice() | n.Group():
                return self._sub_select(pattern)
        return None

    def _sub_select(self, pattern: SubSelect) -> Operator | None:
        inside = self
        if not self.counts_all:
            given = self._evaluator, self.options, self.most
            inside = EventOperators(*given, counts_all=True)
        operator = sub_select(pattern, inside)
        self.calls |= inside.calls
        return operator

    def _union(self, left: n.Pattern, right: n.Pattern) -> Operator | None:
        first, second = self.operator(left), self.operator(right)
        if first is None or second is None:
            return None
        one, other = first, second
        return lambda graph: [*one(graph), *other(graph)]

    def _partners(self, right: n.Pattern) -> Partners | None:
        """The join of a solution with the solutions of an operand; None if it needs columns."""
        table = known_table(self.constant(right))
        if table is not None:
            return table.joined
        operator = self.operator(right)
        return None if operator is None else partial(_joined_with, operator)

    def _minus(self, left: n.Pattern, right: n.Pattern) -> Operator | None:
        first, second = self.operator(left), self._shared_partner(right)
        if first is None or second is None:
            return None
        solutions, is_removed = first, second
        return lambda graph: [one for one in solutions(graph) if not is_removed(one, graph)]

    def _shared_partner(self, right: n.Pattern) -> EventTest | None:
        """Whether a compatible solution of an operand shares a variable with one."""
        table = known_table(self.constant(right))
        if table is not None:
            known = table
            return lambda one, graph: bool(known.shared(one) and known.joined(one, graph))
        operator = self.operator(right)
        if operator is None:
            return None
        others = operator
        return lambda one, graph: any(
            one.keys() & other.keys() and are_compatible(one, other) for other in others(graph)
        )

    def _left_join(
        self, left: n.Pattern, right: n.Pattern, expr: ast.Expr | None
    ) -> Operator | None:
        first, second = self.operator(left), self._partners(right)
        test = None if expr is None else self.test(expr)
        if first is None or second is None or (test is None and expr is not None):
            return None
        solutions, partners = first, second

        def run(graph: EventGraph) -> Sequence[Solution]:
            joined = list[Solution]()
            for one in solutions(graph):
                both = partners(one, graph)
                if test is not None:
                    both = [solution for solution in both if test(solution, graph)]
                joined += both or [one]
            return joined

        return run

    def _extended(self, inner: n.Pattern, variable: str, expr: ast.Expr) -> Operator | None:
        """BIND; columns make the blank nodes of BNODE and random values."""
        operator, value = self.operator(inner), self.term(expr)
        if operator is None or value is None:
            return None
        solutions, term = operator, value

        def run(graph: EventGraph) -> Sequence[Solution]:
            extended = list[Solution]()
            for solution in solutions(graph):
                text = term(DictEnv(solution))
                extended.append(solution if text is None else {**solution, variable: text})
            return extended

        return run

    def term(self, expr: ast.Expr) -> TermOrNone | None:
        """The value of an expression on a solution; None if it needs columns."""
        if is_volatile(expr) or exists_uses(expr):
            return None
        self.calls |= calls_functions(expr)
        return compile_term(expr, self.options)

    def test(self, expr: ast.Expr) -> EventTest | None:
        """The test of a condition on an event; None if it needs columns."""
        if is_volatile(expr):
            return None
        self.calls |= calls_functions(expr)
        expr = with_alternatives(expr, self.options.schema)
        uses = exists_uses(expr)
        if not uses:
            plain = compile_filter(expr, self.options)
            return lambda solution, _: plain(DictEnv(solution))
        patterns = {id(use): self._existence(use) for use in uses}
        known = {key: operator for key, operator in patterns.items() if operator is not None}
        return _ExistsTest(expr, self.options, known) if len(known) == len(patterns) else None

    def _existence(self, use: ast.Exists) -> _Existence | None:
        """EXISTS on an event; None if it needs columns."""
        existence = Existence.of(use, self.options.schema)
        partners = self._substituted(existence.pattern, existence.substituted)
        test = None if existence.condition is None else self.test(existence.condition)
        if partners is None or (test is None and existence.condition is not None):
            return None
        names = visible(possible(existence.pattern))
        if existence.condition is not None:
            names |= mentions(existence.condition)
        return _Existence(partners, test, names | existence.substituted)

    def _substituted(self, pattern: n.Pattern, names: frozenset[str]) -> Partners | None:
        """The join with a pattern into which a solution's values of some variables are substituted.

        None if it needs columns.
        """
        if not names:
            return self._partners(pattern)

        @cache
        def made(bound: frozenset[str]) -> Partners | None:
            known = given(pattern, bound)
            return None if known is None else self._partners(known)

        def joined(one: Solution, graph: EventGraph) -> Sequence[Solution]:
            partners, around = made(names.intersection(one)), graph.given
            if partners is None:
                raise NeedsColumns
            graph.given = one
            try:
                return partners(one, graph)
            finally:
                graph.given = around

        return None if made(names) is None else joined


def _joined_with(operator: Operator, one: Solution, graph: EventGraph) -> Sequence[Solution]:
    """A solution joined with the solutions of an operand."""
    return [{**one, **other} for other in operator(graph) if are_compatible(one, other)]


def _listed(part: Solutions) -> Operator | None:
    """The solutions of a part that reads no event, if they are few."""
    if part.size > thresholds.current.known_pairs:
        return None
    texts = {
        name: [None if code < 0 else part.lexicon[code] for code in part.column(name).tolist()]
        for name in part.columns
    }
    solutions = [
        {name: text for name in texts if (text := texts[name][row]) is not None}
        for row in range(part.size)
    ]
    return lambda _: solutions


class _Existence:
    """The pattern of one EXISTS: `names` are the outside variables that it reads."""

    __slots__ = ("_names", "_partners", "_test")

    def __init__(self, partners: Partners, test: EventTest | None, names: frozenset[str]) -> None:
        self._partners, self._test, self._names = partners, test, names

    def holds(self, env: Env, graph: EventGraph) -> bool:
        """Whether the pattern has a solution that is compatible with the bindings."""
        texts = ((name, env.value(name)) for name in self._names)
        outside = {name: text for name, text in texts if text is not None}
        both = self._partners(outside, graph)
        return any(self._test is None or self._test(solution, graph) for solution in both)


class _ExistsTest:
    """A condition with EXISTS, whose patterns are known by the identity of their nodes."""

    def __init__(self, expr: ast.Expr, options: Options, patterns: dict[int, _Existence]) -> None:
        self._patterns = patterns
        self._graph = EventGraph(())
        self._test = compile_filter(expr, replace(options, exists=self._holds))

    def _holds(self, use: ast.Exists, env: Env) -> bool:
        return self._patterns[id(use)].holds(env, self._graph)

    def __call__(self, solution: Solution, graph: EventGraph) -> bool:
        self._graph = graph
        return self._test(DictEnv(solution))


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
