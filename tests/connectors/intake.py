"""An intake that a test reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from spaseq.connectors.base import BACK, LOST, MessageSource
from spaseq.logs.messages import Message


class ListIntake:
    """Keeps messages in a list, of at most `room`; the source runs in a thread.

    Messages are committed as they come, unless `commits` is false; then `commit` does it.
    """

    def __init__(
        self,
        source: MessageSource,
        places: Mapping[int, int] | None = None,
        room: int = 10**9,
        marks: Mapping[str, str] | None = None,
        commits: bool = True,
        name: str = "a-log",
    ) -> None:
        self.places, self.marks = dict(places or {}), dict(marks or {})
        self.room, self.refused, self.commits, self._name = room, 0, commits, name
        self._given = 0
        self._listener: Callable[[int], None] | None = None
        self.messages: list[Message] = []
        self.partitions = 1
        self.is_connected = False
        self.kept: int | None = None  # how many messages there were when it was not behind
        self.notes: list[str] = []
        self._address = source.address
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(source,), daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def has_partitions(self, count: int) -> None:
        self.partitions = count

    def offer(self, messages: Sequence[Message]) -> bool:
        assert self.is_connected
        if len(self.messages) >= self.room:
            self.refused += 1
            return False
        self.messages.extend(messages)
        self._given += len(messages)
        for message in messages:
            self.marks.update(message.marks)
        if self.commits:
            self.commit()
        return True

    def identity(self) -> str:
        return self._name

    def tell_committed(self, listener: Callable[[int], None]) -> None:
        self._listener = listener

    def commit(self, count: int | None = None) -> None:
        """Tell the source that the first messages, or all so far, are on disk."""
        if self._listener is not None:
            self._listener(self._given if count is None else count)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def connected(self, is_behind: bool = False) -> None:
        if not is_behind and self.kept is None:
            self.kept = len(self.messages)
        if self.notes and self.notes[-1].endswith(LOST):
            self.note(f"{self._address}: {BACK}")
        self.is_connected = True

    def lost(self) -> None:
        self.is_connected = False
        self.note(f"{self._address}: {LOST}")

    def wait(self, count: int, seconds: float = 60.0) -> list[Message]:
        """The messages, once there are so many."""
        end = time.monotonic() + seconds
        while len(self.messages) < count and time.monotonic() < end and self.failure is None:
            time.sleep(0.02)
        if self.failure is not None:
            raise self.failure
        assert len(self.messages) >= count, (len(self.messages), self.notes)
        return self.messages

    def wait_for_kept(self) -> int:
        """How many messages the source had given when it was not behind any more."""
        end = time.monotonic() + 60
        while self.kept is None and time.monotonic() < end and self.failure is None:
            time.sleep(0.02)
        assert self.kept is not None, (self.failure, self.notes)
        return self.kept

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _run(self, source: MessageSource) -> None:
        try:
            source.read(self)
        except BaseException as error:
            self.failure = error
