"""Memory that a piece of a file is read into and tokenized in, used again and again.

Fresh memory is slow: the system hands it out page by page, at the first touch. An arena goes back
to its pool when nothing refers to the terms in it any more.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np

from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.tables import Slots, Spans, fill_slots
from spaseq.rdf.kernels.tokenizer import Doubts, Rows
from spaseq.rdf.kernels.vectors import Bytes

_ROWS = 1 << 12
_TERMS = 1 << 12
_DOUBTS = 1 << 8


def _columns(kind: type[Rows] | type[Doubts], size: int) -> tuple[np.ndarray, ...]:
    return tuple(np.empty(size, np.int32) for _ in kind._fields)


def _larger(column: np.ndarray) -> np.ndarray:
    grown = np.empty((2 * len(column), *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown


@dataclass(slots=True, weakref_slot=True)
class Arena:
    """A buffer for `capacity` bytes of text, with as much again for canonical texts; and what
    tokenizing fills: see `spaseq.rdf.kernels.tokenizer.tokenize`."""

    capacity: int
    buffer: Bytes = field(init=False)
    rows: Rows = field(init=False)
    doubts: Doubts = field(init=False)
    spans: Spans = field(init=False)
    slots: Slots = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = np.empty(2 * (self.capacity + PAD), np.uint8)
        self.rows = Rows(*_columns(Rows, _ROWS))
        self.doubts = Doubts(*_columns(Doubts, _DOUBTS))
        self.spans = np.empty((_TERMS, 3), np.int32)
        self.slots = np.zeros(2 * _TERMS, np.uint64)

    def clear(self) -> None:
        """Forget all terms."""
        self.slots.fill(0)

    def grow_rows(self) -> None:
        """Room for twice as many rows."""
        self.rows = Rows(*map(_larger, self.rows))

    def grow_doubts(self) -> None:
        """Room for twice as many doubtful lines."""
        self.doubts = Doubts(*map(_larger, self.doubts))

    def grow_terms(self, count: int) -> None:
        """Room for twice as many terms; there are `count`."""
        self.spans = _larger(self.spans)
        self.slots = np.zeros(2 * len(self.spans), np.uint64)
        fill_slots(self.spans, count, self.slots)

    def grow_buffer(self, used: int, needed: int) -> None:
        """Room for `needed` bytes after the first `used` ones, and padding."""
        grown = np.empty(used + needed + PAD, np.uint8)
        grown[:used] = self.buffer[:used]
        self.buffer = grown


class ArenaPool:
    """Arenas that nobody uses now."""

    def __init__(self, most: int) -> None:
        """`most` is how many idle arenas are kept."""
        self._most = most
        self._idle: list[Arena] = []

    def take(self, capacity: int) -> Arena:
        """An arena for at least so many bytes of text."""
        while self._idle:
            arena = self._idle.pop()
            if arena.capacity >= capacity:
                return arena
        return Arena(capacity)

    def give_back(self, arena: Arena) -> None:
        """Nobody uses the arena from now on."""
        if len(self._idle) < self._most:
            self._idle.append(arena)

    def lend(self, arena: Arena, user: object) -> None:
        """The arena comes back when `user` is no more."""
        weakref.finalize(user, self.give_back, arena).atexit = False
