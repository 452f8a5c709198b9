"""Correlated GPMs: evaluated when the sequence takes an event, with earlier bindings put in; on one
event without columns, if they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeAlias
from weakref import proxy

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import Pattern, expressions, possible
from spaseq.algebra.remote import asks_endpoints
from spaseq.algebra.substitution import sensitive, substituted
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.compile import Options, compile_filter, compile_term, is_volatile
from spaseq.expr.env import DictEnv
from spaseq.expr.uses import calls_functions
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.single_event.event_graph import EventGraph, Solution, TooManyPairs
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_pattern import EventPattern
from spaseq.gpm.solution_rows import event_triples
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, expression_variables
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, over_limit, warn
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import Triple

Step: TypeAlias = Callable[[Solution], "Solution | None"]
"""What BIND or FILTER makes of a solution; None if it goes."""

WindowOf: TypeAlias = "Callable[[str], tuple[VerticalPartition, Mapping[str, str]] | None]"
"""The window event that a value of EVENT stands for, with its values of PARTITION BY."""

Values: TypeAlias = "tuple[tuple[str, str], ...]"
"""Variables and the terms that are substituted for them."""

Terms: TypeAlias = "tuple[str | None, ...]"
"""A solution, in the order of the variables."""

_SHOWN = 300
"""Characters of an event in a report."""


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
        except (LimitExceeded, TooManyPairs):
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


class CorrelatedEvaluator:
    """The correlated GPMs of a plan: solutions of one event, given values for its variables."""

    def __init__(
        self,
        plan: QueryPlan,
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
        window_of: WindowOf | None = None,
    ) -> None:
        """It calls `on_bad` for each event that lacks an endpoint's answer or exceeds a limit.

        `window_of` gives the window event that a value of EVENT stands for, if it is one.
        """
        self._window_of = window_of
        self._plan, self._on_bad, self._limits = plan, on_bad, limits
        patterns = [each.pattern for each in plan.patterns.gpms if each.correlation is not None]
        asks = any(asks_endpoints(each, knowledge.endpoints) for each in patterns)
        # Whoever keeps account of what endpoints answer must see each use of an answer.
        remembered = (
            0 if asks and knowledge.asked is not None else thresholds.current.remembered_results
        )
        # A strong reference would be a cycle, which keeps a run that is over in memory.
        self.solve = lru_cache(remembered)(partial(CorrelatedEvaluator._solve, proxy(self)))
        self.use(knowledge)

    @property
    def is_used(self) -> bool:
        """Whether there are such GPMs."""
        return any(gpm.correlation is not None for gpm in self._plan.patterns.gpms)

    def use(self, knowledge: KnowledgeBase) -> None:
        """Use another knowledge base from now on."""
        self._knowledge = knowledge.only(self._plan.inputs.kbs)
        self._plain: dict[int, CorrelatedEvent | None] = {}
        self._ready: dict[tuple[int, Values], CorrelatedEvent | None] = {}  # by GPM and values
        self._in_columns: set[int] = set()  # GPMs that need columns whatever the values
        self.solve.cache_clear()

    def _evaluator(self, pattern: Pattern, on_windows: bool = False) -> GpmEvaluator:
        how = self._plan.expressions, self._plan.patterns.evaluation, self._limits
        return GpmEvaluator(pattern, self._knowledge, *how, on_windows=on_windows)

    def _same_for_all(self, gpm: int) -> CorrelatedEvent | None:
        """What evaluates a GPM on one event without columns, whatever the values, if it can."""
        if gpm not in self._plain:
            gpm_plan, expressions = self._plan.patterns.gpms[gpm], self._plan.expressions
            given = self._evaluator, expressions, self._limits
            self._plain[gpm] = CorrelatedEvent.of(gpm_plan.pattern, gpm_plan.variables, *given)
        return self._plain[gpm]

    def _for_values(self, gpm: int, values: Values) -> CorrelatedEvent | None:
        """The same for some values, once they have come before: it takes as long as columns."""
        key, ready = (gpm, values), self._ready
        if key not in ready:
            if len(ready) >= thresholds.current.remembered_results:
                ready.clear()
            ready[key] = None
        elif ready[key] is None and gpm not in self._in_columns:
            gpm_plan, expressions = self._plan.patterns.gpms[gpm], self._plan.expressions
            given = gpm_plan.variables, self._evaluator, expressions, self._limits
            pattern = substituted(gpm_plan.pattern, dict(values))
            ready[key] = CorrelatedEvent.substituted(pattern, *given)
            if ready[key] is None:
                self._in_columns.add(gpm)
        return ready[key]

    def _rows(self, gpm: int, event: str, values: Values) -> list[Terms] | None:
        """What `_solve` gives; None if columns have to find it."""
        plain = self._same_for_all(gpm)
        if plain is not None:
            return plain.solutions(event_triples(event), dict(values))
        ready = self._for_values(gpm, values)
        return None if ready is None else ready.solutions(event_triples(event), {})

    def _solve(self, gpm: int, event: str, values: Values) -> tuple[Terms, ...]:
        """The terms of each solution, in order of the GPM's variables; EVENT stays unbound."""
        plan, gpm_plan = self._plan, self._plan.patterns.gpms[gpm]
        window = None if self._window_of is None else self._window_of(event)
        if window is None:
            rows = self._rows(gpm, event, values)
            if rows is not None:
                return tuple(dict.fromkeys(rows))
        index, known = (None, {}) if window is None else window
        pattern = substituted(gpm_plan.pattern, {**known, **dict(values)})
        evaluator = self._evaluator(pattern, index is not None)
        if index is None:
            batch = batch_from_events("", [(0, None, event_triples(event))], InstantCounter())
            index = VerticalPartition(batch)
        solutions = evaluator.evaluate(index)
        for failed in evaluator.take_failures():
            self._on_bad(
                BadInput(
                    failed.url, None, f"no answer: {failed.reason}", _shown(gpm_plan.name, event)
                )
            )
        for reason in evaluator.take_exceeding().values():
            self._on_bad(over_limit(plan.identity.name, reason, _shown(gpm_plan.name, event)))
        columns = [
            _texts(solutions, v) if v not in known else [known[v]] * len(solutions.event)
            for v in gpm_plan.variables
        ]
        return tuple(dict.fromkeys(zip(*columns, strict=True)))


def _shown(gpm: str, event: str) -> str:
    """Which event it is, in words."""
    text = " ".join(f"{' '.join(triple)} ." for triple in event_triples(event))
    return f"an event of {gpm} with {text[:_SHOWN]}"


def _texts(solutions: EventSolutions, variable: str) -> list[str | None]:
    codes = solutions.columns.get(variable)
    size = len(solutions.event)
    if codes is None:
        return [None] * size
    return [None if c < 0 else solutions.terms[c] for c in codes.tolist()]
