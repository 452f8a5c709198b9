"""How messages get into the logs of a live run: from sources, and from those who hand them in."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from spaseq.errors import RunError
from spaseq.logs.messages import Message, MessageColumns, by_partition
from spaseq.logs.segment_log import LogNotWritten
from spaseq.logs.stream_log import StreamLog
from spaseq.runtime.live.idle_streams import IdleStreams
from spaseq.runtime.live.intakes import StreamIntake
from spaseq.runtime.live.live_engine import LiveStream


@dataclass(slots=True)
class _Posted:
    """Messages that somebody waits to be logged."""

    iri: str
    messages: Sequence[Message]
    done: Future[None] = field(default_factory=Future)


class MessageAcceptance:
    """Logs messages. All that come within some ms are committed together.

    `accept` may be called from any thread, the rest from the run's only.

    Args:
        streams: all streams of the run.
        logs: their logs, by IRI.
        idle: is told which partitions were heard.
        how: the least time (ms) between two commits, and whether sources that fail begin again.
        wake: tells the run that there is something to do.
        on_note: told when a broker goes away, and comes back.
    """

    def __init__(
        self,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        idle: IdleStreams,
        how: tuple[int, bool],
        wake: Callable[[], None],
        on_note: Callable[[str], None],
    ) -> None:
        self._streams = {stream.iri: stream for stream in streams}
        self._logs, self._idle = logs, idle
        self._sync_s, self._endures = how[0] / 1000, how[1]
        self._failed: dict[str, str] = {}  # why the last commit of a stream's log failed
        self._wake, self._on_note = wake, on_note
        self._committed_at = 0.0
        self._intakes: dict[str, StreamIntake] = {}
        self._held: dict[str, list[MessageColumns]] = {}  # of sources, which no commit has taken
        self._posted: deque[_Posted] = deque()
        self._door, self._ended = threading.Lock(), False  # of `_posted`

    def start(self) -> None:
        """Let the sources bring messages."""
        for iri, stream in self._streams.items():
            connector = stream.source.connector()
            if connector is not None:
                again = stream.source.connector if self._endures else None
                log, note = self._logs[iri], self._on_note
                self._intakes[iri] = StreamIntake(connector, log, self._wake, note, again)

    def accept(self, iri: str, messages: Sequence[Message]) -> None:
        """Log `UNNUMBERED` messages of a stream; they are on disk when this returns.

        Raises:
            RunError: the disk is full or fails, or the run ends. Nothing is in the log.
        """
        posted = _Posted(iri, messages)
        with self._door:
            if self._ended:
                raise RunError("the run has ended")
            self._posted.append(posted)
        self._wake()
        posted.done.result()

    def take(self) -> bool:
        """Log what the sources have brought and what was handed in; whether there was anything.

        Raises:
            LogNotWritten: a log could not be written. What sources have brought for it is kept for
                the next call, and who has handed in messages for it gets the error.
            SpaseqError: a source has failed.
        """
        self._wait_for_sync()
        arrival = int(time.time() * 1000)
        for iri, intake in self._intakes.items():
            if iri not in self._held and (blocks := intake.drain()):
                self._held[iri] = blocks
        posted = [self._posted.popleft() for _ in range(len(self._posted))]
        iris = dict.fromkeys([*self._held, *(each.iri for each in posted)])
        failures: list[LogNotWritten] = []
        for iri in iris:
            own = [each for each in posted if each.iri == iri]
            failure: LogNotWritten | None = None
            try:
                self._commit(iri, own, arrival)
                self._held.pop(iri, None)
                self._failed.pop(iri, None)
                if iri in self._intakes:
                    self._intakes[iri].committed()
            except LogNotWritten as error:
                self._logs[iri].discard()
                failure, self._failed[iri] = error, str(error)
                failures.append(error)
            for each in own:
                each.done.set_exception(failure) if failure else each.done.set_result(None)
        if failures:
            raise failures[0]
        return bool(iris)

    def _commit(self, iri: str, posted: Sequence[_Posted], arrival: int) -> None:
        log, messages = self._logs[iri], by_partition(self._held.get(iri, []))
        if iri in self._intakes:
            log.note_partitions(self._intakes[iri].partitions)
        log.append(messages, arrival)
        for each in posted:
            log.append(each.messages, arrival)
        log.commit()
        heard = {*np.unique(messages.partition).tolist()} | {0 for each in posted}
        self._idle.hear({(iri, partition) for partition in heard})

    def _wait_for_sync(self) -> None:
        """Let messages come together, so that few commits are enough."""
        rest = self._committed_at + self._sync_s - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        self._committed_at = time.monotonic()

    def problems(self) -> dict[str, str]:
        """Why nothing is accepted, by the name of the stream: its log or its source has failed."""
        found = {iri: intake.problem for iri, intake in [*self._intakes.items()] if intake.problem}
        found.update([*self._failed.items()])
        return {self._streams[iri].name: problem for iri, problem in found.items()}

    def end_sources(self) -> None:
        """Stop the sources, and wait for them."""
        for intake in self._intakes.values():
            intake.stop()
        for intake in self._intakes.values():
            intake.join()

    def close(self) -> None:
        """Refuse what waits, and what is still to come."""
        with self._door:
            self._ended = True
        while self._posted:
            self._posted.popleft().done.set_exception(RunError("the run has ended"))
