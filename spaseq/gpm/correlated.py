"""Correlated GPMs: evaluated when the sequence takes an event, with earlier bindings put in."""

from __future__ import annotations

from functools import lru_cache, partial
from weakref import proxy

from spaseq.algebra.correlation import EVENT
from spaseq.algebra.remote import asks_endpoints
from spaseq.algebra.substitution import substituted
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import batch_from_events
from spaseq.rdf.inputs.bad_input import BadInput, OnBad, over_limit, warn
from spaseq.rdf.terms.term import Triple, literal_text, scoped_term, split_literal
from spaseq.rdf.terms.vocabulary import XSD_STRING

_REMEMBERED = 4096
"""Number of (event, values) pairs in the cache of solutions. Runs often have equal values."""

_SHOWN = 300
"""Characters of an event in a report."""


def with_events(found: EventSolutions, index: VerticalPartition) -> EventSolutions:
    """The solutions with the variable EVENT: the triples of their event as one literal.

    Blank nodes in it have their labels of answers.
    """
    texts = {e: _event_text(index.batch, e) for e in dict.fromkeys(found.event.tolist())}
    codes = index.lexicon.encode([texts[e] for e in found.event.tolist()])
    return EventSolutions(found.event, {**found.columns, EVENT: codes}, found.terms)


def _event_text(batch: EventBatch, event: int) -> str:
    rows = slice(int(batch.start[event]), int(batch.start[event + 1]))
    columns = [term_table(batch.terms).take(c[rows]) for c in (batch.s, batch.p, batch.o)]
    scope = batch.stream, int(batch.time[event]), int(batch.k[event])
    lines = [scoped_term(*scope, term) for triple in zip(*columns, strict=True) for term in triple]
    return literal_text("\n".join(lines), XSD_STRING)  # no canonical term has a line break


def _triples(event: str) -> list[Triple]:
    lines = split_literal(event)[0].split("\n")
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=False))


class CorrelatedEvaluator:
    """The correlated GPMs of a plan: solutions of one event, given values for its variables."""

    def __init__(
        self,
        plan: QueryPlan,
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """It calls `on_bad` for each event that lacks an endpoint's answer or exceeds a limit."""
        self._plan, self._on_bad, self._limits = plan, on_bad, limits
        asks = any(asks_endpoints(own.pattern, knowledge.endpoints) for own in plan.patterns.gpms)
        # Whoever keeps account of what endpoints answer must see each use of an answer.
        remembered = 0 if asks and knowledge.asked is not None else _REMEMBERED
        # A strong reference would be a cycle, which keeps a run that is over in memory.
        self.solve = lru_cache(remembered)(partial(CorrelatedEvaluator._solve, proxy(self)))
        self.use(knowledge)

    def use(self, knowledge: KnowledgeBase) -> None:
        """Use another knowledge base from now on."""
        self._knowledge = knowledge.only(self._plan.inputs.kbs)
        self.solve.cache_clear()

    def _solve(
        self, gpm: int, event: str, values: tuple[tuple[str, str], ...]
    ) -> tuple[tuple[str | None, ...], ...]:
        """The terms of each solution, in order of the GPM's variables; EVENT stays unbound."""
        plan, own = self._plan, self._plan.patterns.gpms[gpm]
        pattern = substituted(own.pattern, dict(values))
        evaluation = plan.patterns.evaluation
        evaluator = GpmEvaluator(
            pattern, self._knowledge, plan.expressions, evaluation, self._limits
        )
        batch = batch_from_events("", [(0, None, _triples(event))], InstantCounter())
        found = evaluator.evaluate(batch)
        for failed in evaluator.services.take_failures():
            self._on_bad(
                BadInput(failed.url, None, f"no answer: {failed.reason}", _shown(own.name, event))
            )
        for reason in evaluator.take_exceeding().values():
            self._on_bad(over_limit(plan.identity.name, reason, _shown(own.name, event)))
        columns = [_texts(found, v) for v in own.variables]
        return tuple(dict.fromkeys(zip(*columns, strict=True)))


def _shown(gpm: str, event: str) -> str:
    """Which event it is, in words."""
    text = " ".join(f"{' '.join(triple)} ." for triple in _triples(event))
    return f"an event of {gpm} with {text[:_SHOWN]}"


def _texts(found: EventSolutions, variable: str) -> list[str | None]:
    codes = found.columns.get(variable)
    size = len(found.event)
    if codes is None:
        return [None] * size
    return [None if c < 0 else found.terms[c] for c in codes.tolist()]
