"""What the events of answers said, for the feed: looked up in the logs, and kept for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spaseq.algebra.answers import Answer, TraceItem, extent_of
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.event_words import EventWords
from spaseq.serve.trace_events import TraceEvents

_READ_BYTES = 8 * 2**20
"""How much of the end of a stream's log is looked through for the events of the feed."""

_FIRST, _LAST = 2, 3
"""The events of an answer that are told, if there are more than both."""

_STATEMENTS = 8
_KEPT = 10_000
_MADE = 1000

Said = list[dict[str, Any]]
"""What the events of an answer said, each as {"gpm", "stream", "time", "said", "more"}."""


@dataclass(slots=True)
class SaidEvents:
    """Tells what events said; any thread may ask.

    Attributes:
        run: has the answers.
        events: finds events that are still logged.
        words: makes words of their triples.
    """

    run: StandingRun
    events: TraceEvents
    words: EventWords
    _known: dict[str, Said] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, answers: Sequence[LoggedAnswer]) -> dict[str, Said]:
        """By an answer's id, what its events said; those that no log has any more say nothing.

        An answer is looked up when it is asked for first: then its events are still logged.
        """
        with self._lock:
            new = [answer for answer in answers if answer.id not in self._known]
            if new:
                self._look_up(new)
            said = {answer.id: self._known[answer.id] for answer in answers}
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
            return said

    def _look_up(self, answers: Sequence[LoggedAnswer]) -> None:
        told = {answer.id: _told_items(answer.answer) for answer in answers}
        wanted = {item for items in told.values() for item in items}
        logged = self.events.find(wanted, _READ_BYTES)
        made = self._made(wanted)
        for name, items in told.items():
            said = self._known[name] = []
            for item in items:
                if item in logged:
                    said.append(self._as_json(item, _triples(logged[item].event)))
                elif (item.stream, item.event) in made:
                    said.append(self._as_json(item, made[item.stream, item.event]))

    def _made(
        self, items: Iterable[TraceItem]
    ) -> Mapping[tuple[str, str | None], Sequence[Triple]]:
        """The triples of events that queries made, by stream and event."""
        wanted = {
            (item.stream, item.event)
            for item in items
            if item.event and item.stream not in self.events.streams and not extent_of(item.event)
        }
        if not wanted:
            return {}
        newest = self.run.answers.read_all(lambda title: True, None, _MADE)
        events = {(given.query, given.answer.event): given.answer.graph or () for given in newest}
        return {event: events[event] for event in wanted if event in events}

    def _as_json(self, item: TraceItem, triples: Sequence[Triple]) -> dict[str, Any]:
        stream = self.events.streams.get(item.stream)
        time = stream.time_predicate if stream else ""
        said, more = self.words.statements(triples, item.event, time, _STATEMENTS)
        name = stream.name if stream else item.stream
        at = format_time(item.time)
        return {"gpm": item.gpm, "stream": name, "time": at, "said": said, "more": more}


def _told_items(answer: Answer) -> Sequence[TraceItem]:
    trace = answer.trace
    if len(trace) <= _FIRST + _LAST:
        return trace
    return *trace[:_FIRST], *trace[-_LAST:]


def _triples(event: EventBatch) -> list[Triple]:
    codes = zip(event.s.tolist(), event.p.tolist(), event.o.tolist(), strict=True)
    terms = event.terms
    return [(terms[s], terms[p], terms[o]) for s, p, o in codes]
