"""Views of the queries and streams of a live run for its users, with notes and problems."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from spaseq.errors import SpaseqError
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_engine import EngineLost, LiveEngine
from spaseq.runtime.live.query_changes import StandingQuery
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit

T = TypeVar("T")

_PAUSE_S = 0.2  # after a failure
_MINUTE_S = 60.0

State = Literal["running", "catching up", "failed", "paused"]


class RunReports:
    """Passes notes to a job. `problems` are the present failures, by their subject.

    With `endures`, failures are problems, and do not end the run. A note that comes again within a
    minute waits for the end of that minute: something may go away and come back all the time.

    Args:
        job: gets the notes.
        endures: see above.
        monotonic: seconds, of a monotonic clock.
    """

    def __init__(
        self, job: Job, endures: bool, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._job, self._endures, self._monotonic = job, endures, monotonic
        self._notes: deque[str] = deque()
        self._began, self._told = monotonic(), set[str]()  # the minute, and its notes
        self._again: dict[str, int] = {}  # how often each of them came again; the latest is last
        self.problems: dict[str, str] = {}

    def note(self, text: str) -> None:
        """Queue a note for the user; any thread may call this."""
        self._notes.append(text)

    def tell(self, is_end: bool = False) -> None:
        """Pass on the notes of all threads; at the end of the run also those that wait."""
        while self._notes:
            text = self._notes.popleft()
            if text in self._told:
                self._again[text] = self._again.pop(text, 0) + 1
            else:
                self._told.add(text)
                self._job.on_note(text)
        if is_end or self._monotonic() - self._began >= _MINUTE_S:
            again, self._again = self._again, {}
            self._began, self._told = self._monotonic(), {*again}
            for text, count in again.items():
                self._job.on_note(f"{text} ({count:,} more within a minute)")

    def enduring(self, what: str, do: Callable[[], T]) -> T | None:
        """Run a function; if it fails, and the run endures that, record a problem until it
        succeeds.
        """
        try:
            result = do()
        except EngineLost:
            raise
        except SpaseqError as error:
            if not self._endures:
                raise
            if self.problems.get(what) != str(error):
                self.note(f"{what}: {error}")
            self.problems[what] = str(error)
            time.sleep(_PAUSE_S)
            return None
        self.problems.pop(what, None)
        return result


@dataclass(frozen=True, slots=True)
class QueryView:
    """A query in the view of users.

    Attributes:
        name: its name.
        text: its text.
        state: whether it runs.
        since: when it was added, ms since the epoch.
        streams: the IRIs of the streams that it reads.
        answers: number of answers so far, over restarts.
        muted: number of answers that MUTE has left out.
        withheld: number of answers of the past that sinks did not get, each once for each sink.
        live: number of partial matches in the states of its automaton; None if it is evaluated
            together with others.
        reason: why it has failed; "" if it has not.
    """

    name: str
    text: str
    state: State
    since: int
    streams: tuple[str, ...]
    answers: int
    muted: int
    withheld: int
    live: int | None
    reason: str

    @classmethod
    def of(
        cls, own: StandingQuery, plan: QueryPlan, engine: LiveEngine, counts: tuple[int, int, int]
    ) -> QueryView:
        """The view of a query; `counts` are its answers, muted and withheld ones."""
        query = engine.queries.query_of(own.name)
        failure = "" if query is None or query.failure is None else query.failure
        state: State = "catching up" if query is None else "failed" if failure else "running"
        state = "paused" if own.is_paused else state
        live = None
        if query is not None and not failure:
            unit = engine.queries.unit(query)
            if not unit.is_family:  # a family would count all its members' for each
                has_state = unit.sequence.has_state
                live = sum(unit.live_states(query).waiting.values()) if has_state else 0
        told = own.name, own.text, state, own.since, tuple(plan.inputs.streams)
        return cls(*told, *counts, live, failure)


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream in the view of users.

    Attributes:
        name: its name.
        iri: its IRI.
        accepted: number of events so far, over restarts; of a stream with a source, of those that
            were evaluated.
        bad: number of parts of messages that were no events.
        late: number of late events.
        duplicates: number of events that were dropped because their graph was seen before; the
            others are `accepted`.
        watermark: ms since the epoch; None before its first event.
        source: the source of its messages, without secrets; None if they are posted.
        lag: number of records of its log that have not been evaluated yet.
    """

    name: str
    iri: str
    accepted: int
    bad: int
    late: int
    duplicates: int
    watermark: int | None
    source: str | None
    lag: int

    @classmethod
    def of(cls, stream: LiveStream, engine: LiveEngine, lag: int, logged: int) -> StreamView:
        """The view of a stream; `logged` events are in its log, as far as known."""
        iri, source, counts = stream.iri, stream.source, engine.counts[stream.iri]
        accepted = max(counts.accepted, logged) if lag else counts.accepted
        came = accepted, counts.bad, counts.late, engine.duplicates(iri)
        address = None if source.connector() is None else source.describe()
        return cls(stream.name, iri, *came, engine.watermark(iri), address, lag)


