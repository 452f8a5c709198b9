"""Complete matches that wait for the close of their windows, as the numbers of their rows."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

import numpy as np

from spaseq.automaton.batch.match_builder import EnumeratedMatches, MatchBuilder
from spaseq.automaton.run.live_states import StateKey, StatePlaces, Wanted
from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.records import record
from spaseq.stateful import Stateful


@record
class ClosingMatches:
    """m matches by the close of their windows.

    `rows` holds their rows, one match after the other; `ends` [m] is the end of each, and `origin`
    [m] the measure of its first event. `close` [m] ascends. `edges` are as in `EnumeratedMatches`.
    """

    rows: Int64s
    ends: Int64s
    origin: Int64s
    close: Int64s
    edges: Bytes | None = None

    @classmethod
    def of(cls, matches: EnumeratedMatches, close: Int64s) -> ClosingMatches:
        """Matches as they are enumerated; `close` [m] is in the same order."""
        ends, origin = matches.ends[:, 0].copy(), matches.ends[:, 1].copy()
        size = int(ends[-1]) if len(ends) else 0
        edges = None if matches.edges is None else matches.edges[:size].copy()
        whole = cls(matches.rows[:size].copy(), ends, origin, close, edges)
        if (close[1:] >= close[:-1]).all():
            return whole
        return whole.take(np.argsort(close, kind="stable"))

    def take(self, chosen: Int64s) -> ClosingMatches:
        """Some of the matches, given by their positions."""
        begins = np.concatenate([[0], self.ends[:-1]])[chosen]
        lengths = self.ends[chosen] - begins
        ends = np.cumsum(lengths)
        places = np.arange(int(lengths.sum())) + np.repeat(begins - ends + lengths, lengths)
        edges = None if self.edges is None else self.edges[places]
        origin, close = self.origin[chosen], self.close[chosen]
        return ClosingMatches(self.rows[places], ends, origin, close, edges)

    @property
    def first(self) -> Int64s:
        """[m] the first row of each match."""
        return self.rows_at(0)

    def rows_at(self, position: int) -> Int64s:
        """[m] the row of each match at a position; all are longer than that."""
        return self.rows[np.concatenate([[0], self.ends[:-1]]).astype(np.int64) + position]

    @property
    def last(self) -> Int64s:
        """[m] the last row of each match."""
        last: Int64s = self.rows[self.ends - 1]
        return last

    def enumerated(self) -> EnumeratedMatches:
        """The same matches as an enumeration."""
        return EnumeratedMatches(self.rows, np.stack([self.ends, self.origin], axis=1), self.close)


class WaitingMatches(Stateful):
    """Matches by the close of their windows, in pieces."""

    STATE = ("_pieces", "_added")

    def __init__(self) -> None:
        self._pieces: list[tuple[int, int, ClosingMatches]] = []  # a heap by the next close
        self._added = 0

    def add(self, matches: ClosingMatches) -> None:
        """Add matches."""
        if len(matches.close):
            self._added += 1
            heapq.heappush(self._pieces, (int(matches.close[0]), self._added, matches))

    def due(self, until: int | None) -> Iterator[ClosingMatches]:
        """Remove and return matches whose windows close at or before a time (ms), all for None."""
        while self._pieces and (until is None or self._pieces[0][0] <= until):
            _, _, matches = heapq.heappop(self._pieces)
            count = len(matches.close)
            closed = count if until is None else int(np.searchsorted(matches.close, until, "right"))
            places = np.arange(count)
            self.add(matches.take(places[closed:]))
            yield matches.take(places[:closed])

    @property
    def next_close(self) -> int | None:
        """The time (ms) at which the first window closes; None if no match waits."""
        return self._pieces[0][0] if self._pieces else None

    def __iter__(self) -> Iterator[ClosingMatches]:
        """The matches that wait."""
        for _, _, matches in self._pieces:
            yield matches


def closing_states(
    waiting: WaitingMatches,
    builder: MatchBuilder,
    places: StatePlaces,
    wanted: Wanted | None,
    carried: str | None = None,
) -> Counter[StateKey]:
    """Number of waiting matches in each accepting state.

    Only matches of wanted partitions count, or with wanted values of the variable `carried` in the
    first solution.
    """
    found, last = Counter[StateKey](), [matches.last for matches in waiting]
    if not last:
        return found
    if wanted is not None and carried is not None:
        first = np.concatenate([matches.first for matches in waiting])
        members, place = np.unique(first, return_inverse=True)
        known = np.array([wanted((m,)) for m in builder.texts(members, carried)], np.bool_)
        last, wanted = [np.concatenate(last)[known[place]]], None
    numbers, counts = np.unique(np.concatenate(last), return_counts=True)
    rows = builder.rows(numbers)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        row = rows[number]
        if wanted is None or wanted(builder.partition_of(row)):
            found[places.end(row[0])] += count
    return found
