"""Checks of pushed items before a query gets them: the stream, the time, and the graph or row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaseq import thresholds
from spaseq.errors import InputError, SpaseqError, UsageError
from spaseq.limits import Limits
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.graph_times import TimeTerms, time_remark
from spaseq.rdf.inputs.stream_options import warn_once
from spaseq.rdf.program_events import triples_of
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import Time
from spaseq.records import record
from spaseq.runtime.pushed import Found, PushedQueries
from spaseq.sources.iterables import Event, name_of_event, rows_without_a_lift

if TYPE_CHECKING:
    from spaseq.lift.pushed_rows import LiftedEvent, LiftedMany, RowLifter
    from spaseq.rdf.program_events import TextEvents


@record
class PushedEvent:
    """An event of a batch; `triples` is its graph, once parsed."""

    stream: str  # IRI
    time: int  # ms
    name: str | None
    graph: Any
    triples: list[Triple] | None

    @property
    def is_text(self) -> bool:
        """Whether the kernel can parse the graph."""
        return self.triples is None and isinstance(self.graph, str)


class PushedStreams:
    """The streams of an engine: their names, their lifts, and the checks of what is pushed.

    `names` has the IRI of each stream by its names. Integer times count a `time_unit`. A time must
    be at least a `floor` (ms). A call that raises an error changes nothing.
    """

    def __init__(self, limits: Limits, time_unit: str = "ms") -> None:
        self._limits, self.time_unit = limits, time_unit
        self._times: dict[str, TimeTerms] = {}  # by IRI
        self.names: dict[str, str] = {}
        self._lifters: dict[str, RowLifter] = {}  # by IRI

    def lift(self, lifts: Mapping[str, str | Path]) -> None:
        """Set the lifts of some streams: by the stream's name, the text or the path of its lift.

        Raises:
            UsageError: there is no such stream.
            QueryError: a lift has errors.
            InputError: a lift's file cannot be read.
        """
        if not lifts:
            return
        from spaseq.lift.pushed_rows import RowLifter  # other engines do not import lifts

        for name, lift in lifts.items():
            iri = self.iri(name)
            self._lifters[iri] = RowLifter(iri, lift, self._limits, self.time_unit)

    def iri(self, name: str) -> str:
        """The IRI of the stream with a name; UsageError if there is none."""
        iri = self.names.get(name)
        if iri is None:
            known = ", ".join(sorted(self.names))
            raise UsageError(f"the query reads no stream {name}; streams: {known}")
        return iri

    @property
    def filtered(self) -> int:
        """Number of rows that gave no event, because their lift had no solution for them."""
        return sum(lifter.filtered for lifter in self._lifters.values())

    def events(self, iri: str, given: Any, time: Time | None, floor: int) -> Sequence[LiftedEvent]:
        """(time, name, triples) of an event, or of each event that a lift makes of a row."""
        lifter = self._lifters.get(iri)
        if lifter is not None:
            events = lifter.of_row(given, None if time is None else self._given(iri, time))
            if events:
                _not_before(floor, events[0][0])
            lifter.rows += 1
            return events
        if isinstance(given, Mapping):
            raise rows_without_a_lift("dict is a row", iri)
        if isinstance(given, Event):
            raise UsageError(
                "push takes a graph and its time; push_many takes (stream, Event) pairs"
            )
        if time is None:
            raise UsageError("an event needs a time: push(stream, graph, time)")
        now = _not_before(floor, self._given(iri, time))
        return [(now, None, triples_of(given, self._limits))]

    def _given(self, iri: str, time: Time) -> int:
        """The time (ms) that a program gives an event; UsageError if it is invalid."""
        times = self._times.get(iri)
        if times is None:
            warned = partial(time_remark, iri, "pushed events")
            times = TimeTerms(iri, self.time_unit, lambda reason: warn_once(warned(reason)))
            self._times[iri] = times
        return times.given(time)

    def lifted(self, given: Sequence[Any]) -> dict[str, LiftedMany] | None:
        """The events of all rows among the items, by stream; None if an item must be checked by
        itself.
        """
        if not self._lifters:
            return {}
        rows: dict[str, list[Any]] = {}
        for item in given:
            iri = self.names.get(item[0]) if _is_pair(item) else None
            if iri in self._lifters:
                rows.setdefault(iri, []).append(item[1])
        by_stream = {}
        for iri, own in rows.items():
            many = (
                self._lifters[iri].events(own) if len(given) > thresholds.current.few_rows else None
            )
            if many is None:
                return None
            by_stream[iri] = many
        return by_stream

    def taken(
        self, given: Sequence[Any], floor: int, parsed: bool, lifted: Mapping[str, LiftedMany]
    ) -> tuple[list[PushedEvent], list[tuple[int, SpaseqError]]]:
        """The good events of a batch, at or after `floor`; (place, error) of each bad one.

        With `parsed`, graphs are parsed, so that bad ones are found. For the streams in `lifted`
        the times of the rows are known.
        """
        times = {iri: iter(many.times) for iri, many in lifted.items()}
        taken: list[PushedEvent] = []
        bad: list[tuple[int, SpaseqError]] = []
        for place, item in enumerate(given):
            try:
                stream, event = _pair(item)
                iri = self.iri(stream)
                if iri in self._lifters:
                    pushed = self._row(iri, event, floor, times.get(iri))
                elif isinstance(event, Event):
                    time = _not_before(floor, self._given(iri, event.time))
                    triples = triples_of(event.graph, self._limits) if parsed else None
                    pushed = [PushedEvent(iri, time, name_of_event(event), event.graph, triples)]
                else:
                    raise UsageError(f"stream {stream} has no lift, so it takes no rows")
            except SpaseqError as error:
                bad.append((place, error))
            else:
                if pushed:
                    floor = pushed[-1].time
                    taken += pushed
        return taken, bad

    def _row(
        self, iri: str, given: Any, floor: int, times: Iterator[int | None] | None
    ) -> list[PushedEvent]:
        """The events of a row in order of time; none if the lift has no solution."""
        if times is not None:
            time = next(times)
            known = None if time is None else _not_before(floor, time)
            return [] if known is None else [PushedEvent(iri, known, None, None, [])]
        lifter, given_time = self._lifters[iri], None
        position = lifter.position
        if isinstance(given, Event):
            given, given_time = given.graph, self._given(iri, given.time)
        try:
            events = lifter.of_row(given, given_time)
            if events:
                _not_before(floor, events[0][0])
        except SpaseqError:
            lifter.return_to(position)
            raise
        lifter.rows += 1
        return [PushedEvent(iri, time, name, None, triples) for time, name, triples in events]

    @property
    def positions(self) -> list[tuple[int, int]]:
        """The states of the lifters, for `return_to`."""
        return [lifter.position for lifter in self._lifters.values()]

    def return_to(self, positions: Sequence[tuple[int, int]]) -> None:
        """Return the lifters to earlier states: the rows since then do not count."""
        for lifter, position in zip(self._lifters.values(), positions, strict=True):
            lifter.return_to(position)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _pair(item: object) -> tuple[str, Event | Mapping[str, Any]]:
    """An item of a batch as (stream, event)."""
    match item:
        case (str() as stream, Event() as event) if event.iri is None or isinstance(event.iri, str):
            return stream, event
        case (str() as stream, Mapping() as row):
            return stream, row
    raise UsageError(f"a batch has (stream, spaseq.Event) pairs, not {repr(item)[:100]}")


def _not_before(floor: int, time: int) -> int:
    """A time in ms; UsageError if it is before `floor`."""
    if time < floor:
        raise UsageError(f"time {time} ms goes back: the engine stands at {floor} ms")
    return time


class PushedMatcher:
    """Matches pushed events with the graph patterns of an engine's queries.

    It numbers the events of equal time in each stream. Events that raise an error get no number.
    """

    def __init__(self, queries: PushedQueries, limits: Limits) -> None:
        self._queries, self._limits = queries, limits
        self._texts: dict[str, TextEvents] = {}  # by stream

    def use(self, streams: Iterable[str]) -> None:
        """Match the events of some streams (IRIs) for the present queries."""
        self._counters = {iri: self._queries.counter(iri) for iri in streams}
        self._texts.clear()

    def reads(self, plan: QueryPlan, iri: str) -> bool:
        """Whether graphs of a stream are parsed with all predicates of a query."""
        kept = self._texts[iri].predicates if iri in self._texts else None
        wanted = stream_predicates((plan,), iri)
        return kept is None or (wanted is not None and kept.issuperset(wanted))

    def match_few(self, iri: str, events: Sequence[LiftedEvent]) -> Found:
        """The solutions of an event, or of the events of a row in order of time."""
        counter = self._counters[iri]
        position = counter.position
        solutions: Found = []
        try:
            for time, name, triples in events:
                solutions += self._queries.match_event(
                    iri, (time, counter.next(time)), name, triples
                )
        except BaseException:
            counter.return_to(position)
            raise
        return solutions

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

        `lifted` has, by stream, the events of rows that are lifted already.

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
        solutions: Found = []
        for iri, some in events_of.items():
            if iri in lifted:
                for batch in lifted[iri].batches:
                    numbered = batch.with_k(self._counters[iri].assign(batch.time))
                    solutions += self._queries.match_batch(numbered)
            elif len(some) > thresholds.current.few_rows and all(event.is_text for event in some):
                texts = [(event.time, event.name, event.graph) for event in some]
                solutions += self._queries.match_batch(self._reader(iri).batch(texts))
            else:
                solutions += self._match_each(iri, some)
        return solutions

    def _match_each(self, iri: str, events: Sequence[PushedEvent]) -> Found:
        counter, solutions = self._counters[iri], []
        for event in events:
            triples = event.triples
            if triples is None:
                triples = triples_of(event.graph, self._limits)
            instant = event.time, counter.next(event.time)
            solutions += self._queries.match_event(iri, instant, event.name, triples)
        return solutions

    def _reader(self, iri: str) -> TextEvents:
        if iri not in self._texts:
            from spaseq.rdf.program_events import (
                TextEvents,  # numba, which single events do without
            )

            plans = [query.plan for query in self._queries.queries]
            predicates = stream_predicates(plans, iri)
            self._texts[iri] = TextEvents(iri, self._counters[iri], predicates, self._limits)
        return self._texts[iri]
