"""What other threads want the thread of a live run to do, between two batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from spaseq.errors import RunError

T = TypeVar("T")

_Waiting = deque[tuple[Callable[[], Any], Future[Any]]]


class LoopRequests:
    """Functions that wait for the run's thread.

    `call` and `look` may be called from any other thread, the rest from the run's only.

    Args:
        wake: tells the run that there is something to do.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changes: _Waiting = deque()
        self._looks: _Waiting = deque()
        self._door, self._ended = threading.Lock(), False

    def __bool__(self) -> bool:
        return bool(self._changes or self._looks)

    def call(self, do: Callable[[], T]) -> T:
        """What a function gives that may change something.

        Raises:
            RunError: the run has ended.
        """
        return self._hand_in(self._changes, do)

    def look(self, do: Callable[[], T]) -> T:
        """The same for what changes nothing; it is done also while an earlier run's log is read."""
        return self._hand_in(self._looks, do)

    def _hand_in(self, queue: _Waiting, do: Callable[[], T]) -> T:
        done: Future[T] = Future()
        with self._door:
            if self._ended:
                raise RunError("the run has ended")
            queue.append((do, done))
        self._wake()
        return done.result()

    def serve(self) -> None:
        """Do what was handed in."""
        self._serve(self._changes)
        self.serve_looks()

    def serve_looks(self) -> None:
        """Do what changes nothing."""
        self._serve(self._looks)

    @staticmethod
    def _serve(queue: _Waiting) -> None:
        while queue:
            do, done = queue.popleft()
            try:
                done.set_result(do())
            except BaseException as error:
                done.set_exception(error)

    def close(self) -> None:
        """Refuse what waits, and what is still to come."""
        with self._door:
            self._ended = True
        for queue in (self._changes, self._looks):
            while queue:
                queue.popleft()[1].set_exception(RunError("the run has ended"))
