"""Evaluation of a graph pattern on batches of events (SPARQL 1.1 section 18.6, in columns)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaseq.algebra import nodes as n
from spaseq.algebra.scope import possible, visible
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.expr.compile import Options
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.patterns.active_graph import ActiveGraph
from spaseq.gpm.patterns.conjunction import Conjunction
from spaseq.gpm.patterns.operators import PatternOperators
from spaseq.gpm.patterns.services import Services
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.query_plan import FASTEST, PatternEvaluation
from spaseq.rdf.columns.event_batch import EventBatch


@dataclass(frozen=True, slots=True)
class EventSolutions:
    """The r solutions of a pattern on a batch of events.

    `event` int64 [r] is the index of each solution's event in the batch, ascending. `columns` has
    int32 codes [r] into `terms` for each variable that the pattern may bind, -1 where it is
    unbound. Codes below the batch's number of terms are codes of the batch.
    """

    event: Int64s
    columns: Mapping[str, Int32s]
    terms: Sequence[str]


class GpmEvaluator:
    """One graph pattern, prepared for many batches.

    Parts that depend only on the knowledge base are evaluated once, and then only joined. `options`
    are the query's options for expressions; EXISTS is evaluated here. `evaluation` sets the method.
    """

    def __init__(
        self,
        pattern: n.Pattern,
        knowledge: KnowledgeBase,
        options: Options | None = None,
        evaluation: PatternEvaluation = FASTEST,
    ) -> None:
        self._pattern = pattern
        self._variables = sorted(visible(possible(pattern)))
        self._operators = PatternOperators(knowledge, options or Options(), evaluation)

    @property
    def services(self) -> Services:
        """The evaluator of requests to endpoints, with the failed ones."""
        return self._operators.services

    @property
    def parts(self) -> Conjunction:
        """The pattern as a conjunction."""
        return self._operators.parts(self._pattern)

    def constant(self, part: n.Pattern) -> Solutions | None:
        """The solutions of a part that reads no event and asks no endpoint, None for others."""
        return self._operators.constant(part)

    def evaluate(self, events: EventBatch | VerticalPartition) -> EventSolutions:
        """The solutions on each event, as a multiset.

        Blank nodes of the pattern are not returned as variables, but count for multiplicity. Pass a
        `VerticalPartition` to evaluate several patterns on one batch.
        """
        index = events if isinstance(events, VerticalPartition) else VerticalPartition(events)
        active = ActiveGraph(index, len(index.batch))
        found = active.spread(self._operators.solutions(self._pattern, active))
        assert found.event is not None
        columns = {v: found.column(v) for v in self._variables}
        return EventSolutions(found.event, columns, index.lexicon)
