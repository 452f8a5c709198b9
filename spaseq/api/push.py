"""The engine in process: the caller pushes events and gets the answers that are certain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from spaseq.algebra.answers import Answer
from spaseq.api.match import Match, PartialMatch
from spaseq.api.prepare import load_knowledge
from spaseq.automaton.run.event_rows import EventRows
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import BadEvents, InputError, RunError, SpaseqError, UsageError
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.ontology import entailing_schema
from spaseq.options import KbInput, PushKeywords, RunOptions
from spaseq.plan.predicates import stream_predicates
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import triples_of
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import LIMIT_MS, time_ms
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
        **options: Unpack[PushKeywords],
    ) -> None:
        """Compile a query and start it.

        Args:
            query: query text.
            kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
            name: the name of the query in its matches.
            on_bad: called for each event that lacks an endpoint's answer or exceeds a limit; by
                default the logger `spaseq` warns.
            options: any of `spaseq.options.PushKeywords`.

        Raises:
            QueryError: the query has errors; all are in it.
            InputError: a knowledge base is missing or does not load.
            UsageError: an option is unknown or contradicts another.
        """
        chosen = RunOptions.of("Engine", PushKeywords, options)
        planning = chosen.planning
        schema = entailing_schema(planning.ontology, planning.entailment, planning.limits)
        how = CompileOptions(
            schema=schema, disable=planning.disable, pushed=True, partial=planning.partial
        )
        plan = compile_query(query, name, how)
        self._plan = plan
        self._limits = chosen.limits
        knowledge = load_knowledge([plan], kb or {}, chosen.knowledge)
        self._names = stream_names([self._plan])
        self._counters = {iri: InstantCounter(ordered=True) for iri in self._plan.inputs.streams}
        self._matcher = PatternStage(self._plan, knowledge, on_bad, chosen.limits)
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
        self._failure: str | None = None  # why the state cannot be used any more

    @property
    def suppressed(self) -> int:
        """How many answers `limit_per_event` has suppressed so far."""
        return self._stage.suppressed

    def push(self, stream: str, graph: Any, time: datetime | int) -> list[Match]:
        """Push one event of a stream, which is named by the query's name for it or its IRI.

        An event that is refused leaves the engine as it was.

        Raises:
            UsageError: the query has no such stream, the time is no time or goes back, or the
                engine is closed.
            InputError: the graph is not RDF.
            RunError: the query failed at the event, for instance in an extension function.
        """
        self._check_open()
        iri = self._iri(stream)
        now = self._checked(time)
        triples = triples_of(graph, self._limits)
        counter = self._counters[iri]
        position = counter.position
        try:
            rows = self._events.match(iri, now, counter.next(now), None, triples)
        except BaseException:
            counter.return_to(position)
            raise
        if rows is not None:
            self._stage.push(rows)
        self._now = self._floor = now
        return self._matches(now - 1, self._alone)

    def push_many(self, batch: Iterable[tuple[str, Event]]) -> list[Match]:
        """Push (stream, event) pairs in order of time; returns the certain answers, in order.

        Raises:
            BadEvents: some events were refused, for a reason that `push` gives. All others were
                taken, and the error has their answers.
            UsageError: the engine is closed.
            RunError: as `push`; no event was taken.
        """
        self._check_open()
        given = list(batch)
        taken, bad = self._taken(given, parsed=False)
        rows = None if bad else self._rows_if_read(taken)
        if rows is None:
            taken, bad = self._taken(given, parsed=True)
            rows = self._rows(taken)
        for found in rows:
            self._stage.push(found)
        if taken:
            self._now = self._floor = taken[-1].time
        matches = [] if self._now is None else self._matches(self._now - 1)
        if bad:
            raise BadEvents(bad, matches)
        return matches

    def _taken(
        self, given: Sequence[tuple[str, Event]], parsed: bool
    ) -> tuple[list[_Pushed], list[tuple[int, SpaseqError]]]:
        """The good events of a batch; place and error of each bad one.

        With `parsed`, graphs become triples, so that bad ones are found.
        """
        taken: list[_Pushed] = []
        bad: list[tuple[int, SpaseqError]] = []
        floor = self._floor
        for place, item in enumerate(given):
            try:
                stream, event = _pair(item)
                iri, time = self._iri(stream), _not_before(floor, event.time)
                triples = triples_of(event.graph, self._limits) if parsed else None
            except SpaseqError as error:
                bad.append((place, error))
            else:
                floor = time
                taken.append(_Pushed(iri, time, event.iri, event.graph, triples))
        return taken, bad

    def _rows_if_read(self, taken: Sequence[_Pushed]) -> list[SolutionBatch | EventRows] | None:
        """The solutions of events; None if a graph is not RDF."""
        try:
            return self._rows(taken)
        except InputError:
            return None

    def _rows(self, taken: Sequence[_Pushed]) -> list[SolutionBatch | EventRows]:
        """The solutions of events, stream by stream."""
        events_of: dict[str, list[_Pushed]] = {}
        for event in taken:
            events_of.setdefault(event.stream, []).append(event)
        found: list[SolutionBatch | EventRows] = []
        with self._counted(*events_of):
            for iri, events in events_of.items():
                if len(events) > _FEW and all(event.is_text for event in events):
                    texts = [(event.time, event.name, event.graph) for event in events]
                    found.append(self._matcher.match(self._reader(iri).batch(texts)))
                else:
                    found += self._rows_of_each(iri, events)
        return found

    def _rows_of_each(
        self, iri: str, events: Sequence[_Pushed]
    ) -> Iterator[SolutionBatch | EventRows]:
        counter = self._counters[iri]
        graphs = [
            triples_of(e.graph, self._limits) if e.triples is None else e.triples for e in events
        ]
        for event, triples in zip(events, graphs, strict=True):
            k = counter.next(event.time)
            rows = self._events.match(iri, event.time, k, event.name, triples)
            if rows is not None:
                yield rows

    @contextmanager
    def _counted(self, *streams: str) -> Iterator[None]:
        """If the context raises, its events have not been counted."""
        positions = [self._counters[iri].position for iri in streams]
        try:
            yield
        except BaseException:
            for iri, position in zip(streams, positions, strict=True):
                self._counters[iri].return_to(position)
            raise

    def _reader(self, iri: str) -> TextEvents:
        if iri not in self._texts:
            from spaseq.rdf.in_memory.text_events import (
                TextEvents,  # numba, which single events do without
            )

            predicates = stream_predicates([self._plan], iri)
            self._texts[iri] = TextEvents(iri, self._counters[iri], predicates, self._limits)
        return self._texts[iri]

    def partials(self) -> list[PartialMatch]:
        """The partial matches whose windows have closed since the last call, in order.

        A window has closed when no event of its time can follow. The engine looks for partial
        matches if it was made with `partial=True`; otherwise there are none.
        """
        name = self._plan.identity.name
        return [PartialMatch.of(name, partial) for partial in self._stage.partials()]

    def advance(self, time: datetime | int) -> list[Match]:
        """Promise that no event at or before a time follows; returns the certain answers."""
        self._check_open()
        return self._matches(time_ms(time))

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
        answers = self._held + self._advanced(watermark, ahead)
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

    def _checked(self, time: datetime | int) -> int:
        if type(time) is int and self._floor <= time < LIMIT_MS:  # the usual case
            return time
        return _not_before(self._floor, time)

    def _advanced(self, watermark: int, ahead: bool) -> list[Answer]:
        """The answers of the sequence; a failure in their midst leaves no state to go on from."""
        try:
            return self._stage.advance(watermark, ahead)
        except BaseException as error:
            self._failure = f"{type(error).__name__}: {error}"
            raise

    def _check_open(self) -> None:
        if self._failure is not None:
            raise RunError(f"the engine cannot go on after a failure: {self._failure}")
        if self._closed:
            raise UsageError("the engine is closed")


@dataclass(frozen=True, slots=True)
class _Pushed:
    """An event of a batch; `triples` is its graph, if that has been read."""

    stream: str  # IRI
    time: int  # ms
    name: str | None
    graph: Any
    triples: list[Triple] | None

    @property
    def is_text(self) -> bool:
        """Whether the kernel can read the graph."""
        return self.triples is None and isinstance(self.graph, str)


def _pair(item: object) -> tuple[str, Event]:
    """The (stream, event) pair that an item of a batch is."""
    match item:
        case (str() as stream, Event() as event) if event.iri is None or isinstance(event.iri, str):
            return stream, event
    raise UsageError(f"a batch has (stream, spaseq.Event) pairs, not {repr(item)[:100]}")


def _not_before(floor: int, when: datetime | int) -> int:
    """A time in ms; UsageError if it is none, or before `floor`."""
    time = time_ms(when)
    if time < floor:
        raise UsageError(f"time {time} ms goes back: the engine stands at {floor} ms")
    return time
