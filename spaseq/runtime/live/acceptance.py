"""Messages on their way into the logs of a live run: from sources, and from requests."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from spaseq.errors import RunError
from spaseq.logs.messages import Message, MessageColumns, by_partition
from spaseq.logs.segment_log import LogNotWritten
from spaseq.logs.stream_log import StreamLog
from spaseq.runtime.live.heartbeats import Heartbeats, RunClock
from spaseq.runtime.live.intakes import LiveStream, StreamIntake
from spaseq.runtime.live.partition_clocks import GivenEvents, LogEndClock, clock_at_end


@dataclass(slots=True)
class _Posted:
    """Messages of a request that waits until they are logged."""

    iri: str
    messages: Sequence[Message]
    events: GivenEvents
    done: Future[int] = field(default_factory=Future)

    def marked(self, late: int) -> Sequence[Message]:
        """The messages; the last one has the marks of the events, some of which are late."""
        marks = self.events.marks(late)
        if not marks:
            return self.messages
        return [*self.messages[:-1], replace(self.messages[-1], marks=marks)]


class MessageAcceptance:
    """Logs messages: at once, or after the present write, together with others. The requesting
    thread writes the messages of all waiting requests. `accept` may be called from any thread; the
    run's thread calls the other methods.

    Attributes:
        writing: lock of the thread that writes logs, or that decides by their contents.

    Args:
        streams: all streams of the run.
        logs: their logs, by IRI.
        heartbeats: gets the partitions that have brought messages.
        clock: the clock of the run.
        how: the minimum time (ms) between two commits, and whether failed sources restart.
        wake: wakes the run.
        on_note: called when a broker goes away, and comes back.
    """

    def __init__(
        self,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        heartbeats: Heartbeats,
        clock: RunClock,
        how: tuple[int, bool],
        wake: Callable[[], None],
        on_note: Callable[[str], None],
    ) -> None:
        self._streams = {stream.iri: stream for stream in streams}
        self._logs, self._heartbeats, self._clock = logs, heartbeats, clock
        self._sync_s, self._endures = how[0] / 1000, how[1]
        self._failed: dict[str, str] = {}  # why the last commit of a stream's log failed
        self._wake, self._on_note = wake, on_note
        self._committed_at = 0.0
        self.writing, self._is_open = threading.RLock(), False
        self._intakes: dict[str, StreamIntake] = {}
        self._has_sources = False
        self._held: dict[str, list[MessageColumns]] = {}  # of sources, which no commit has taken
        self._ends: dict[str, LogEndClock] = {}
        self._posted: deque[_Posted] = deque()
        self._door, self._ended = threading.Lock(), False  # of `_posted`

    def judge_from(self, engine_streams: list[Any], accepted: Mapping[str, int]) -> None:
        """Judge and log requests from here on: all logged messages have been read.

        Args:
            engine_streams: the present result of `LiveEngine.streams_as_json`.
            accepted: number of events of each stream so far.
        """
        self._ends = clock_at_end([*self._streams.values()], engine_streams, accepted)
        self._is_open = True

    def accepted(self, iri: str) -> int:
        """Number of events in the log of a stream without a source; 0 for others."""
        return self._ends[iri].accepted if iri in self._ends else 0

    def start(self) -> None:
        """Start the sources."""
        for iri, stream in self._streams.items():
            connector = stream.source.connector()
            if connector is not None:
                again = stream.source.connector if self._endures else None
                log, note = self._logs[iri], self._on_note
                self._intakes[iri] = StreamIntake(connector, log, self._wake, note, again)
        self._has_sources = True

    def accept(
        self, iri: str, messages: Sequence[Message], events: GivenEvents, wakes: bool = True
    ) -> int:
        """Log `UNNUMBERED` messages of a stream; they are on disk when this returns.

        Args:
            iri: the IRI of the stream.
            messages: the messages.
            events: their events.
            wakes: whether to wake the run; else the caller wakes it after its reply.

        Returns:
            The number of late events.

        Raises:
            RunError: the disk is full or fails, or the run ends. Nothing is in the log.
        """
        posted = _Posted(iri, messages, events)
        with self._door:
            if self._ended:
                raise RunError("the run has ended")
            self._posted.append(posted)
        if self._is_open and not self._sync_s:
            with self.writing:  # another thread may have written it meanwhile
                if not posted.done.done():
                    self._write_posted()
            if wakes:
                self._wake()
        else:
            self._wake()
        return posted.done.result()

    def _write_posted(self) -> None:
        """Log all requests; the run and its health report a failure."""
        posted = self._take_posted()
        for iri in dict.fromkeys(each.iri for each in posted):
            known = self._failed.get(iri)
            with suppress(Exception):  # the request gets it
                self._write(iri, [each for each in posted if each.iri == iri])
            if (failure := self._failed.get(iri)) not in (None, known):
                self._on_note(f"messages: {failure}")

    def _take_posted(self) -> list[_Posted]:
        return [self._posted.popleft() for _ in range(len(self._posted))]

    def take(self) -> bool:
        """Log the messages of sources and requests; return whether there were any.

        Raises:
            LogNotWritten: a log could not be written. Messages of sources for it are kept for the
                next call, and requests for it get the error.
            SpaseqError: a source has failed.
        """
        if self._sync_s and self._has_any:
            rest = self._committed_at + self._sync_s - time.monotonic()
            if rest > 0:
                time.sleep(rest)
            self._committed_at = time.monotonic()
        with self.writing:
            for iri, intake in self._intakes.items():
                if iri not in self._held and (blocks := intake.drain()):
                    self._held[iri] = blocks
            posted = self._take_posted()
            iris = dict.fromkeys([*self._held, *(each.iri for each in posted)])
            failures = list[Exception]()
            for iri in iris:
                try:
                    self._write(iri, [each for each in posted if each.iri == iri])
                except Exception as error:
                    failures.append(error)
        if failures:
            raise failures[0]
        return bool(iris)

    @property
    def _has_any(self) -> bool:
        return bool(self._posted or self._held or any(i.has_more for i in self._intakes.values()))

    def _write(self, iri: str, posted: Sequence[_Posted]) -> None:
        """Log the messages of a stream's source and of requests, and answer the requests.

        Raises:
            LogNotWritten: nothing is in the log. The requests get the error, too.
        """
        try:
            late = self._commit(iri, posted, self._clock.arrival(iri))
        except BaseException as error:
            self._logs[iri].discard()
            self._failed[iri] = str(error)
            for each in posted:
                each.done.set_exception(error)
            raise
        self._held.pop(iri, None)
        self._failed.pop(iri, None)
        if iri in self._intakes:
            self._intakes[iri].committed()
        for each, count in zip(posted, late, strict=True):
            each.done.set_result(count)

    def _commit(self, iri: str, posted: Sequence[_Posted], arrival: int) -> list[int]:
        """Log messages; return the number of late events of each request."""
        log, heard = self._logs[iri], {0} if posted else set[int]()
        if iri in self._intakes:
            log.note_partitions(self._intakes[iri].partitions)
        if waiting := self._held.get(iri):
            messages = by_partition(waiting)
            log.append(messages, arrival)
            heard.update(np.unique(messages.partition).tolist())
        late = self._ends[iri].late([each.events for each in posted], arrival) if posted else []
        for each, count in zip(posted, late, strict=True):
            log.append(each.marked(count), arrival)
        log.commit()
        if posted:
            self._ends[iri].committed()
        self._heartbeats.hear({(iri, partition) for partition in heard})
        return late

    def log_heartbeats(self, due: Mapping[tuple[str, int], int]) -> None:
        """Log heartbeats, given by stream and partition (ms).

        Raises:
            LogNotWritten: the disk is full. The heartbeats of further streams are not logged
                either.
        """
        with self.writing:
            for iri, beats in groupby(sorted(due.items()), key=lambda beat: beat[0][0]):
                self._log_heartbeats(iri, {partition: to for (_, partition), to in beats})

    def _log_heartbeats(self, iri: str, due: Mapping[int, int]) -> None:
        log = self._logs[iri]
        for partition, to in due.items():
            log.note_heartbeat(partition, to)
        try:
            log.commit()
        except LogNotWritten:
            log.discard()
            raise
        if 0 in due and iri in self._ends:
            self._ends[iri].raise_to(due[0])

    def problems(self) -> dict[str, str]:
        """The streams that accept nothing, by name, with the reason: their log or source has
        failed.
        """
        by_iri = {iri: intake.problem for iri, intake in [*self._intakes.items()] if intake.problem}
        by_iri.update([*self._failed.items()])
        return {self._streams[iri].name: problem for iri, problem in by_iri.items()}

    def reads_since(self, iri: str) -> float | None:
        """Since when (s, of the monotonic clock) the source of a stream is there; None if it is
        not, or has brought what is not logged yet."""
        intake = self._intakes.get(iri)
        if intake is None:  # it has no source, or none has begun yet
            return -math.inf if self._has_sources else None
        return None if intake.has_more or iri in self._held else intake.since

    def end_sources(self) -> None:
        """Stop the sources, and wait for them."""
        for intake in self._intakes.values():
            intake.stop()
        for intake in self._intakes.values():
            intake.join()

    def close(self) -> None:
        """Refuse waiting and later requests."""
        with self.writing:  # no log is closed while a thread writes it
            with self._door:
                self._ended = True
            for each in self._take_posted():
                each.done.set_exception(RunError("the run has ended"))
