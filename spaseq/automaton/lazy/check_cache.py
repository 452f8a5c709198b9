"""Remembers from search to search which solutions passed the checks of an edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.lazy.input_buffer import Bucket, InputBuffer, Key
from spaseq.automaton.lazy.tree_nodes import TreeEdge
from spaseq.automaton.lazy.window_clock import NEVER
from spaseq.automaton.run.runs import Row

_MOST_CACHED = 4
"""Bound of the cache's size, per stored solution."""


class CheckedRows:
    """The solutions with one key that pass the checks of an edge beside certain solutions."""

    __slots__ = ("bucket", "upto")

    def __init__(self, after: Instant) -> None:
        self.bucket = Bucket()
        self.upto = after  # later solutions have not been checked yet


_Entry: TypeAlias = tuple[Key, tuple[Row, ...]]
"""A join key, and the solutions beside."""


class CheckCache:
    """Solutions that passed, by edge, join key and the solutions beside.

    The first request for an entry only records the request, because most requests never come again
    where last events are rare. An entry goes when a solution beside expires. The cache holds at
    most a few times the number of stored solutions. Beyond that, checks are repeated.
    """

    __slots__ = ("_buffers", "_entries", "_room", "_swept", "size")

    def __init__(self, buffers: Mapping[int, InputBuffer]) -> None:
        self._buffers = buffers
        self._entries: dict[TreeEdge, dict[_Entry, CheckedRows | None]] = {}
        self._swept = NEVER
        self._room = 0
        self.size = 0  # entries and their solutions

    def _is_full(self) -> bool:
        if self.size <= self._room:
            return False
        self._room = _MOST_CACHED * sum(map(len, self._buffers.values()))
        return self.size > self._room

    def lookup(
        self, edge: TreeEdge, key: Key, beside: tuple[Row, ...], after: Callable[[], Instant]
    ) -> CheckedRows | None:
        """The solutions of an entry; None at the first request, or if the cache is full.

        A new entry has no solutions; those up to `after()` do not matter to it.
        """
        if self._is_full():
            return None
        entries = self._entries.setdefault(edge, {})
        entry = (key, beside)
        if entry not in entries:
            entries[entry] = None
            self.size += 1
            return None
        passing = entries[entry]
        if passing is None:
            passing = entries[entry] = CheckedRows(after())
        return passing

    def forget(self, expired: Instant, now: Instant) -> None:
        """Drop the entries beside solutions at or before `expired`.

        It acts once in a window, when all solutions of the last time have expired.
        """
        if expired < self._swept:
            return
        self._swept, self._room, self.size = now, 0, 0
        for edge, entries in list(self._entries.items()):
            live = self._entries[edge] = {
                entry: passing
                for entry, passing in entries.items()
                if all((row[1], row[2]) > expired for row in entry[1])
            }
            self.size += len(live) + sum(len(p.bucket.rows) for p in live.values() if p)
