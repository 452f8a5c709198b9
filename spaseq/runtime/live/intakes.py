"""The streams of a live run, and the bounded queue between a source's thread and the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spaseq.back_off import BackOff
from spaseq.connectors.base import BACK, LOST, MessageSource
from spaseq.errors import SpaseqError, fault_text
from spaseq.logs.messages import Message, MessageColumns
from spaseq.logs.stream_log import StreamLog
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import ARRIVAL
from spaseq.sources.broker_stream import BrokerStream

_LOOK_S = 0.05
_ROOM = 16 * 2**20
"""Maximum bytes of waiting messages. One offer may exceed it."""

_GOES_ON_S = 10.0
"""A source that fails after this time restarts at once."""


@dataclass(frozen=True, slots=True)
class LiveStream:
    """A stream of a live run: its source, and the maximum delay of its events."""

    name: str
    source: BrokerStream
    settings: FileSourceSettings = field(default_factory=FileSourceSettings)

    @property
    def iri(self) -> str:
        """Its IRI."""
        return self.source.iri

    @property
    def takes_clock(self) -> bool:
        """Whether it takes its times from the clock."""
        return self.source.options.messages.time == ARRIVAL


class StreamIntake:
    """Runs a source in a thread and keeps its messages until the run takes them.

    Args:
        source: where messages come from.
        log: where its messages go; the run appends them.
        wake: called in the thread when there is something to do for the run.
        on_note: told when the broker goes away, and comes back; called in the thread.
        again: makes a new source after a failure; None if the failure ends the run.

    Attributes:
        problem: why the source brings nothing; "" if it is there, or has not failed yet.
        since: since when (s, of the monotonic clock) the source is there, and not behind; None if
            it is not.
    """

    def __init__(
        self,
        source: MessageSource,
        log: StreamLog,
        wake: Callable[[], None],
        on_note: Callable[[str], None],
        again: Callable[[], MessageSource | None] | None = None,
    ) -> None:
        self._source, self._wake, self._on_note = source, wake, on_note
        self._log, self._again, self._told = log, again, ""
        self.problem = ""
        self.since: float | None = None
        self.places: Mapping[int, int] = log.places
        self.marks: Mapping[str, str] = log.marks
        self.identity = log.identity
        self._lock = threading.Lock()
        self._waiting: list[MessageColumns] = []
        self.partitions = 1
        self._bytes = 0
        self._offered = self._drained = self._committed = 0  # messages of all sources so far
        self._earlier = 0  # of the sources before this one
        self._on_commit: Callable[[int], None] | None = None
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        name = f"source {source.address}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def note(self, text: str) -> None:
        self._on_note(text)

    def has_partitions(self, count: int) -> None:
        self.partitions = count

    def connected(self, is_behind: bool = False) -> None:
        if self.since is not None:
            return
        if not is_behind:
            self.since = time.monotonic()
        if self.problem.endswith(LOST):
            self.note(f"{self._source.address}: {BACK}")
        self.problem = ""

    def lost(self) -> None:
        self.since, self.problem = None, f"{self._source.address}: {LOST}"
        self.note(self.problem)

    def offer(self, messages: Sequence[Message]) -> bool:
        self._told = ""
        if self._bytes > _ROOM:
            return False
        block = MessageColumns.of(messages)
        with self._lock:
            self._waiting.append(block)
            self._bytes += int(block.payload.sizes.sum())
            self._offered += len(block)
        self._wake()
        return True

    def tell_committed(self, listener: Callable[[int], None]) -> None:
        self._on_commit = listener

    def committed(self) -> None:
        """Tell the source that all drained messages are in the log on disk."""
        self._committed = self._drained
        if self._on_commit is not None:
            self._on_commit(self._committed - self._earlier)

    def drain(self) -> list[MessageColumns]:
        """Remove and return the waiting messages.

        Raises:
            SpaseqError: the source has failed.
        """
        with self._lock:
            messages, self._waiting, self._bytes = self._waiting, [], 0
        self._drained += sum(map(len, messages))
        if not messages and self._failure is not None:
            raise self._failure
        return messages

    @property
    def has_more(self) -> bool:
        """Whether messages wait."""
        return bool(self._waiting)

    def stop(self) -> None:
        """End the source."""
        self._stop.set()

    def join(self) -> None:
        """Wait until the source has ended."""
        self._thread.join(10.0)

    def _run(self) -> None:
        back_off = BackOff()
        while not self.stopped:
            began = time.monotonic()
            try:
                self._source.read(self)
                return
            except Exception as error:
                if self._again is None:
                    self._fail(error)
                    return
                known = isinstance(error, SpaseqError)
                reason = str(error) if known else f"{self._source.address}: {fault_text(error)}"
                self.since, self.problem = None, reason
                if self._told != reason:
                    self.note(f"{reason}; trying again")
                self._told = reason
            except BaseException as error:
                self._fail(error)
                return
            if time.monotonic() - began > _GOES_ON_S:
                back_off.succeeded()
            self._stop.wait(back_off.failed())
            self._begin_again()

    def _begin_again(self) -> None:
        """Restart the source after its logged messages, once all of them are logged."""
        assert self._again is not None
        self._on_commit = None
        while self._committed < self._offered and not self.stopped:
            self._stop.wait(_LOOK_S)
        self._earlier = self._offered
        source = self._again()
        assert source is not None, "it was there before"
        self._source = source
        self.places, self.marks = self._log.places, self._log.marks

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._wake()
