"""Which solutions passed the tests of an edge, kept from one search to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.lazy.buffer import Bucket, Buffer, Key
from spaseq.automaton.lazy.tree import TreeEdge
from spaseq.automaton.lazy.window_clock import NEVER
from spaseq.automaton.run.runs import Row

_MOST_KEPT = 4
"""Places and kept solutions per stored solution."""


class Kept:
    """The solutions with one key that pass an edge's tests beside certain solutions."""

    __slots__ = ("bucket", "upto")

    def __init__(self, after: Instant) -> None:
        self.bucket = Bucket()
        self.upto = after  # solutions at or before this have been tested, or do not matter


_Place: TypeAlias = tuple[Key, tuple[Row, ...]]
"""A join key, and the solutions beside."""


class Memory:
    """What is kept, by edge, join key and solutions beside; forgotten with those solutions.

    The first time that something is asked for only that is noted: where last events are rare, most
    questions never come up again. What is kept is no more than a few times what is stored, however
    many partial matches that makes; beyond, tests are made again.
    """

    __slots__ = ("_buffers", "_places", "_room", "_swept", "size")

    def __init__(self, buffers: Mapping[int, Buffer]) -> None:
        self._buffers = buffers
        self._places: dict[TreeEdge, dict[_Place, Kept | None]] = {}
        self._swept = NEVER
        self._room = 0
        self.size = 0  # places, and the solutions kept for them

    def _is_full(self) -> bool:
        if self.size <= self._room:
            return False
        self._room = _MOST_KEPT * sum(map(len, self._buffers.values()))
        return self.size > self._room

    def recall(
        self, edge: TreeEdge, key: Key, beside: tuple[Row, ...], after: Callable[[], Instant]
    ) -> Kept | None:
        """What is kept at a place, from the second question on; to begin with, nothing, tested up
        to `after()`. None also if there is no room."""
        if self._is_full():
            return None
        places = self._places.setdefault(edge, {})
        place = (key, beside)
        if place not in places:
            places[place] = None
            self.size += 1
            return None
        kept = places[place]
        if kept is None:
            kept = places[place] = Kept(after())
        return kept

    def forget(self, expired: Instant, now: Instant) -> None:
        """Drop what lies beside solutions at or before `expired`.

        Works once in a window: when all has expired that there was the last time.
        """
        if expired < self._swept:
            return
        self._swept, self._room, self.size = now, 0, 0
        for edge, places in list(self._places.items()):
            live = self._places[edge] = {
                place: kept
                for place, kept in places.items()
                if all((row[1], row[2]) > expired for row in place[1])
            }
            self.size += len(live) + sum(len(k.bucket.rows) for k in live.values() if k)
