"""Between a source's thread and the run: a queue with a bound, so that nobody runs ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from spaseq.connectors.base import MessageSource
from spaseq.logs.stream_log import Message

_ROOM = 16 * 2**20
"""Bytes of messages that wait at most, besides those of one offer."""


class StreamIntake:
    """Runs a source in a thread and keeps its messages until the run takes them.

    Args:
        source: where messages come from.
        places: the last logged place of each partition.
        wake: called in the thread when there is something to do for the run.
        on_note: told when the broker goes away, and comes back; called in the thread.
    """

    def __init__(
        self,
        source: MessageSource,
        places: Mapping[int, int],
        wake: Callable[[], None],
        on_note: Callable[[str], None],
    ) -> None:
        self.places, self._source, self._wake, self.note = places, source, wake, on_note
        self._lock = threading.Lock()
        self._waiting: list[Message] = []
        self.partitions = 1
        self._bytes = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        name = f"source {source.address}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def has_partitions(self, count: int) -> None:
        self.partitions = count

    def offer(self, messages: Sequence[Message]) -> bool:
        if self._bytes > _ROOM:
            return False
        with self._lock:
            self._waiting.extend(messages)
            self._bytes += sum(len(message.payload) for message in messages)
        self._wake()
        return True

    def drain(self) -> list[Message]:
        """The messages that wait.

        Raises:
            SpaseqError: the source has failed.
        """
        with self._lock:
            found, self._waiting, self._bytes = self._waiting, [], 0
        if not found and self._failure is not None:
            raise self._failure
        return found

    def stop(self) -> None:
        """End the source."""
        self._stop.set()

    def join(self) -> None:
        """Wait until the source has ended."""
        self._thread.join(10.0)

    def _run(self) -> None:
        try:
            self._source.read(self)
        except BaseException as error:
            self._failure = error
            self._wake()
