"""The graphs that a stream has seen in the last time, by digests of their IRIs.

The memory is a list of sightings in pieces that never change. A run keeps it at several points of
the past; these share their pieces, also in the saved state, where each object stands once.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

_SIGHTING = struct.Struct("<16sq")
_PIECE = 4096  # sightings


class SeenGraphs:
    """Remembers which graphs were seen, for `window_ms`."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._now = -(2**62)  # ms, the greatest arrival so far
        self._last: OrderedDict[bytes, int] = OrderedDict()  # by digest, ascending
        self._pieces: list[bytes] = []
        self._open: list[bytes] = []

    def advance(self, arrival: int) -> None:
        """Take note that messages arrive at a time (ms), and forget what is too long ago."""
        self._now = max(self._now, arrival)
        until = self._now - self._window_ms
        while self._last and next(iter(self._last.values())) <= until:
            self._last.popitem(last=False)
        while self._pieces and _end(self._pieces[0]) <= until:
            del self._pieces[0]

    def has(self, name: str) -> bool:
        """Whether a graph has been seen."""
        return _digest(name) in self._last

    def see(self, names: Iterable[str]) -> None:
        """Take note that these graphs are seen now."""
        for name in names:
            self.is_new(name)

    def is_new(self, name: str) -> bool:
        """Whether a graph has not been seen; it has from now on."""
        digest = _digest(name)
        before = len(self._last)
        self._see(digest, self._now)
        self._open.append(_SIGHTING.pack(digest, self._now))
        if len(self._open) == _PIECE:
            self._pieces.append(b"".join(self._open))
            self._open.clear()
        return len(self._last) > before

    def _see(self, digest: bytes, at: int) -> None:
        self._last[digest] = at
        self._last.move_to_end(digest)

    def as_json(self) -> list[Any]:
        """The memory as a value for a state; `restore` takes it."""
        return [self._now, [*self._pieces, b"".join(self._open)]]

    def restore(self, value: list[Any]) -> None:
        """Remember what `as_json` gave."""
        self._now, pieces = value
        *self._pieces, rest = pieces
        self._open = [rest[at : at + _SIGHTING.size] for at in range(0, len(rest), _SIGHTING.size)]
        self._last.clear()
        for piece in pieces:
            for digest, at in _SIGHTING.iter_unpack(piece):
                self._see(digest, at)
        self.advance(self._now)


def _digest(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()


def _end(piece: bytes) -> int:
    """The time (ms) of the last sighting of a piece."""
    at: int = _SIGHTING.unpack_from(piece, len(piece) - _SIGHTING.size)[1]
    return at
