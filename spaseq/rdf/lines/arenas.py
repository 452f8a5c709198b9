"""Reusable memory for reading and tokenizing chunks of a file.

Fresh memory is slow, as the system maps each page at its first use. An arena returns to its pool
when nothing refers to its terms any more.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Bytes, Float64s, Int8s, Int32s
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.tables import FULLEST, fill_slots
from spaseq.rdf.kernels.token_arrays import DeferredLines, QuadRows

LASTING_BYTES = 1 << 26
"""Arenas for larger chunks are made for single events, and their memory is given back."""

_ROWS = 1 << 12
_SLOTS = 1 << 13
_DEFERRED = 1 << 8
_CONSTANTS = 1 << 12  # bytes


def _larger(column: Any) -> Any:
    grown = np.empty((2 * len(column), *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown


@dataclass(slots=True, weakref_slot=True)
class ReadArena:
    """A text buffer and the output arrays of the tokenizer.

    The buffer has room for `capacity` bytes of text and as many bytes of canonical texts. See
    `spaseq.rdf.kernels.token_arrays` for the arrays.
    """

    capacity: int
    buffer: Bytes = field(init=False)
    rows: QuadRows = field(init=False)
    deferred: DeferredLines = field(init=False)
    spans: Int32s = field(init=False)
    slots: Int32s = field(init=False)
    values: Float64s = field(init=False)
    kinds: Int8s = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = np.empty(2 * (self.capacity + PAD) + _CONSTANTS, np.uint8)
        s, p, o, g, at, line = np.empty((6, _ROWS), np.int32)
        self.rows = QuadRows(s, p, o, g, at, line, np.empty(_ROWS, np.int64))
        self.deferred = DeferredLines(*np.empty((3, _DEFERRED), np.int32))
        self._make_slots(_SLOTS)
        self.values, self.kinds = np.empty(0), np.empty(0, np.int8)

    def clear(self) -> None:
        """Remove all terms."""
        self.slots.fill(0)

    def grow_rows(self) -> None:
        """Double the room for rows."""
        self.rows = QuadRows._make(_larger(column) for column in self.rows)

    def grow_deferred(self) -> None:
        """Double the room for deferred lines."""
        self.deferred = DeferredLines._make(_larger(column) for column in self.deferred)

    def grow_terms(self, count: int) -> None:
        """Double the room for terms, of which there are `count`."""
        spans = self.spans
        self._make_slots(2 * len(self.slots))
        self.spans[:count] = spans[:count]
        fill_slots(self.spans, count, self.slots)

    def _make_slots(self, slots: int) -> None:
        """Make the table of terms anew, with none."""
        part, whole = FULLEST
        self.spans = np.empty((slots * part // whole, 3), np.int32)
        self.slots = np.zeros(slots, np.int32)

    def numbers(self, count: int) -> tuple[Float64s, Int8s]:
        """Room for the numbers of `count` terms, and for their kinds, which are 0."""
        if len(self.values) < count:
            self.values, self.kinds = np.empty(len(self.spans)), np.empty(len(self.spans), np.int8)
        self.kinds[:count] = 0
        return self.values[:count], self.kinds[:count]

    def reserve(self, used: int, needed: int) -> None:
        """Make room for `needed` bytes after the first `used` bytes, and padding."""
        if used + needed + PAD > len(self.buffer):
            grown = np.empty(used + needed + max(used, needed) + PAD, np.uint8)
            grown[:used] = self.buffer[:used]
            self.buffer = grown


class ArenaPool:
    """Idle arenas, at most `most` of them. Large ones are not kept."""

    def __init__(self, most: int) -> None:
        """An empty pool that keeps at most `most` idle arenas."""
        self._most = most
        self._idle: list[ReadArena] = []

    def take(self, capacity: int) -> ReadArena:
        """An arena for at least `capacity` bytes of text."""
        try:
            while (arena := self._idle.pop()).capacity < capacity:
                pass
        except IndexError:
            return ReadArena(capacity)
        return arena

    def give_back(self, arena: ReadArena) -> None:
        """Return an arena that is not in use any more."""
        if len(self._idle) < self._most and arena.capacity <= LASTING_BYTES:
            self._idle.append(arena)

    def lend(self, arena: ReadArena, user: object) -> None:
        """Return the arena when `user` is garbage-collected."""
        weakref.finalize(user, self.give_back, arena).atexit = False
