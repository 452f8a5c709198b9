"""Events in the logs of their streams: the events of answers, and bounded sources for `why`.

The knowledge of an answer is looked up on request.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spaseq.algebra.answers import TraceItem
from spaseq.diagnosis.used_triples import UsedTriples, used_triples
from spaseq.errors import UsageError
from spaseq.limits import DEFAULT_LIMITS
from spaseq.logs.messages import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions, ignore
from spaseq.rdf.terms.term import Triple, triple_json
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.live.partition_clocks import PartitionClocks
from spaseq.runtime.live.run_views import QueryView
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.posted_events import MessageReading
from spaseq.serve.query_files import checked_query
from spaseq.sinks.answer_json import answer_id
from spaseq.sources.base import Source, Split

_READ_MESSAGES = 2000
"""Number of messages of the end of a log that are read for events without names."""

_READ_BYTES = 64 * 2**20
"""Bytes of the end of a stream's log that are searched for events."""

_LIMITS = replace(DEFAULT_LIMITS, timeout_s=5.0)


class FoundEvent(NamedTuple):
    """The arrival of an event, ms since the epoch, and the event as a batch."""

    arrived: int
    event: EventBatch


@dataclass(frozen=True, slots=True)
class StreamReading:
    """How the log of a stream is read.

    Attributes:
        name: the stream's name.
        events: makes the events of messages, as the run does.
        delay_ms: how late an event may be.
        time_predicate: IRI of the predicate of an event's time.
    """

    name: str
    events: MessageReading
    delay_ms: int
    time_predicate: str


@dataclass(frozen=True, slots=True)
class TraceEvents:
    """Looks up the events of traces.

    Attributes:
        streams: by IRI, how a stream's log is read.
        newest: as `StandingRun.newest_records`.
    """

    streams: Mapping[str, StreamReading]
    newest: Callable[[str, int], Iterator[Sequence[Message]]]

    def find(self, trace: Iterable[TraceItem], most_bytes: int) -> dict[TraceItem, FoundEvent]:
        """The events that the logs still have, among some bytes at the end of each."""
        named = defaultdict[str, dict[str, list[TraceItem]]](lambda: defaultdict(list))
        unnamed = defaultdict[str, list[TraceItem]](list)
        for item in trace:
            if item.stream not in self.streams:
                continue
            if item.event is None:
                unnamed[item.stream].append(item)
            else:
                named[item.stream][item.event].append(item)
        by_item: dict[TraceItem, FoundEvent] = {}
        for iri, items in named.items():
            by_item.update(self._named(self.streams[iri], items, most_bytes))
        for iri, wanted in unnamed.items():
            by_item.update(self._unnamed(self.streams[iri], wanted, most_bytes))
        return by_item

    def _named(
        self, stream: StreamReading, items: Mapping[str, list[TraceItem]], most_bytes: int
    ) -> Iterator[tuple[TraceItem, FoundEvent]]:
        """Events by their names; of several with one name those with the right times."""
        left = {item for some in items.values() for item in some}
        for messages in self.newest(stream.name, most_bytes):
            names = {item.event for item in left if item.event is not None}
            for name, event in _with_names(messages, names, stream.events):
                of_time = [item for item in items[name] if item.time == event.event.time[0]]
                yield from ((item, event) for item in of_time)
                left.difference_update(of_time)
            if not left:
                return

    def _unnamed(
        self, stream: StreamReading, items: Sequence[TraceItem], most_bytes: int
    ) -> Iterator[tuple[TraceItem, FoundEvent]]:
        """Events by their instants: k counts the events of a time, in the log's order.

        An event that is in time is not older than any before it, less the delay. So all events of
        a time are known once a piece of the log has only older ones.
        """
        left, read = {item.time for item in items}, 0
        known: dict[int, list[FoundEvent]] = {time: [] for time in left}
        for messages in self.newest(stream.name, most_bytes):
            latest, by_time = _of_times(messages, left, stream.events)
            for time in left:
                known[time] = by_time[time] + known[time]
            done = {time for time in left if latest < time - stream.delay_ms}
            left -= done
            for item in items:
                if item.time in done and item.k < len(known[item.time]):
                    yield item, known[item.time][item.k]
            read += len(messages)
            if not left or read > _READ_MESSAGES:
                return