_FAR = 2**61  # ms, after every time
_MOST_WINDOWS = 100
_LOOK_S = 1.0
_LONG_MS = 60_000

_Since: TypeAlias = tuple[int, float]
"""The time when something began: ms since the epoch, and seconds of a monotonic clock."""


@dataclass(frozen=True, slots=True)
class QueryWaits:
    """The windows and streams that a query waits for.

    Attributes:
        windows: the times at which windows close with an answer if nothing further happens, ms; the
            next 100.
        held: number of answers that wait for a stream.
        streams: the IRIs of the streams that these answers wait for.
    """

    windows: tuple[int, ...] = ()
    held: int = 0
    streams: tuple[str, ...] = ()


def waits_of(engine: LiveEngine, query: PushedQuery) -> QueryWaits:
    """The windows and streams that a query waits for after the last `advance`."""
    marks, unit = engine.marks(), engine.queries.unit(query)
    mark_of = {iri: marks[iri] for iri in engine.queries.running.sources()[unit] if iri in marks}
    if not mark_of or not unit.sequence.waits_after(min(mark_of.values())):
        return QueryWaits()
    ends = sorted(answer.end[0] for answer in unit.foreseen(query, _FAR))
    reached = max(mark_of.values())
    reached_ends, open_ = [e for e in ends if e <= reached], [e for e in ends if e > reached]
    last = reached_ends[-1] if reached_ends else min(mark_of.values())
    behind = {iri for iri, mark in mark_of.items() if mark < last}
    if open_:
        behind |= {iri for iri in mark_of if not engine.goes_on(iri)}
    return QueryWaits(tuple(open_[:_MOST_WINDOWS]), len(reached_ends), tuple(sorted(behind)))


class StreamWaits:
    """Records how long queries have waited for streams that do not advance.

    Args:
        now: ms since the epoch.
        monotonic: seconds, of a monotonic clock.
    """

    def __init__(
        self, now: Callable[[], int], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._now, self._monotonic, self._looked = now, monotonic, 0.0
        self._stood: dict[frozenset[str], tuple[int, _Since]] = {}  # the least mark, and since when
        self._since: dict[tuple[PushedUnit, str], _Since] = {}

    def look(self, engine: LiveEngine) -> None:
        """Check which queries wait, at most once a second."""
        at = self._monotonic()
        if at - self._looked < _LOOK_S:
            return
        now, before, marks = (self._now(), at), self._looked, engine.marks()
        stood, known, self._since = self._stood, self._since, {}
        self._looked, self._stood = at, {}
        for sources, units in engine.queries.running.groups().items():
            of_sources = {iri: marks[iri] for iri in sources if iri in marks}
            least = min(of_sources.values(), default=0)
            last, since = stood.get(sources, (None, now))
            if last != least:  # every wait has just begun
                since = now
            self._stood[sources] = least, since
            if not of_sources or since is now:
                continue
            first = since if since[1] == before else now  # of those that wait since a look ago
            for unit in (unit for unit in units if unit.sequence.waits_after(least)):
                for iri in (iri for iri, mark in of_sources.items() if mark == least):
                    self._since[unit, iri] = known.get((unit, iri), first)

    def long(self) -> list[tuple[str, str, int]]:
        """(query, stream, since) of waits longer than a minute; `since` is ms since the epoch."""
        at = self._monotonic()
        return [
            (query.plan.identity.title, iri, since)
            for (unit, iri), (since, began) in self._since.items()
            if (at - began) * 1000 >= _LONG_MS
            for query in unit.queries
        ]
