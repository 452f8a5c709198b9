"""The nodes of a set of partial matches in flat arrays, and what is read from them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.automaton.columns.gathering import Matched
from spaseq.automaton.evaluators.compact_set import NIL, CompactSet
from spaseq.automaton.kernels import sets as kernel
from spaseq.automaton.runs import Row

Int64s: TypeAlias = npt.NDArray[np.int64]

_NODES, _FEW = 256, 64
_MARKED_EVERY, _MARKS = 64, 32


class SetNodes:
    """Nodes by id, forgotten from the front; `cursor` is the kernels'.

    `array` [N, NODE_COLUMNS] holds those with ids from `base` on. Here and there a node is marked
    with the measure by which all before it had been added: a window later they are not needed.
    """

    __slots__ = (
        "_ends",
        "_found",
        "_limit",
        "_marks",
        "_path",
        "_stack",
        "array",
        "cursor",
        "roots",
    )

    def __init__(self) -> None:
        self.array = np.empty((_NODES, kernel.NODE_COLUMNS), np.int64)
        self.cursor = np.zeros(kernel.CURSOR, np.int64)
        self.roots = np.empty((_FEW, 2), np.int64)
        self._marks: list[tuple[int, int]] = []  # (measure, id behind the last node added by then)
        self._limit = _NODES
        self._stack, self._path = np.empty((_FEW, 2), np.int64), np.empty(_FEW, np.int64)
        self._found, self._ends = np.empty(_FEW, np.int64), np.empty((_FEW, 3), np.int64)

    @property
    def base(self) -> int:
        """Id of the first node kept."""
        return int(self.cursor[kernel.BASE])

    @property
    def used(self) -> int:
        """How many nodes are kept."""
        return int(self.cursor[kernel.USED])

    def make_room(self, full: int) -> None:
        """Let an array grow that a kernel has found full."""
        need = int(self.cursor[kernel.NEED])
        if full == kernel.NODES_FULL:
            self.array = grown(self.array, self.used + need)
        else:
            self.roots = grown(self.roots, int(self.cursor[kernel.ROOTS]) + need)

    def solutions(self, since: int = 0) -> Int64s:
        """The numbers of the solutions that nodes hold from a position on, ascending."""
        numbers = self.array[since : self.used, kernel.ROW]
        return np.unique(numbers[numbers != kernel.UNION])

    # --- time -------------------------------------------------------------------------------------

    def mark(self, since: int, start: Int64s, number: int) -> None:
        """Nodes from a position on have been added by a batch of solutions, whose measures are
        `start` [n] and whose numbers go from `number` on."""
        step = max(_MARKED_EVERY, (self.used - since) // _MARKS)
        for place in range(since + step, self.used, step):
            row = int(self.array[place, kernel.ROW])
            if row != kernel.UNION:  # what stands before it is no later
                self._marks.append((int(start[row - number]), self.base + place))
        before_last = self._marks[-2][1] if len(self._marks) > 1 else self.base
        if self._marks and self._marks[-1][1] - before_last < _MARKED_EVERY:
            self._marks.pop()
        self._marks.append((int(start[-1]), self.base + self.used))

    def forget(self, floor: int) -> bool:
        """Drop nodes from before a measure; amortised: whether it was worth while."""
        if self.used <= self._limit:
            return False
        gone = bisect_left(self._marks, floor, key=lambda mark: mark[0])
        cut = self._marks[gone - 1][1] if gone else self.base
        del self._marks[:gone]
        kept = self.used - (cut - self.base)
        array = np.empty((2 * kept + _NODES, kernel.NODE_COLUMNS), np.int64)
        array[:kept] = self.array[self.used - kept : self.used]
        self.array = array
        self.cursor[kernel.BASE], self.cursor[kernel.USED] = cut, kept
        self._limit = 2 * kept + _NODES
        return True

    # --- reading ----------------------------------------------------------------------------------

    def matches(self, roots: Int64s, lowest: Int64s, limit: int = -1) -> tuple[Matched, Int64s]:
        """The matches of roots [R, 2] (node, row) in the windows that begin at `lowest` [rows], at
        most `limit` for each root if it is not negative; and the root [m] of each match."""
        cursor = np.zeros(3, np.int64)
        while True:
            full = kernel.enumerate_matches(
                self.array,
                self.base,
                roots,
                lowest,
                limit,
                self._stack,
                self._path,
                self._found,
                self._ends,
                cursor,
            )
            if full == 0:
                break
            if full == 1:
                self._stack = grown(self._stack, len(self._stack) + 1)
                self._path = grown(self._path, len(self._path) + 1)
            else:
                self._found = grown(self._found, len(self._found) + len(self._path))
                self._ends = grown(self._ends, len(self._ends) + 1)
        ends, origins, of_root = self._ends[: cursor[2]].T.copy()
        return Matched(self._found[: cursor[1]].copy(), ends, origins), of_root

    def view(
        self, roots: list[int], floor: int, rows: dict[int, tuple[int, Row]] | None
    ) -> tuple[CompactSet, list[int]]:
        """What some roots reach, as the evaluators in Python have it, and the roots there.

        `rows` gives solutions by number; without them there is what counting needs.
        """
        mark = np.zeros(self.used, np.uint8)
        alive = [r for r in roots if r >= self.base and self.array[r - self.base, 2] >= floor]
        mark[np.array(alive, np.int64) - self.base] = 1
        kernel.mark_reachable(self.array, self.base, floor, mark)
        places = np.flatnonzero(mark)
        matches = CompactSet()
        matches.floor = floor
        of = {NIL: NIL}
        nothing: tuple[int, Row | None] = 0, None
        for place, (before, rest, start, number) in zip(
            (places + self.base).tolist(), self.array[places].tolist(), strict=True
        ):
            is_union = number == kernel.UNION
            gpm, row = nothing if is_union or rows is None else rows[number]
            of[place] = len(matches.nodes)
            kind = kernel.UNION if is_union else gpm
            matches.nodes.append((of.get(before, NIL), of.get(rest, NIL), start, kind, row))
        return matches, [of[r] for r in alive]

    def reached(self, roots: list[int], floor: int) -> Int64s:
        """The numbers of the solutions of the matches of some roots, ascending."""
        mark = np.zeros(self.used, np.uint8)
        alive = [r for r in roots if r >= self.base and self.array[r - self.base, 2] >= floor]
        mark[np.array(alive, np.int64) - self.base] = 1
        kernel.mark_reachable(self.array, self.base, floor, mark)
        numbers = self.array[np.flatnonzero(mark), kernel.ROW]
        return np.unique(numbers[numbers != kernel.UNION])

    def state(self) -> object:
        """What a snapshot keeps."""
        return self.array[: self.used], self.cursor, self._marks, self._limit

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        assert isinstance(state, tuple)
        array, self.cursor, self._marks, self._limit = state
        self.array = grown(array, len(array) + _NODES)


def grown(array: Int64s, size: int) -> Int64s:
    """The array with room for twice as many rows as `size`."""
    larger = np.empty((2 * size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
