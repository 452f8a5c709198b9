"""How messages get into the logs of a live run: from sources, and from those who hand them in."""

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
    """Messages that somebody waits to be logged."""

    iri: str
    messages: Sequence[Message]
    events: GivenEvents
    done: Future[int] = field(default_factory=Future)

    def marked(self, late: int) -> Sequence[Message]:
        """The messages, the last one with the marks of the events, of which some are late."""
        marks = self.events.marks(late)
        if not marks:
            return self.messages
        return [*self.messages[:-1], replace(self.messages[-1], marks=marks)]


class MessageAcceptance:
    """Logs messages: at once if no write is under way, else together with what comes meanwhile.

    Who hands messages in writes them, and what others have handed in until then. `accept` may be
    called from any thread, the rest from the run's only.

    Attributes:
        writing: held by the thread that writes logs, or that decides by what is in them.

    Args:
        streams: all streams of the run.
        logs: their logs, by IRI.
        heartbeats: is told which partitions were heard.
        clock: of the run.
        how: the least time (ms) between two commits, and whether sources that fail begin again.
        wake: tells the run that there is something to do.
        on_note: told when a broker goes away, and comes back.
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

    def judge_from(self, engine_streams: list[Any]) -> None:
        """Judge and log what is handed in from here on: all that is logged has been read.

        Args:
            engine_streams: what `LiveEngine.streams_as_json` gives now.
        """
        self._ends = clock_at_end([*self._streams.values()], engine_streams)
        self._is_open = True

    def start(self) -> None:
        """Let the sources bring messages."""
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
            iri: of the stream.
            messages: what is handed in.
            events: what is in it.
            wakes: whether the run is told; else the caller tells it when it has replied.

        Returns:
            How many of the events are late.

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
        """Log all that was handed in; the run and health tell a failure."""
        posted = self._take_posted()
        for iri in dict.fromkeys(each.iri for each in posted):
            known = self._failed.get(iri)
            with suppress(Exception):  # who has handed it in gets it
                self._write(iri, [each for each in posted if each.iri == iri])
            if (failure := self._failed.get(iri)) not in (None, known):
                self._on_note(f"messages: {failure}")

    def _take_posted(self) -> list[_Posted]:
        return [self._posted.popleft() for _ in range(len(self._posted))]

    def take(self) -> bool:
        """Log what the sources have brought and what was handed in; whether there was anything.

        Raises:
            LogNotWritten: a log could not be written. What sources have brought for it is kept for
                the next call, and who has handed in messages for it gets the error.
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
        """Log what the source of a stream has brought and what was handed in, and tell the latter.

        Raises:
            LogNotWritten: nothing is in the log. Who has handed in messages is told that, too.
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
        """Log messages; how many events of each request are late."""
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
            LogNotWritten: the disk is full. Those of further streams are not logged either.
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
        """Why nothing is accepted, by the name of the stream: its log or its source has failed."""
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
        """Refuse what waits, and what is still to come."""
        with self.writing:  # no log is closed while somebody writes it
            with self._door:
                self._ended = True
            for each in self._take_posted():
                each.done.set_exception(RunError("the run has ended"))
