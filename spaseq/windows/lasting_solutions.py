"""The solutions of a window from window event to window event, and what is new or gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.graphs.window_partition import ranges
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.records import record
from spaseq.windows.window_closes import Closes

Solution: TypeAlias = "tuple[str | None, ...]"
Given: TypeAlias = "list[tuple[int, Solution]]"
"""(window event, solution) pairs in the order of window events."""


@record
class ChangedSolutions:
    """r solutions that a GPM on a window gives, in the order of window events.

    `event` int64 [r] and codes int32 [r] by variable are the solutions; `sizes` int64 [r] are the
    numbers of events in their windows.
    """

    closes: Closes
    event: Int64s
    sizes: Int64s
    columns: Mapping[str, Int32s]
    lexicon: Lexicon


def wanted(
    changes: frozenset[str | None], begin: Int64s, end: Int64s, size: int
) -> tuple[Int64s, Int64s]:
    """What is wanted of n solutions at `size` window events: (window event, solution) in order.

    A solution is there at the window events from `begin` on and before `end`, int64 [n]; -1 is
    earlier than all of these, `size` later.

    >>> event, solution = wanted(frozenset(["NEW", "GONE"]), np.array([-1, 0]), np.array([1, 2]), 2)
    >>> event.tolist(), solution.tolist()
    ([0, 1], [1, 0])
    """
    every = np.arange(len(begin))
    parts: list[tuple[Int64s, Int64s]] = []
    if None in changes:
        first = np.maximum(begin, 0)
        parts.append((ranges(first, end - first), np.repeat(every, end - first)))
    elif "NEW" in changes:
        parts.append((begin[begin >= 0], every[begin >= 0]))
    if "GONE" in changes:
        parts.append((end[end < size], every[end < size]))
    event, solution = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(event, kind="stable")
    return event[order], solution[order]


class LastingSolutions:
    """Solutions that last as long as rows do, of which `changes` are wanted: NEW, GONE, None.

    A solution may be made of several rows, by themselves or together; it is there from the first
    to the last of them.

    >>> held = LastingSolutions(frozenset(["NEW", "GONE"]))
    >>> held.add([("a",), ("a",)], np.array([0, 1]), np.array([4, 5]))
    >>> held.advance(np.array([3, 5, 6]))
    [(0, ('a',)), (2, ('a',))]
    """

    def __init__(self, changes: frozenset[str | None]) -> None:
        self._changes = changes
        self._known: list[Solution] = []
        self._numbers: dict[Solution, int] = {}
        none = np.empty(0, np.int64)
        self._which, self._begin, self._oldest = none, none, none

    def __len__(self) -> int:
        return len(self._which)

    def add(self, solutions: Sequence[Solution], begin: Int64s, oldest: Int64s) -> None:
        """Take r solutions with the window events at which they begin; -1 for earlier ones.

        `oldest` int64 [r] are the first rows that they are made of.
        """
        self._which = np.append(self._which, self._numbered(solutions))
        self._begin = np.append(self._begin, begin)
        self._oldest = np.append(self._oldest, oldest)

    def _numbered(self, solutions: Iterable[Solution]) -> Int64s:
        numbers, known = self._numbers, self._known
        of_solutions = []
        for solution in solutions:
            number = numbers.get(solution)
            if number is None:
                number = numbers[solution] = len(known)
                known.append(solution)
            of_solutions.append(number)
        return np.array(of_solutions, np.int64)

    def advance(self, leave: Int64s) -> Given:
        """What is wanted at the next t window events, at which the rows before `leave` have left.

        All solutions that begin at one of these have been added.
        """
        size = len(leave)
        if not len(self._which) or not size:
            self._begin -= np.where(self._begin < 0, 0, size)
            return []
        end = np.searchsorted(leave, self._oldest, "right")
        there = np.flatnonzero((self._begin < size) & (self._begin < end))
        order = there[np.lexsort((self._begin[there], self._which[there]))]
        which, begin, end = self._which[order], self._begin[order], end[order]
        self._keep(leave)
        if not len(which):
            return []
        # Ascending numbers for (solution, window event), with room for -1 and t.
        first = which * (size + 2)
        reach = np.maximum.accumulate(first + end)
        starts = np.append(True, (first + begin)[1:] > reach[:-1])
        lasts = np.append(starts[1:], True)
        which, begin = which[starts], begin[starts]
        event, rows = wanted(self._changes, begin, reach[lasts] - which * (size + 2), size)
        known = self._known
        solutions = [known[i] for i in which[rows].tolist()]
        return list(zip(event.tolist(), solutions, strict=True))

    def _keep(self, leave: Int64s) -> None:
        """Keep the solutions whose rows have not left."""
        stays = self._oldest >= leave[-1]
        self._which, self._oldest = self._which[stays], self._oldest[stays]
        self._begin = np.maximum(self._begin[stays] - len(leave), -1)

    def forget(self) -> None:
        """Let go of the texts of solutions that are there no more, if there are many."""
        if len(self._known) > 2 * len(self._which) + 64:
            used, self._which = np.unique(self._which, return_inverse=True)
            self._known = [self._known[i] for i in used.tolist()]
            self._numbers = {solution: i for i, solution in enumerate(self._known)}

    def snapshot(self) -> list[Any]:
        """The solutions between two window events, for `restore`."""
        known = [self._known[i] for i in self._which.tolist()]
        return [[*map(list, known)], self._oldest]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        known, oldest = state
        self.add([*map(tuple, known)], np.full(len(known), -1, np.int64), oldest)
