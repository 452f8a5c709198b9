"""The engine in process: the caller pushes events and gets the answers that are certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from spaseq.algebra.answers import Answer
from spaseq.api.match import Match, to_ms
from spaseq.api.prepare import load_knowledge
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.ontology import entailing_schema
from spaseq.options import EngineKeywords, KbInput, RunOptions
from spaseq.plan.predicates import stream_predicates
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import triples_of
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.job.binding import stream_names
from spaseq.sources.iterables import Event
from spaseq.stages.sequence import PatternStage, SequenceStage

if TYPE_CHECKING:
    from spaseq.rdf.in_memory.text_events import TextEvents

_FEW = 16
"""Up to this many events of a stream are matched one by one, which is faster than as a batch."""


class Engine:
    """One query, evaluated as events are pushed: no threads, no timers, no JVM.

    Times never decrease, across all streams. Each call returns the answers that it makes certain:
    they end before the time of the latest event, because other events of that time may follow.
    `limit_per_event` bounds the answers that end at the same instant (and lie in the same
    partition); `suppressed` counts the others.

    >>> engine = Engine('''
    ...   SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
    ...   WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> "hot" } }''')
    >>> engine.push("S", '<http://example/pan> <http://example/is> "hot" .', 1000)
    []
    >>> [m.bindings["x"].n3() for m in engine.advance(1000)]
    ['<http://example/pan>']
    """

    def __init__(
        self,
        query: str,
        kb: Mapping[str, KbInput] | None = None,
        name: str = "query",
        *,
        on_bad: OnBad = warn,
        **options: Unpack[EngineKeywords],
    ) -> None:
        """Compile a query and start it.

        Args:
            query: query text.
            kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
            name: the name of the query in its matches.
            on_bad: called for each event that an endpoint gave no answer for; by default the logger
                `spaseq` warns.
            options: any of `spaseq.options.EngineKeywords`, as for `spaseq.run`.

        Raises:
            QueryError: the query has errors; all are in it.
            InputError: a knowledge base is missing or does not load.
            UsageError: an option is unknown or contradicts another.
        """
        chosen = RunOptions.of("Engine", EngineKeywords, options)
        planning = chosen.planning
        schema = entailing_schema(planning.ontology, planning.entailment)
        plan = compile_query(
            query,
            name,
            CompileOptions(schema=schema, disable=planning.disable, pushed=True),
        )
        self._plan = plan
        knowledge = load_knowledge([plan], kb or {}, chosen.knowledge)
        self._names = stream_names([self._plan])
        self._counters = {iri: InstantCounter(ordered=True) for iri in self._plan.inputs.streams}
        self._matcher = PatternStage(self._plan, knowledge, on_bad)
        self._events = SingleEventStage(self._plan, self._matcher)
        self._texts: dict[str, TextEvents] = {}
        self._stage = SequenceStage(self._plan, chosen.stages, knowledge, on_bad)
        # The events of one stream have different instants, so each is processed when it comes.
        self._alone = len(self._plan.inputs.streams) == 1
        self._held: list[Answer] = []  # answers that end at the time of the latest event
        self._now: int | None = None  # time of the latest event
        # No event at or before `_done`, or below `_floor`, follows.
        self._done = self._floor = -(2**63)
        self._closed = False

    @property
    def suppressed(self) -> int:
        """How many answers `limit_per_event` has suppressed so far."""
        return self._stage.suppressed

    def push(self, stream: str, graph: Any, time: datetime | int) -> list[Match]:
        """Push one event of a stream, which is named by the query's name for it or its IRI.

        Raises:
            UsageError: the query has no such stream, the time goes back, or the engine is closed.
        """
        self._check_open()
        iri = self._iri(stream)
        now = self._checked(to_ms(time))
        self._push_one(iri, now, None, triples_of(graph))
        return self._matches(now - 1, self._alone)

    def push_many(self, batch: Iterable[tuple[str, Event]]) -> list[Match]:
        """Push (stream, event) pairs in order of time; returns the certain answers, in order."""
        self._check_open()
        events_of: dict[str, list[tuple[int, str | None, Any]]] = {}
        for stream, event in batch:
            iri = self._iri(stream)
            time = self._checked(to_ms(event.time))
            events_of.setdefault(iri, []).append((time, event.iri, event.graph))
        for iri, events in events_of.items():
            if len(events) > _FEW and all(isinstance(graph, str) for _, _, graph in events):
                self._stage.push(self._matcher.match(self._reader(iri).batch(events)))
            else:
                self._push_each(iri, events)
        return [] if self._now is None else self._matches(self._now - 1)

    def _push_each(self, iri: str, events: list[tuple[int, str | None, Any]]) -> None:
        graphs = [triples_of(graph) for _, _, graph in events]
        for (time, name, _), triples in zip(events, graphs, strict=True):
            self._push_one(iri, time, name, triples)

    def _push_one(self, iri: str, time: int, name: str | None, triples: list[Triple]) -> None:
        rows = self._events.match(iri, time, self._counters[iri].next(time), name, triples)
        if rows is not None:
            self._stage.push(rows)

    def _reader(self, iri: str) -> TextEvents:
        if iri not in self._texts:
            from spaseq.rdf.in_memory.text_events import (
                TextEvents,  # numba, which single events do without
            )

            predicates = stream_predicates([self._plan], iri)
            self._texts[iri] = TextEvents(iri, self._counters[iri], predicates)
        return self._texts[iri]

    def advance(self, time: datetime | int) -> list[Match]:
        """Promise that no event at or before a time follows; returns the certain answers."""
        self._check_open()
        return self._matches(to_ms(time))

    def close(self) -> list[Match]:
        """End all streams; the remaining answers. No event can be pushed afterwards."""
        self._check_open()
        self._closed = True
        return [Match(self._plan.identity.name, a) for a in self._held + self._stage.close()]

    def _matches(self, watermark: int, ahead: bool = False) -> list[Match]:
        """The certain answers by a watermark; with `ahead`, later events are processed, too."""
        if watermark <= self._done and not ahead:
            return []
        self._done = watermark
        self._floor = max(self._floor, watermark + 1)
        answers = self._held + self._stage.advance(watermark, ahead)
        certain = len(answers)
        while certain and answers[certain - 1].end[0] > watermark:  # they are in order
            certain -= 1
        self._held, name = answers[certain:], self._plan.identity.name
        return [Match(name, a) for a in answers[:certain]]

    def _iri(self, stream: str) -> str:
        iri = self._names.get(stream)
        if iri is None:
            known = ", ".join(sorted(self._names))
            raise UsageError(f"the query reads no stream {stream}; streams: {known}")
        return iri

    def _checked(self, time: int) -> int:
        if time < self._floor:
            raise UsageError(f"time {time} ms goes back: the engine stands at {self._floor} ms")
        self._now = self._floor = time
        return time

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the engine is closed")
