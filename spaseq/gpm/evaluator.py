"""Evaluation of a graph pattern on batches of events (SPARQL 1.1 section 18.6, in columns).

A batch that exceeds the budget is evaluated in parts, until only the events are left that exceed it
by themselves. These have no solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import possible, visible
from spaseq.budget import OUT_OF_MEMORY, Budget, LimitExceeded, spending
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.expr.compile import Options
from spaseq.gpm.graphs.triple_source import ActiveGraph, TripleSource
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.patterns.conjunction import Conjunction
from spaseq.gpm.patterns.operators import PatternOperators
from spaseq.gpm.patterns.services import FailedRequest
from spaseq.gpm.solutions.solutions import Solutions, only
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.measures import Measures
from spaseq.plan.pattern_plan import FASTEST, PatternEvaluation
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.records import record

_PLAIN = n.BGP | n.Join | n.Filter
"""A conjunction is no node: its triple patterns, operands and conditions are."""


class MeasuredOperators(PatternOperators):
    """Evaluates patterns as `PatternOperators` does, and measures each part."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        options: Options,
        evaluation: PatternEvaluation,
        measures: Measures,
    ) -> None:
        super().__init__(knowledge, options, evaluation)
        self._measures = measures

    def _evaluate(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        if isinstance(pattern, _PLAIN):
            return super()._evaluate(pattern, active)
        with self._measures.inside(pattern) as measure:
            solutions = super()._evaluate(pattern, active)
            measure.took(solutions.size, bytes_of(solutions))
        return solutions

    def _basic(self, parts: Conjunction, source: TripleSource) -> Iterator[Solutions]:
        if not isinstance(source, VerticalPartition):
            yield from super()._basic(parts, source)
        elif parts.bgp is not None:
            with self._measures.inside(parts.triples) as measure:
                solutions = parts.bgp.solutions(source)
                measure.took(solutions.size, bytes_of(solutions))
            yield solutions

    def _test(self, expr: ast.Expr, solutions: Solutions, active: ActiveGraph) -> Bools:
        with self._measures.inside(expr) as measure:
            passed = super()._test(expr, solutions, active)
            measure.took(int(passed.sum()), rows_in=solutions.size)
        return passed


def bytes_of(solutions: Solutions) -> int:
    """The bytes of the columns of some solutions."""
    of_events = 0 if solutions.event is None else int(solutions.event.nbytes)
    return of_events + sum(int(column.nbytes) for column in solutions.columns.values())


@record
class EventSolutions:
    """The r solutions of a pattern on a batch of events.

    `event` int64 [r] is the index of each solution's event in the batch, ascending. `columns` has
    int32 codes [r] into `terms` for each variable that the pattern may bind, -1 where it is
    unbound. Codes below the batch's number of terms are codes of the batch.
    """

    event: Int64s
    columns: Mapping[str, Int32s]
    terms: Sequence[str]

    def take(self, rows: Int64s) -> EventSolutions:
        """The solutions at some rows."""
        columns = {name: codes[rows] for name, codes in self.columns.items()}
        return EventSolutions(self.event[rows], columns, self.terms)


class GpmEvaluator:
    """One graph pattern, prepared for many batches.

    Parts that depend only on the knowledge base are evaluated once, and then only joined. `options`
    are the query's options for expressions; EXISTS is evaluated here. `evaluation` sets the method.
    `limits` bound the solutions, computed literals and time of an event. `measures`, if given, get
    the measures. A pattern `on_windows` is evaluated on window events (`WindowPartition`).
    `variables` are those that a solution may bind, without blank nodes of the pattern.
    """

    def __init__(
        self,
        pattern: n.Pattern,
        knowledge: KnowledgeBase,
        options: Options | None = None,
        evaluation: PatternEvaluation = FASTEST,
        limits: Limits = DEFAULT_LIMITS,
        measures: Measures | None = None,
        on_windows: bool = False,
    ) -> None:
        self.pattern, self._limits = pattern, limits
        self._exceeding: dict[int, str] = {}
        self.variables = sorted(visible(possible(pattern)))
        self.evaluation = evaluation
        given = knowledge, options or Options(), evaluation
        self._operators: PatternOperators
        if on_windows:
            from spaseq.gpm.patterns.window_operators import WindowOperators  # few queries need it

            self._operators = windows = WindowOperators(*given)
            windows.for_pattern(pattern)
        elif measures is None:
            self._operators = PatternOperators(*given)
        else:
            self._operators = MeasuredOperators(*given, measures)

    def take_failures(self) -> list[FailedRequest]:
        """The failed requests to endpoints since the last call."""
        return self._operators.take_failures()

    def parts(self, pattern: n.Pattern) -> Conjunction:
        """The pattern, or a part of it, as a conjunction."""
        return self._operators.parts(pattern)

    def constant(self, part: n.Pattern) -> Solutions | None:
        """The solutions of a part that uses neither an event nor an endpoint.

        None for other parts, and for parts that exceed the limits.
        """
        try:
            with spending(Budget(self._limits)):
                return self._operators.constant(part)
        except LimitExceeded:
            return None

    def take_exceeding(self) -> dict[int, str]:
        """The events of the last batch that exceeded a limit, each with the reason."""
        exceeding, self._exceeding = self._exceeding, {}
        return exceeding

    def evaluate(self, events: EventBatch | VerticalPartition) -> EventSolutions:
        """The solutions on each event, as a multiset.

        Blank nodes of the pattern are not returned as variables, but count for multiplicity. Pass a
        `VerticalPartition` to evaluate several patterns on one batch.
        """
        index = events if isinstance(events, VerticalPartition) else VerticalPartition(events)
        return self._within_limits(index, 0)

    def _within_limits(self, index: VerticalPartition, first: int) -> EventSolutions:
        """The solutions on the events that exceed no limit; `first` is the first event's number."""
        events = len(index.batch)
        try:
            with spending(Budget.of_events(self._limits, events)):
                return self._evaluated(index)
        except (LimitExceeded, MemoryError) as error:
            exceeded = error if isinstance(error, LimitExceeded) else LimitExceeded(OUT_OF_MEMORY)
        if events > 1 and not exceeded.shared:
            return self._in_parts(index, first)
        self._exceeding.update((first + i, exceeded.reason) for i in range(events))
        return self._none(index)

    def _none(self, index: VerticalPartition) -> EventSolutions:
        columns = {v: np.empty(0, np.int32) for v in self.variables}
        return EventSolutions(np.empty(0, np.int64), columns, index.lexicon)

    def _in_parts(self, index: VerticalPartition, first: int) -> EventSolutions:
        """The solutions of a batch, part by part."""
        events = np.arange(len(index.batch), dtype=np.int64)
        parts = []
        for some in np.array_split(events, min(thresholds.current.budget_parts, len(events))):
            part = self._within_limits(index.part(some), first + int(some[0]))
            parts.append((part.event + some[0], part.columns))
        columns = {v: np.concatenate([c[v] for _, c in parts]) for v in self.variables}
        return EventSolutions(np.concatenate([e for e, _ in parts]), columns, index.lexicon)

    def _evaluated(self, index: VerticalPartition) -> EventSolutions:
        active = ActiveGraph(index, len(index.batch))
        solutions = active.spread(self._operators.solutions(self.pattern, active))
        for variable in self.variables:
            if variable not in solutions.columns:
                solutions = solutions.with_column(variable, solutions.column(variable))
        assert solutions.event is not None
        return EventSolutions(
            solutions.event, only(solutions.columns, self.variables), index.lexicon
        )


CurrentEvaluator: TypeAlias = Callable[[], GpmEvaluator]
"""The evaluator of a GPM with the present knowledge base."""
