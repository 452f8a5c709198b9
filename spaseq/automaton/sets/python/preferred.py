"""SELECT NEXT and LAST on a compact set: the matches with the greatest set of positions.

The greatest match (docs/language.md#selection) of an output node adds its row's position to the
greatest match of the node before. The greatest match of a union is the greater of its two. So each
node of the window is visited once, and matches that are not selected are never enumerated. The
one-pass algorithms of "Foundations of CEP", section 7.3, do not fit: they keep one match per state,
and a window could remove it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal, TypeAlias

from spaseq.automaton.sets.python.compact_set import EVER, NIL, CompactSet

FlatPosition: TypeAlias = tuple[int, int, str]
"""A position: (time, k, stream IRI)."""

_NOTHING = 0
"""The number of the set of no positions."""


def preferred(
    matches: CompactSet,
    roots: list[int],
    strategy: Literal["NEXT", "LAST"],
    streams: Sequence[str],
) -> tuple[CompactSet, list[int]]:
    """The matches of some roots in the window that have the greatest set of positions.

    `streams` are the IRIs of the streams. Returns a new compact set and its roots.
    """
    return _Choice(matches, strategy == "NEXT", streams).of(roots)


class _Choice:
    def __init__(self, matches: CompactSet, smallest_decides: bool, streams: Sequence[str]) -> None:
        self._matches = matches
        self._streams = streams
        self._sets = _Sets(smallest_decides)
        self._own: dict[int, int] = {}  # node -> greatest set without its `rest`
        self._best: dict[int, int] = {NIL: _NOTHING}  # node -> greatest set

    def of(self, roots: list[int]) -> tuple[CompactSet, list[int]]:
        nodes, base, best = self._matches.nodes, self._matches.base, self._best
        below = self._matches.reachable(roots)
        for node in below:
            before, rest, _, _, row = nodes[node - base]
            own = best[before]
            if row is not None:
                own = self._sets.add((row[1], row[2], self._streams[row[0]]), own)
            self._own[node] = own
            best[node] = self._sets.greater(own, best[rest]) if self._has(rest) else own
        living = [root for root in roots if self._has(root)]
        greatest = reduce(self._sets.greater, [best[root] for root in living])
        return self._copy(below, [root for root in living if best[root] == greatest])

    def _has(self, node: int) -> bool:
        return node != NIL and node in self._best

    def _copy(self, below: list[int], roots: list[int]) -> tuple[CompactSet, list[int]]:
        """Copy the nodes that lead to the greatest matches."""
        nodes, base, best = self._matches.nodes, self._matches.base, self._best
        wanted = set(roots)
        for node in reversed(below):
            if node in wanted:
                before, rest, _, _, _ = nodes[node - base]
                if self._own[node] == best[node]:
                    wanted.add(before)
                if self._has(rest) and best[rest] == best[node]:
                    wanted.add(rest)
        copy, copied = CompactSet(), {NIL: NIL}
        for node in below:
            if node not in wanted:
                continue
            before, rest, start, gpm, row = nodes[node - base]
            others = copied[rest] if self._has(rest) and best[rest] == best[node] else NIL
            if self._own[node] != best[node]:
                copied[node] = others
            elif row is not None:
                copied[node] = copy.output(copied[before], others, start, gpm, row)
            elif others != NIL:
                copied[node] = copy.either(copied[before], others, start)
            else:
                copied[node] = copied[before]
        return copy, [copied[root] for root in roots]


class _Sets:
    """Sets of positions as linked lists, last position first; equal sets have equal numbers."""

    def __init__(self, smallest_decides: bool) -> None:
        self._smallest_decides = smallest_decides
        self._lists: list[tuple[FlatPosition, int]] = [((EVER, 0, ""), _NOTHING)]
        self._numbers: dict[tuple[FlatPosition, int], int] = {}

    def add(self, position: FlatPosition, earlier: int) -> int:
        """The set of a position and a set of positions, none of them later."""
        key = position, earlier
        if self._lists[earlier][0] == position:
            return earlier
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._lists)
            self._lists.append(key)
        return number

    def greater(self, first: int, second: int) -> int:
        """The set with the smallest (largest) position that only one of the two has."""
        lists, one, other, winner = self._lists, first, second, first
        while one != other:
            (position1, rest1), (position2, rest2) = lists[one], lists[other]
            if position1 == position2:
                one, other = rest1, rest2
                continue
            if position1 > position2:
                winner, one = first, rest1
            else:
                winner, other = second, rest2
            if not self._smallest_decides:
                break
        return winner
