"""The nodes of a compact set in flat arrays: room, forgetting, and enumeration."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.sets.kernels import enumerate_matches as enumeration
from spaseq.automaton.sets.kernels import preference
from spaseq.automaton.sets.kernels import set_arrays as kernel
from spaseq.compiled.arrays import Bytes, Float64s, Int64s, grown
from spaseq.rdf.columns.term_columns import distinct
from spaseq.stateful import Stateful

FIRST = kernel.EVER + 1
"""The least begin of a window. Dropped nodes begin at EVER, before it."""

_NODES, _ROOTS, _FEW = 256, 1024, 64
_MARKS = 32
_YES, _NO = np.ones(1, np.uint8), np.zeros(1, np.uint8)
ROOT = 2
"""Column of `ends` in enumerated matches: the root of the match."""


class SetNodes(Stateful):
    """Nodes by id, forgotten from the front.

    `array` [N, NODE_COLUMNS] is the ring of the kernels and `cursor` their cursor (`set_arrays`). A
    mark (measure, id) says that the nodes before the id were added by that measure. A window later
    they are not needed.
    """

    STATE = (("array", "kept"), "cursor", "_marks", "_swept")

    def __init__(self) -> None:
        self.array = np.empty((_NODES, kernel.NODE_COLUMNS), np.int64)
        self.cursor = np.zeros(kernel.CURSOR, np.int64)
        self.roots = np.empty((_ROOTS, 2), np.int64)
        self._marks: list[tuple[int, int]] = []  # (measure, id after the last node added by then)
        self._swept = 0  # `base` when rows were last dropped
        self._most = 0  # the most nodes in use since then
        self._reading = np.zeros(enumeration.CURSOR, np.int64)  # cursor of `enumerate_matches`
        self._stack, self._path = np.empty((_FEW, 2), np.int64), np.empty(_FEW, np.int64)
        self._rows, self._ends = np.empty(_FEW, np.int64), np.empty((_FEW, 3), np.int64)

    @property
    def base(self) -> int:
        """Id of the first node kept."""
        return int(self.cursor[kernel.BASE])

    @property
    def used(self) -> int:
        """Number of nodes in use."""
        return self.next - self.base

    @property
    def next(self) -> int:
        """Id of the next node."""
        return int(self.cursor[kernel.NEXT])

    def roots_of(
        self,
        rows: OrderedRows,
        advance: Callable[[OrderedRows], int],
        provide: Callable[[int], None],
        pace: Pace | None,
        most_made: Callable[[], int],
    ) -> Int64s:
        """Let a kernel process rows; returns the roots [R, 2] that it has found.

        Args:
            rows: the rows.
            advance: calls the kernel for rows.
            provide: provides the resource that the kernel has reported missing, before each further
                call.
            pace: limits its progress, if partial matches are limited.
            most_made: maximum number of sets of partial matches that begin to wait at a row.
        """
        self.cursor[kernel.ROOTS :] = 0
        if pace is None:
            while (missing := advance(rows)) != kernel.DONE:
                provide(missing)
        while pace is not None and pace.goes_on:
            most = most_made()
            pace.plan(most)
            while (missing := advance(pace.rows)) != kernel.DONE:
                provide(missing)
                if most_made() > most:
                    break
            pace.passed(int(self.cursor[kernel.AT]), most)
        return self.roots[: self.cursor[kernel.ROOTS]].copy()

    def make_room(self, full: int) -> None:
        """Enlarge the array that a kernel has reported full."""
        need = int(self.cursor[kernel.NEED])
        if full == kernel.NODES_FULL:
            self._resize(self.used + need)
        else:
            self.roots = grown(self.roots, 2 * (int(self.cursor[kernel.ROOTS]) + need))

    def _resize(self, size: int) -> None:
        """Move the nodes to a ring with room for more than `size`."""
        self.array = self._ring(size, self.kept)

    def _ring(self, size: int, kept: Int64s) -> Int64s:
        """A ring with room for more than `size` nodes, which holds the nodes in use."""
        ring = np.empty((1 << size.bit_length(), kernel.NODE_COLUMNS), np.int64)
        begin = self.base & (len(ring) - 1)
        behind = min(len(kept), len(ring) - begin)
        ring[begin : begin + behind], ring[: len(kept) - behind] = kept[:behind], kept[behind:]
        return ring

    @property
    def kept(self) -> Int64s:
        """The nodes in use, the oldest first."""
        begin, end = self.base & (len(self.array) - 1), self.next & (len(self.array) - 1)
        if begin < end or not self.used:
            return self.array[begin:end]
        return np.concatenate([self.array[begin:], self.array[:end]])

    def row_numbers(self) -> Int64s:
        """The numbers of the rows in the nodes, ascending."""
        numbers = self.kept[:, kernel.ROW]
        return distinct(numbers[numbers != kernel.UNION])

    def taken_rows(self, since: int, number: int, size: int) -> Bytes:
        """A mask of the `size` rows, numbered from `number` on, in the nodes from `since` on.

        Returns 1 or 0 by row.
        """
        if size == 1 and self.next == since + 1:
            return _YES if self.array[since & (len(self.array) - 1), kernel.ROW] >= 0 else _NO
        taken = np.zeros(size, np.uint8)
        kernel.mark_taken(self.array, since, self.next, number, taken)
        return taken

    def live(self, roots: Int64s, floor: int) -> Float64s:
        """[...] number of partial matches of each root in the window.

        The window begins at `floor`. One pass over all nodes counts them.
        """
        counts = np.zeros(self.used + 1)  # the last one is for roots that the window has left
        kernel.count_matches(self.array, self.base, self.next, floor, counts[:-1])
        start = self.array[roots & (len(self.array) - 1), kernel.START]
        alive = (roots >= self.base) & (start >= floor)
        of_roots: Float64s = counts[np.where(alive, roots - self.base, -1)]
        return of_roots

    # --- time -------------------------------------------------------------------------------------

    def mark(self, since: int, start: Int64s, number: int) -> None:
        """Mark the nodes from `since` on, which a batch of rows added.

        `start` [n] are the measures of the rows, which are numbered from `number` on.
        """
        end = self.next
        if end - since > thresholds.current.marked_nodes:
            step = max(thresholds.current.marked_nodes, (end - since) // _MARKS)
            nodes = np.arange(since + step, end, step)
            rows = self.array[nodes & (len(self.array) - 1), kernel.ROW]
            is_row = rows != kernel.UNION  # the nodes before them are no later
            measures = start[rows[is_row] - number]
            self._marks += zip(measures.tolist(), nodes[is_row].tolist(), strict=True)
        before_last = self._marks[-2][1] if len(self._marks) > 1 else self.base
        if self._marks and self._marks[-1][1] - before_last < thresholds.current.marked_nodes:
            self._marks.pop()
        self._marks.append((int(start[-1]), end))

    def forget(self, floor: int) -> bool:
        """Drop the nodes from before a measure.

        Returns whether, since the last True, more nodes were dropped than are left.
        """
        if not self._marks or self._marks[0][0] >= floor:
            return False
        self._most = max(self._most, self.used)
        gone = bisect_left(self._marks, floor, key=lambda mark: mark[0])
        self.cursor[kernel.BASE] = self._marks[gone - 1][1]
        del self._marks[:gone]
        if self.base - self._swept - self.used <= thresholds.current.forgotten_nodes:
            return False
        self._swept = self.base
        if len(self.array) // max(self._most, _NODES) > thresholds.current.shrunk_rings:
            self._resize(2 * self._most)
        self._most = 0
        return True

    # --- reading ----------------------------------------------------------------------------------

    def matches(
        self, roots: Int64s, lowest: Int64s, limit: int = -1
    ) -> Iterator[EnumeratedMatches]:
        """Enumerate the matches of roots [R, 2] (node, row) in pieces.

        `lowest` [rows] is the begin of the window that ends at each row. If `limit` is not
        negative, it bounds the matches of each root. The column ROOT of `ends` names the root of a
        match. A piece is valid until the next one, and no other call may use the nodes until the
        last piece, because there may be any number of matches.
        """
        cursor = self._reading
        cursor.fill(0)
        full = enumeration.MATCHES_FULL
        while full != kernel.DONE:
            full = enumeration.enumerate_matches(
                self.array,
                self.base,
                roots,
                lowest,
                limit,
                self._stack,
                self._path,
                self._rows,
                self._ends,
                cursor,
            )
            _, size, matches, _, _ = cursor.tolist()
            if full == enumeration.STACK_FULL:
                self._stack = grown(self._stack, 2 * len(self._stack))
                self._path = grown(self._path, 2 * len(self._path))
            elif full == enumeration.MATCHES_FULL and (
                len(self._rows) < thresholds.current.enumerated_rows or not matches
            ):
                self._rows = grown(self._rows, 2 * max(len(self._rows), len(self._path)))
                self._ends = grown(self._ends, 2 * len(self._ends))
            elif matches:
                yield EnumeratedMatches(self._rows[:size], self._ends[:matches])
                cursor[1:3] = 0

    def count(self, roots: list[int], floor: int) -> int:
        """Number of matches of some disjoint roots in the window, however large.

        It visits each node of the window once.
        """
        mark = np.zeros(self.used, np.uint8)
        alive = self._alive(roots, floor)
        mark[np.array(alive, np.int64) - self.base] = 1
        kernel.mark_reachable(self.array, self.base, floor, mark)
        places = np.flatnonzero(mark)
        counts = {kernel.NIL: 1}  # by node; no row before: one match
        for node, (before, rest, *_) in zip(
            (places + self.base).tolist(), self.kept[places].tolist(), strict=True
        ):
            more = 0 if rest == kernel.NIL else counts.get(rest, 0)  # 0: out of the window
            counts[node] = counts[before] + more
        return sum(counts[root] for root in alive)

    def preferred(
        self, roots: Int64s, ends: Int64s, lowest: Int64s, rank: Int64s, smallest_decides: bool
    ) -> tuple[SetNodes, Int64s, Int64s]:
        """The greatest matches of each group of roots (see `kernels.preference`).

        `ends` has the end of each group. `rank` is the rank of each row of `row_numbers` in the
        order of positions. Returns new nodes, their roots [R, 2] and the end of each group.
        """
        numbers = self.kept[:, kernel.ROW]
        ranks = rank[np.searchsorted(self.row_numbers(), numbers)]  # of no meaning for a union
        scratch = np.full((self.used, preference.SCRATCH), -1, np.int64)
        sets = np.full((self.used + 1, 2), kernel.EVER, np.int64)
        sets[preference.NOTHING, preference.EARLIER] = preference.NOTHING
        chosen, chosen_ends = np.empty_like(roots), np.empty_like(ends)
        cursor, greatest = np.zeros(4, np.int64), SetNodes()
        while preference.prefer(
            self.array, self.base, roots, ends, lowest, ranks, smallest_decides,
            scratch, sets, greatest.array, chosen, chosen_ends, cursor,
        ) != kernel.DONE:  # fmt: skip
            greatest.cursor[kernel.NEXT] = cursor[preference.COPIES]
            greatest._resize(greatest.used + int(cursor[preference.MORE]))
        greatest.cursor[kernel.NEXT] = cursor[preference.COPIES]
        return greatest, chosen[: cursor[preference.CHOSEN]], chosen_ends

    def _alive(self, roots: list[int], floor: int) -> list[int]:
        start, mask = self.array[:, kernel.START], len(self.array) - 1
        return [r for r in roots if r >= self.base and start[r & mask] >= floor]

    def _after_restore(self) -> None:
        self.array = self._ring(len(self.array) + _NODES, self.array)


def whole(count: float) -> int:
    """A count of `live`, exact below 2^53; there may be more partial matches than float64 has.

    >>> whole(3.0), whole(np.inf) > 10**300
    (3, True)
    """
    return int(min(count, np.finfo(np.float64).max))
