"""Schedules of items by the close of windows (docs/meaning.md, Partial matches)."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Generic, TypeAlias, TypeVar

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Counted, Sliding, Tumbling
from spaseq.automaton.run.matches import PartitionKey
from spaseq.records import record
from spaseq.stateful import Parts, Stateful

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
        """Remove and return the items whose windows have closed by a time (ms), in order; None for
        all.
        """
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


@record
class EventsAtInstant:
    """The number of events of a partition at an instant, and whether a match can begin there."""

    key: PartitionKey
    instant: Instant
    number: int
    begins: bool


@dataclass(slots=True)
class _PartitionCount(Stateful):
    """The numbers of events of a partition: before an instant, and up to it.

    After `trim` it has the instants at which matches of later events may have begun. `due` is the
    last event that closes a window for which an item waits.
    """

    STATE = ("instants", "before", "up_to", "total", "due")

    instants: list[Instant] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    up_to: list[int] = field(default_factory=list)
    total: int = 0
    begins: list[bool] = field(default_factory=list)
    due: int = 0

    def add(self, events: EventsAtInstant) -> None:
        self.instants.append(events.instant)
        self.before.append(self.total)
        self.total += events.number
        self.up_to.append(self.total)
        self.begins.append(events.begins)

    def trim(self, window: int) -> None:
        """Drop the instants at which no match begins that a later event belongs to."""
        gone = bisect_left(self.before, self.total - window + 1)
        kept = [begins and i >= gone for i, begins in enumerate(self.begins)]
        if not all(kept):
            self.instants = [*compress(self.instants, kept)]
            self.before = [*compress(self.before, kept)]
            self.up_to = [*compress(self.up_to, kept)]
            self.begins = [True] * len(self.instants)

    @property
    def is_idle(self) -> bool:
        """Whether counting may restart."""
        return not self.instants and self.due <= self.total

    def _after_restore(self) -> None:
        self.begins = [True] * len(self.instants)  # a state is of a count that has been trimmed


class EventCounts(Parts[PartitionKey, _PartitionCount]):
    """The events of each partition under WITHIN n EVENTS.

    `changed` are the partitions with events since the last `trim`.
    """

    def __init__(self, window: Counted) -> None:
        super().__init__(lambda key: _PartitionCount())
        self.window = window
        self.changed: set[PartitionKey] = set()

    def see(self, several: Iterable[EventsAtInstant]) -> None:
        """Count events, in the order of instants."""
        for events in several:
            self.changed.add(events.key)
            self[events.key].add(events)

    def due(self, key: PartitionKey, first: Instant) -> int:
        """The number of the last event of the window that begins at an instant.

        The partition is kept until that event comes.
        """
        count = self[key]
        number = count.before[bisect_left(count.instants, first)] + self.window.events
        count.due = max(count.due, number)
        return number

    def instant_of(self, key: PartitionKey, number: int) -> Instant | None:
        """The instant of an event since the last `trim`, by its number; None if it is to come."""
        count = self[key]
        if number > count.total:
            return None
        return count.instants[bisect_left(count.up_to, number)]

    def trim(self) -> None:
        """Drop state that no later match needs."""
        for key in self.changed:
            count = self[key]
            count.trim(self.window.events)
            if count.is_idle:
                del self[key]
        self.changed.clear()


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
        due = self._counts.due(key, first)
        heapq.heappush(self._waiting.setdefault(key, []), (due, self._made, item))

    def closed(self, until: int | None) -> Iterator[tuple[Instant | None, Item]]:
        """Remove and return the items whose windows have closed by a time (ms), in order.

        None for all; the items whose windows are still open then come last.
        """
        for key in self._counts.changed & self._waiting.keys():
            self._settle(key, self._waiting[key])
            if not self._waiting[key]:
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
