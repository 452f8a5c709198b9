"""All matches of one batch as the numbers of their rows, before any of them is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spaseq.automaton.batch.match_builder import EnumeratedMatches, MatchBuilder
from spaseq.automaton.run.matches import SequenceMatch
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.records import record

_MATCH_BYTES, _ROW_BYTES = 128, 64
"""Memory of a match as row numbers, for each match and for each of its rows, estimated."""

_LARGEST = 2**63


class TooManyMatches(Exception):
    """A batch has more matches than the memory for them holds; the last one has `events`."""

    def __init__(self, events: int) -> None:
        super().__init__()
        self.events = events


@record
class NumberedMatches:
    """The matches of one batch as row numbers, in pieces.

    Rows are numbered from `first` on, in the `order` of `BatchFrame`: sequencers that get the same
    batches number the rows alike if their orders are equal. `built` makes some of the matches.
    """

    first: int
    order: Sequence[Indices]
    pieces: Sequence[EnumeratedMatches]
    builder: MatchBuilder

    def built(self, some: EnumeratedMatches) -> Iterator[SequenceMatch]:
        """Some of the matches, with their bindings."""
        return self.builder.matches(some)

    def is_like(self, other: NumberedMatches) -> bool:
        """Whether the rows of two sequencers' batch have the same numbers."""
        return (
            self.first == other.first
            and len(self.order) == len(other.order)
            and all(map(np.array_equal, self.order, other.order))
        )


def joined(pieces: Sequence[EnumeratedMatches]) -> EnumeratedMatches:
    """The matches of several stored pieces, none of which waits, as one piece."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return EnumeratedMatches(np.empty(0, np.int64), np.empty((0, 2), np.int64))
    ends = np.concatenate([piece.ends[:, :2] for piece in pieces])
    sizes = [len(piece.rows) for piece in pieces]
    ends[:, 0] += np.repeat(np.cumsum([0, *sizes[:-1]]), [len(piece.ends) for piece in pieces])
    return EnumeratedMatches(np.concatenate([piece.rows for piece in pieces]), ends)


def among(some: Int64s, others: Int64s) -> Bools:
    """Which of the rows of `some` [n, w] are rows of `others` [m, w] too."""
    both = np.concatenate([some, others])
    if not len(some) or not len(others):
        return np.zeros(len(some), np.bool_)
    both -= both.min()
    radix = int(both.max()) + 1
    codes, bound = both[:, 0], radix
    for column in both.T[1:]:
        if bound * radix >= _LARGEST:
            codes = np.unique(codes, return_inverse=True)[1]
            bound = len(both)
        codes, bound = codes * radix + column, bound * radix
    return np.isin(codes[: len(some)], codes[len(some) :])


def stored(pieces: Iterable[EnumeratedMatches], most_bytes: int) -> list[EnumeratedMatches]:
    """Copies of pieces that are valid only until the next one.

    Raises:
        TooManyMatches: they need more than `most_bytes`.
    """
    kept: list[EnumeratedMatches] = []
    for piece in pieces:
        if len(piece.ends):
            size = int(piece.ends[-1, 0])
            most_bytes -= _MATCH_BYTES * len(piece.ends) + _ROW_BYTES * size
            if most_bytes < 0:
                raise TooManyMatches(int(np.diff(piece.ends[:, 0], prepend=0)[-1]))
            kept.append(EnumeratedMatches(piece.rows[:size].copy(), piece.ends.copy()))
    return kept
