"""The nodes of a set of partial matches in flat arrays, and what is read from them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from spaseq.automaton.batch.match_builder import PIECE, EnumeratedMatches
from spaseq.automaton.sets.kernels import preference
from spaseq.automaton.sets.kernels import sets as kernel
from spaseq.automaton.sets.python.compact_set import EVER, NIL, CompactSet
from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.rdf.columns.term_columns import distinct

_NODES, _ROOTS, _FEW = 256, 1024, 64
_MARKED_EVERY, _MARKS = 64, 32
_YES, _NO = np.ones(1, np.uint8), np.zeros(1, np.uint8)
ROOT = 2
_SPARSE = 8
"""A ring with room for so many times what has been in it becomes smaller."""


class SetNodes:
    """Nodes by id, forgotten from the front; `cursor` is the kernels'.

    `array` [N, NODE_COLUMNS] is a ring that holds those with ids from `base` on; N is a power of
    two. Here and there a node is marked with the measure by which all before it had been added: a
    window later they are not needed.
    """

    __slots__ = (
        "_ends",
        "_found",
        "_marks",
        "_most",
        "_path",
        "_reading",
        "_stack",
        "_swept",
        "array",
        "cursor",
        "roots",
    )

    def __init__(self) -> None:
        self.array = np.empty((_NODES, kernel.NODE_COLUMNS), np.int64)
        self.cursor = np.zeros(kernel.CURSOR, np.int64)
        self.roots = np.empty((_ROOTS, 2), np.int64)
        self._marks: list[tuple[int, int]] = []  # (measure, id behind the last node added by then)
        self._swept = 0  # the base when it was last found worth while to drop nodes
        self._most = 0  # nodes in use at a time, since then
        self._reading = np.zeros(kernel.READING, np.int64)  # the cursor of `enumerate_matches`
        self._stack, self._path = np.empty((_FEW, 2), np.int64), np.empty(_FEW, np.int64)
        self._found, self._ends = np.empty(_FEW, np.int64), np.empty((_FEW, 3), np.int64)

    @property
    def base(self) -> int:
        """Id of the first node kept."""
        return int(self.cursor[kernel.BASE])

    @property
    def used(self) -> int:
        """How many nodes are kept."""
        return self.next - self.base

    @property
    def next(self) -> int:
        """Id of the next node."""
        return int(self.cursor[kernel.NEXT])

    def make_room(self, full: int) -> None:
        """Let an array grow that a kernel has found full."""
        need = int(self.cursor[kernel.NEED])
        if full == kernel.NODES_FULL:
            self._resize(self.used + need)
        else:
            self.roots = grown(self.roots, int(self.cursor[kernel.ROOTS]) + need)

    def _resize(self, size: int) -> None:
        """Move the nodes to a ring with room for `size`, and then some."""
        self.array = self._ring(size, self.kept())

    def _ring(self, size: int, kept: Int64s) -> Int64s:
        """A ring with room for more than `size`, and in it the nodes in use."""
        ring = np.empty((1 << size.bit_length(), kernel.NODE_COLUMNS), np.int64)
        begin = self.base & (len(ring) - 1)
        behind = min(len(kept), len(ring) - begin)
        ring[begin : begin + behind], ring[: len(kept) - behind] = kept[:behind], kept[behind:]
        return ring

    def kept(self) -> Int64s:
        """The nodes in use, by falling age."""
        begin, end = self.base & (len(self.array) - 1), self.next & (len(self.array) - 1)
        if begin < end or not self.used:
            return self.array[begin:end]
        return np.concatenate([self.array[begin:], self.array[:end]])

    def solutions(self) -> Int64s:
        """The numbers of the solutions that nodes hold, ascending."""
        numbers = self.kept()[:, kernel.ROW]
        return distinct(numbers[numbers != kernel.UNION])

    def taken(self, since: int, number: int, size: int) -> Bytes:
        """1 for those of `size` solutions, numbered from `number` on, that are held by nodes from
        an id on."""
        if size == 1 and self.next == since + 1:
            return _YES if self.array[since & (len(self.array) - 1), kernel.ROW] >= 0 else _NO
        taken = np.zeros(size, np.uint8)
        kernel.mark_taken(self.array, since, self.next, number, taken)
        return taken

    # --- time -------------------------------------------------------------------------------------

    def mark(self, since: int, start: Int64s, number: int) -> None:
        """Nodes from an id on have been added by a batch of solutions, whose measures are `start`
        [n] and whose numbers go from `number` on."""
        end = self.next
        if end - since > _MARKED_EVERY:
            step = max(_MARKED_EVERY, (end - since) // _MARKS)
            nodes = np.arange(since + step, end, step)
            rows = self.array[nodes & (len(self.array) - 1), kernel.ROW]
            solutions = rows != kernel.UNION  # what stands before them is no later
            measures = start[rows[solutions] - number]
            self._marks += zip(measures.tolist(), nodes[solutions].tolist(), strict=True)
        before_last = self._marks[-2][1] if len(self._marks) > 1 else self.base
        if self._marks and self._marks[-1][1] - before_last < _MARKED_EVERY:
            self._marks.pop()
        self._marks.append((int(start[-1]), end))

    def forget(self, floor: int) -> bool:
        """Drop nodes from before a measure; whether more are gone, since that was so, than left."""
        if not self._marks or self._marks[0][0] >= floor:
            return False
        self._most = max(self._most, self.used)
        gone = bisect_left(self._marks, floor, key=lambda mark: mark[0])
        self.cursor[kernel.BASE] = self._marks[gone - 1][1]
        del self._marks[:gone]
        if self.base - self._swept <= self.used + _NODES:
            return False
        self._swept = self.base
        if len(self.array) > _SPARSE * max(self._most, _NODES):
            self._resize(2 * self._most)
        self._most = 0
        return True

    # --- reading ----------------------------------------------------------------------------------

    def matches(
        self, roots: Int64s, lowest: Int64s, limit: int = -1
    ) -> Iterator[EnumeratedMatches]:
        """The matches of roots [R, 2] (node, row) in the windows that begin at `lowest` [rows], at
        most `limit` for each root if it is not negative; a third column of `ends`, ROOT, says of
        which root each match is.

        They come in pieces, each valid until the next one: there may be any number of them, and
        nothing else may be asked of the nodes before the last.
        """
        cursor = self._reading
        cursor.fill(0)
        full = kernel.FOUND_FULL
        while full != kernel.DONE:
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
            _, size, matches, _, _ = cursor.tolist()
            if full == kernel.STACK_FULL:
                self._stack = grown(self._stack, len(self._stack))
                self._path = grown(self._path, len(self._path))
            elif full == kernel.FOUND_FULL and (len(self._found) < PIECE or not matches):
                self._found = grown(self._found, max(len(self._found), len(self._path)))
                self._ends = grown(self._ends, len(self._ends))
            elif matches:
                yield EnumeratedMatches(self._found[:size], self._ends[:matches])
                cursor[1:3] = 0

    def view(self, roots: list[int], floor: int) -> tuple[CompactSet, list[int]]:
        """What some roots reach, as the evaluators in Python have it but for the solutions, and the
        roots there: all that counting needs."""
        mark = np.zeros(self.used, np.uint8)
        alive = self._alive(roots, floor)
        mark[np.array(alive, np.int64) - self.base] = 1
        kernel.mark_reachable(self.array, self.base, floor, mark)
        places = np.flatnonzero(mark)
        matches = CompactSet()
        matches.floor = floor
        of = {NIL: NIL}
        for place, (before, rest, start, number) in zip(
            (places + self.base).tolist(), self.kept()[places].tolist(), strict=True
        ):
            of[place] = len(matches.nodes)
            kind = kernel.UNION if number == kernel.UNION else 0
            matches.nodes.append((of.get(before, NIL), of.get(rest, NIL), start, kind, None))
        return matches, [of[r] for r in alive]

    def preferred(
        self, roots: Int64s, ends: Int64s, lowest: Int64s, rank: Int64s, smallest_decides: bool
    ) -> tuple[SetNodes, Int64s, Int64s]:
        """The greatest matches of each of some groups of roots (see `kernels.preference`).

        `rank` are the places of `solutions` in the order of positions. Returns nodes of their own,
        their roots [R, 2] and where those of each group end.
        """
        numbers = self.kept()[:, kernel.ROW]
        ranks = rank[np.searchsorted(self.solutions(), numbers)]  # any for a union
        scratch = np.full((self.used, preference.SCRATCH), -1, np.int64)
        sets = np.full((self.used + 1, 2), EVER, np.int64)
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

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        return self.kept(), self.cursor, self._marks, self._swept

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        kept, self.cursor, self._marks, self._swept = state
        self.array = self._ring(len(kept) + _NODES, kept)


def grown(array: Int64s, size: int) -> Int64s:
    """The array with room for twice as many rows as `size`."""
    larger = np.empty((2 * size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
