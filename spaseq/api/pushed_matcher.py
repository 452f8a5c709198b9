"""The solutions of pushed events: matched one by one, or many of a stream as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spaseq import thresholds
from spaseq.api.pushed_streams import PushedEvent
from spaseq.errors import InputError
from spaseq.limits import Limits
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.in_memory.program_events import triples_of
from spaseq.runtime.pushed import Found, PushedQueries

if TYPE_CHECKING:
    from spaseq.lift.pushed_rows import LiftedEvent, LiftedMany
    from spaseq.rdf.in_memory.text_events import TextEvents


class PushedMatcher:
    """Matches pushed events with the graph patterns of an engine's queries.

    It numbers the events of equal time in each stream. Events that raise an error get no number.
    """

    def __init__(self, queries: PushedQueries, limits: Limits) -> None:
        self._queries, self._limits = queries, limits
        self._texts: dict[str, TextEvents] = {}  # by stream

    def use(self, streams: Iterable[str]) -> None:
        """Match the events of some streams, by IRI, for the queries that there are now."""
        self._counters = {iri: self._queries.counter(iri) for iri in streams}
        self._texts.clear()

    def reads(self, plan: QueryPlan, iri: str) -> bool:
        """Whether graphs of a stream are read with all predicates that a query looks at."""
        kept = self._texts[iri].predicates if iri in self._texts else None
        wanted = stream_predicates((plan,), iri)
        return kept is None or (wanted is not None and kept.issuperset(wanted))

    def match_few(self, iri: str, events: Sequence[LiftedEvent]) -> Found:
        """The solutions of an event, or of the events of a row in order of time."""
        counter = self._counters[iri]
        position = counter.position
        found: Found = []
        try:
            for time, name, triples in events:
                found += self._queries.match_event(iri, (time, counter.next(time)), name, triples)
        except BaseException:
            counter.return_to(position)
            raise
        return found

    def match_if_read(
        self, events: Sequence[PushedEvent], lifted: Mapping[str, LiftedMany]
    ) -> Found | None:
        """The solutions of events, as from `match`; None if a graph is not RDF."""
        try:
            return self.match(events, lifted)
        except InputError:
            return None

    def match(self, events: Sequence[PushedEvent], lifted: Mapping[str, LiftedMany]) -> Found:
        """The solutions of events, stream by stream.

        `lifted` has, by stream, the rows that have been made graph events already.

        Raises:
            InputError: a graph is not RDF.
        """
        events_of: dict[str, list[PushedEvent]] = {}
        for event in events:
            events_of.setdefault(event.stream, []).append(event)
        positions = {iri: self._counters[iri].position for iri in events_of}
        try:
            return self._match(events_of, lifted)
        except BaseException:
            for iri, position in positions.items():
                self._counters[iri].return_to(position)
            raise

    def _match(
        self, events_of: Mapping[str, Sequence[PushedEvent]], lifted: Mapping[str, LiftedMany]
    ) -> Found:
        found: Found = []
        for iri, own in events_of.items():
            if iri in lifted:
                for batch in lifted[iri].batches:
                    numbered = batch.with_k(self._counters[iri].assign(batch.time))
                    found += self._queries.match_batch(numbered)
            elif len(own) > thresholds.current.few_rows and all(event.is_text for event in own):
                texts = [(event.time, event.name, event.graph) for event in own]
                found += self._queries.match_batch(self._reader(iri).batch(texts))
            else:
                found += self._match_each(iri, own)
        return found

    def _match_each(self, iri: str, events: Sequence[PushedEvent]) -> Found:
        counter, found = self._counters[iri], []
        graphs = [
            triples_of(e.graph, self._limits) if e.triples is None else e.triples for e in events
        ]
        for event, triples in zip(events, graphs, strict=True):
            instant = event.time, counter.next(event.time)
            found += self._queries.match_event(iri, instant, event.name, triples)
        return found

    def _reader(self, iri: str) -> TextEvents:
        if iri not in self._texts:
            from spaseq.rdf.in_memory.text_events import (
                TextEvents,  # numba, which single events do without
            )

            plans = [query.plan for query in self._queries.queries]
            predicates = stream_predicates(plans, iri)
            self._texts[iri] = TextEvents(iri, self._counters[iri], predicates, self._limits)
        return self._texts[iri]
