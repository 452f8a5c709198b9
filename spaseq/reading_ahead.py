"""Threads that read or compute ahead, with results in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from threading import Condition, Thread
from typing import Generic, TypeVar

Given = TypeVar("Given")
Found = TypeVar("Found")

_JOIN_SECONDS = 1.0

_LOOK_SECONDS = 1.0
"""Interval at which a waiting main thread checks for a signal that came just before it began to
wait.
"""


def read_ahead(
    read: Callable[[Given], Found], given: Iterator[Given], threads: int
) -> Iterator[tuple[Given, Found]]:
    """Pairs of each item and `read(item)`, in order; `threads` threads read ahead.

    Only one thread at a time takes an item. An interrupted run does not wait for a thread that
    waits for input.
    """
    if threads == 1:
        yield from ((item, read(item)) for item in given)
        return
    yield from _results(_Ahead(read, given, threads + 1), threads, "spaseq-ingest")


def run_ahead(items: Iterator[Given], name: str) -> Iterator[Given]:
    """The items of an iterator; a thread with this name makes two of them ahead.

    With one core each item is made on demand.
    """
    if (os.cpu_count() or 1) == 1:
        yield from items
        return
    for pair in _results(_Ahead(_nothing, items, 2), 1, name):
        yield pair[0]
        del pair


def _nothing(item: object) -> None:
    """The result of an item in `run_ahead`: None."""


def _results(ahead: _Ahead[Given, Found], threads: int, name: str) -> Iterator[tuple[Given, Found]]:
    """The results of threads with this name."""
    workers = [Thread(target=ahead.work, name=name, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        while (pair := ahead.take()) is not None:
            yield pair
            del pair  # releases its memory
    finally:
        ahead.stop()
        for worker in workers:
            worker.join(_JOIN_SECONDS)


class _Ahead(Generic[Given, Found]):
    """A bounded queue of items and their results; at most `most` of them wait for `take`."""

    def __init__(self, read: Callable[[Given], Found], given: Iterator[Given], most: int) -> None:
        self._read = read
        self._given = given
        self._most = most
        self._changed = Condition()
        self._is_taking = False  # a thread takes the next item
        self._begun = 0  # items that threads have taken
        self._taken = 0  # results that the caller has taken
        self._ended = False
        self._results: dict[int, tuple[Given, Found] | BaseException | None] = {}

    def take(self) -> tuple[Given, Found] | None:
        """The next item with its result; None after the last one."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._taken in self._results, _LOOK_SECONDS):
                pass
            result = self._results.pop(self._taken)
            self._taken += 1
            self._changed.notify_all()
        if isinstance(result, BaseException):
            raise result
        return result

    def stop(self) -> None:
        """End the threads after their present items."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def work(self) -> None:
        """Read items until there is none, or reading fails."""
        while (turn := self._next_turn()) is not None:
            result: tuple[Given, Found] | BaseException | None
            try:
                try:
                    item = next(self._given)
                finally:
                    with self._changed:
                        self._is_taking = False
                        self._changed.notify_all()
                result = item, self._read(item)
                del item
            except StopIteration:
                result = None
            except BaseException as error:
                result = error
            with self._changed:
                self._results[turn] = result
                self._ended = self._ended or not isinstance(result, tuple)
                self._changed.notify_all()
            del result

    def _next_turn(self) -> int | None:
        """Wait for the turn to take an item, and return its number; None if there is none."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._ended or (not self._is_taking and self._begun - self._taken < self._most)
                )
            )
            if self._ended:
                return None
            self._is_taking = True
            self._begun += 1
            return self._begun - 1