def _with_names(
    messages: Sequence[Message], names: Collection[str], reading: MessageReading
) -> Iterator[tuple[str, FoundEvent]]:
    """The events with some names, from messages."""
    ends = [name[max(name.rfind("/"), name.rfind("#")) + 1 :].encode() for name in names]
    for message in messages:
        if not any(end in message.payload for end in ends):  # most messages are not read
            continue
        for batch in reading([message], ignore):
            all_names = batch.names(np.arange(len(batch))).texts()
            for at, name in enumerate(all_names):
                if name is not None and name in names:
                    yield name, FoundEvent(message.arrival, batch.take(np.array([at])))


def _of_times(
    messages: Sequence[Message], times: Collection[int], reading: MessageReading
) -> tuple[float, Mapping[int, list[FoundEvent]]]:
    """The greatest time of the events of messages, and the events of some times, in order."""
    latest, by_time = -math.inf, defaultdict[int, list[FoundEvent]](list)
    for message in messages:
        for batch in reading([message], ignore):
            for at, time in enumerate(batch.time.tolist()):
                latest = max(latest, time)
                if time in times:
                    event = FoundEvent(message.arrival, batch.take(np.array([at])))
                    by_time[time].append(event)
    return latest, by_time


@dataclass(frozen=True, slots=True)
class LoggedEvents(Source):
    """The logged events of one stream of a run, without late ones.

    Attributes:
        stream: the stream's IRI.
        events: makes the events of messages, as the run does.
        records: the logged messages from one place to another.
        delay_ms: maximum delay of an event.
        place: messages before it are read for the clocks only.
        since: events before this time (ms), if given, are also read for the clocks only.
    """

    stream: str
    events: MessageReading
    records: Callable[[int, int | None], Sequence[Message]]
    delay_ms: int
    place: int = 0
    since: int | None = None

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None

    @property
    def iri(self) -> str:
        return self.stream

    def describe(self) -> str:
        return f"the log of <{self.stream}>"

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        clocks = PartitionClocks(self.delay_ms)
        for message in self.records(0, self.place) if self.place else ():
            for batch in self.events([message], ignore):
                clocks.admit(message.partition, batch)
        for message in self.records(self.place, None):
            for batch in self.events([message], on_bad):
                admitted = clocks.admit(message.partition, batch)[0]
                if self.since is not None:
                    admitted = admitted.take(np.flatnonzero(admitted.time >= self.since))
                yield admitted


@dataclass(frozen=True, slots=True)
class UsedKnowledge:
    """Looks up which triples the events of an answer used.

    Attributes:
        run: has the answers.
        events: finds events that are still logged.
    """

    run: StandingRun
    events: TraceEvents

    def __call__(self, query: QueryView, name: str) -> dict[str, Any]:
        """The triples, as JSON.

        Args:
            query: the query.
            name: the id of one of its answers.

        Raises:
            AnswerGone: there is no such answer any more.
            UsageError: an earlier text of the query has given it.
        """
        logged = self.run.answers.find(query.name, name)
        checked = checked_query(query.name, query.text)
        assert checked.plan is not None and checked.query is not None
        plan, answer = checked.plan, logged.answer
        if answer_id(plan.identity.name, plan.signature.canonical, answer) != name:
            raise UsageError(f"query {query.name} has changed since it gave the answer {name}")
        events = self.events.find(answer.trace, _READ_BYTES)
        batches = {item: found.event for item, found in events.items()}
        found = used_triples(checked.query, answer, batches, self.run.knowledge_at, _LIMITS)
        since = self.run.knowledge_since
        arrivals = [events[item].arrived if item in events else 0 for item in answer.trace]
        changed = min(logged.logged_ms, *arrivals) < since
        return {"id": name, "changed": changed, "events": [self._as_json(used) for used in found]}

    def _as_json(self, used: UsedTriples) -> dict[str, Any]:
        item = used.item
        return {
            "gpm": item.gpm,
            "stream": item.stream,
            "event": item.event,
            "time": format_time(item.time),
            "exact": used.is_exact,
            "graphs": [
                {"graph": graph, "triples": [self._triple(graph, t, item.time) for t in triples]}
                for graph, triples in used.graphs.items()
            ],
            "more": used.more,
        }

    def _triple(self, graph: str, triple: Triple, time: int) -> dict[str, Any]:
        """A triple that held at a time (ms); `until` says when it went."""
        until = self.run.graphs.held_until(graph, triple, time)
        shown = triple_json(triple)
        return shown if until is None else {**shown, "until": format_time(until)}
