"""Correlated GPMs: evaluated when the sequence takes an event, with substituted bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import proxy

from spaseq import thresholds
from spaseq.algebra.nodes import Pattern
from spaseq.algebra.remote import asks_endpoints
from spaseq.algebra.substitution import substituted
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.solution_rows import event_triples
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, over_limit, warn
from spaseq.rdf.program_events import batch_from_events

if TYPE_CHECKING:
    from spaseq.gpm.single_event.event_graph import EventGraph
    from spaseq.gpm.single_event.event_operators import CorrelatedEvent

WindowOf: TypeAlias = "Callable[[str], tuple[VerticalPartition, Mapping[str, str]] | None]"
"""The window event of a value of EVENT, with its values of PARTITION BY."""

Values: TypeAlias = "tuple[tuple[str, str], ...]"
"""Variables and the terms that are substituted for them."""

Terms: TypeAlias = "tuple[str | None, ...]"
"""A solution, in the order of the variables."""

_SHOWN = 300
"""Characters of an event in a report."""


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

        `window_of` returns the window event of a value of EVENT, if it is one.
        """
        self._make_window = window_of
        self._plan, self._on_bad, self._limits = plan, on_bad, limits
        patterns = [each.pattern for each in plan.patterns.gpms if each.correlation is not None]
        asks = any(asks_endpoints(each, knowledge.endpoints) for each in patterns)
        # The log of endpoints' answers must see each use of an answer.
        remembered = (
            0 if asks and knowledge.asked is not None else thresholds.current.remembered_results
        )
        # A strong reference would be a cycle, which keeps a run that is over in memory.
        self.solve = lru_cache(remembered)(partial(CorrelatedEvaluator._solve, proxy(self)))
        self._graph = lru_cache(1)(_graph_of)  # one event after the other is solved
        self.use(knowledge)

    @property
    def is_used(self) -> bool:
        """Whether there are such GPMs."""
        return any(gpm.correlation is not None for gpm in self._plan.patterns.gpms)

    def use(self, knowledge: KnowledgeBase) -> None:
        """Use another knowledge base from now on."""
        self._knowledge = knowledge.only(self._plan.inputs.kbs)
        self._ready: dict[tuple[int, frozenset[str]], CorrelatedEvent | None] = {}
        # A window event remembers solutions of its EVENT blocks, which may read graphs.
        self._window_of = self._make_window and lru_cache(1)(self._make_window)
        self.solve.cache_clear()

    def _evaluator(self, pattern: Pattern, on_windows: bool = False) -> GpmEvaluator:
        how = self._plan.expressions, self._plan.patterns.evaluation, self._limits
        return GpmEvaluator(pattern, self._knowledge, *how, on_windows=on_windows)

    def _without_columns(self, gpm: int, names: frozenset[str]) -> CorrelatedEvent | None:
        """What evaluates a GPM with values of some variables on one event, if columns need not."""
        key = gpm, names
        if key not in self._ready:
            from spaseq.gpm.single_event.event_operators import CorrelatedEvent

            gpm_plan, expressions = self._plan.patterns.gpms[gpm], self._plan.expressions
            made = gpm_plan.variables, self._evaluator, expressions, self._limits
            self._ready[key] = CorrelatedEvent.of(gpm_plan.pattern, names, *made)
        return self._ready[key]

    def _rows(self, gpm: int, event: str, values: Values) -> list[Terms] | None:
        """The result of `_solve`; None if it needs columns."""
        known = dict(values)
        ready = self._without_columns(gpm, frozenset(known))
        return None if ready is None else ready.solutions(self._graph(event), known)

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


def _graph_of(event: str) -> EventGraph:
    """The graph of a value of EVENT."""
    from spaseq.gpm.single_event.event_graph import EventGraph  # few queries need it

    return EventGraph(event_triples(event))


def _shown(gpm: str, event: str) -> str:
    """The name of the event in words."""
    text = " ".join(f"{' '.join(triple)} ." for triple in event_triples(event))
    return f"an event of {gpm} with {text[:_SHOWN]}"


def _texts(solutions: EventSolutions, variable: str) -> list[str | None]:
    codes = solutions.columns.get(variable)
    size = len(solutions.event)
    if codes is None:
        return [None] * size
    return [None if c < 0 else solutions.terms[c] for c in codes.tolist()]
