"""Which solutions passed the tests of an edge, kept from one search to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.evaluators.lazy_buffer import Bucket, Key
from spaseq.automaton.evaluators.lazy_clock import NEVER
from spaseq.automaton.evaluators.lazy_tree import TreeEdge
from spaseq.automaton.runs import Row


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
    questions never come up again.
    """

    __slots__ = ("_places", "_swept")

    def __init__(self) -> None:
        self._places: dict[TreeEdge, dict[_Place, Kept | None]] = {}
        self._swept = NEVER

    def recall(
        self, edge: TreeEdge, key: Key, beside: tuple[Row, ...], after: Callable[[], Instant]
    ) -> Kept | None:
        """What is kept at a place, from the second question on; to begin with, nothing, tested up
        to `after()`."""
        places = self._places.setdefault(edge, {})
        place = (key, beside)
        if place not in places:
            places[place] = None
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
        self._swept = now
        for edge, places in list(self._places.items()):
            self._places[edge] = {
                place: kept
                for place, kept in places.items()
                if all((row[1], row[2]) > expired for row in place[1])
            }

    def __len__(self) -> int:
        return sum(len(k.bucket.rows) for ps in self._places.values() for k in ps.values() if k)
