"""Schedules: what is to be done when windows close (docs/language.md, Partial matches)."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Counted, Sliding, Tumbling
from spaseq.automaton.run.matches import PartitionKey

Item = TypeVar("Item")

Heap: TypeAlias = list[tuple[Instant, int, Item]]
Dues: TypeAlias = list[tuple[int, int, Item]]


@dataclass(slots=True)
class TimedSchedule(Generic[Item]):
    """Items by the close of a window of time."""

    window: Sliding | Tumbling
    _heap: Heap[Item] = field(default_factory=list)
    _made: int = 0

    def add(self, item: Item, key: PartitionKey, first: Instant) -> None:
        """Add an item for the close of the window of a match that begins at an instant."""
        self._made += 1
        heapq.heappush(self._heap, ((self.window.close(first[0]), 0), self._made, item))

    def closed(self, until: int | None) -> Iterator[tuple[Instant | None, Item]]:
        """Take the items whose windows have closed by a time (ms), in order; None for all."""
        while self._heap and (until is None or self._heap[0][0][0] <= until):
            instant, _, item = heapq.heappop(self._heap)
            yield instant, item

    def snapshot(self, number: Callable[[Item], int]) -> object:
        """The state for a snapshot; `number` gives the number that stands for an item."""
        return [(at, made, number(item)) for at, made, item in self._heap], self._made

    def restore(self, state: object, item: Callable[[int], Item]) -> None:
        """Continue from what `snapshot` returned."""
        assert isinstance(state, tuple)
        heap, self._made = state
        self._heap = [(at, made, item(number)) for at, made, number in heap]


@dataclass(slots=True)
class _PartitionCount:
    """The last events of a partition: how many came before each instant, and up to it."""

    instants: list[Instant] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    up_to: list[int] = field(default_factory=list)
    total: int = 0

    def add(self, instant: Instant, events: int) -> None:
        self.instants.append(instant)
        self.before.append(self.total)
        self.total += events
        self.up_to.append(self.total)

    def trim(self, window: int) -> None:
        """Forget the instants at which no later match can begin, when they are many."""
        gone = bisect_left(self.up_to, self.total - window + 1)
        if gone > window:
            for column in (self.instants, self.before, self.up_to):
                del column[:gone]


class EventCounts:
    """The events of each partition under WITHIN n EVENTS."""

    def __init__(self, window: Counted) -> None:
        self.window = window
        self.counts: dict[PartitionKey, _PartitionCount] = {}

    def see(self, events: Iterable[tuple[PartitionKey, Instant, int]]) -> None:
        """Count events: (partition, instant, how many), in the order of instants."""
        for key, instant, number in events:
            self.counts.setdefault(key, _PartitionCount()).add(instant, number)

    def number_of(self, key: PartitionKey, first: Instant) -> int:
        """The number of the last event of the window that begins at an instant."""
        count = self.counts[key]
        return count.before[bisect_left(count.instants, first)] + self.window.events

    def instant_of(self, key: PartitionKey, number: int) -> Instant | None:
        """The instant of the event with a number; None if it has not come."""
        count = self.counts[key]
        if number > count.total:
            return None
        return count.instants[bisect_left(count.up_to, number)]

    def trim(self) -> None:
        """Forget what no later match needs."""
        for count in self.counts.values():
            count.trim(self.window.events)

    def snapshot(self) -> object:
        """The state for a snapshot."""
        return [(k, c.instants, c.before, c.up_to, c.total) for k, c in self.counts.items()]

    def restore(self, state: object) -> None:
        """Continue from what `snapshot` returned."""
        assert isinstance(state, list)
        self.counts = {key: _PartitionCount(*parts) for key, *parts in state}


class CountedSchedule(Generic[Item]):
    """Items by the close of a window of events; `counts` must have seen the events so far."""

    def __init__(self, counts: EventCounts) -> None:
        self._counts = counts
        self._waiting: dict[PartitionKey, Dues[Item]] = {}  # by number of the closing event
        self._heap: Heap[Item] = []
        self._made = 0

    def add(self, item: Item, key: PartitionKey, first: Instant) -> None:
        """Add an item for the close of the window of a match that begins at an instant."""
        self._made += 1
        due = self._counts.number_of(key, first)
        heapq.heappush(self._waiting.setdefault(key, []), (due, self._made, item))

    def closed(self, until: int | None) -> Iterator[tuple[Instant | None, Item]]:
        """Take the items whose windows have closed by a time (ms), in order.

        None for all; the items whose windows are still open then come last.
        """
        for key, waiting in list(self._waiting.items()):
            self._settle(key, waiting)
            if not waiting:
                del self._waiting[key]
        while self._heap and (until is None or self._heap[0][0][0] <= until):
            instant, _, item = heapq.heappop(self._heap)
            yield instant, item
        if until is None:
            for waiting in self._waiting.values():
                yield from ((None, item) for _, _, item in waiting)
            self._waiting.clear()

    def _settle(self, key: PartitionKey, waiting: Dues[Item]) -> None:
        while waiting:
            instant = self._counts.instant_of(key, waiting[0][0])
            if instant is None:
                return
            _, made, item = heapq.heappop(waiting)
            heapq.heappush(self._heap, (instant, made, item))

    def snapshot(self, number: Callable[[Item], int]) -> object:
        """The state for a snapshot; `number` gives the number that stands for an item."""
        waiting = [
            (key, [(due, made, number(item)) for due, made, item in dues])
            for key, dues in self._waiting.items()
        ]
        return waiting, [(at, made, number(item)) for at, made, item in self._heap], self._made

    def restore(self, state: object, item: Callable[[int], Item]) -> None:
        """Continue from what `snapshot` returned."""
        assert isinstance(state, tuple)
        waiting, heap, self._made = state
        self._waiting = {
            key: [(due, made, item(n)) for due, made, n in dues] for key, dues in waiting
        }
        self._heap = [(at, made, item(n)) for at, made, n in heap]
