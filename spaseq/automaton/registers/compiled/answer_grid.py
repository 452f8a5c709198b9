"""Answers to asked tests that a term of a solution and a term of the run decide, as matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from spaseq.automaton.batch.row_store import Interner
from spaseq.automaton.registers.compiled.edge_tests import AskedTest
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.compiled.arrays import Bytes, Int64s

_MOST_BYTES = 1 << 24
"""Size of a matrix; the answers to a test with more pairs of terms are hashed."""

_BESIDE = 8
"""Answers that are given at once for each one that is asked for: the kernel asks less often."""


class AnswerGrid:
    """For each test a row of answers for each term of solutions; row and column 0: without term.

    `terms` has the ids of the terms of each variable. Tests that other numbers decide have none,
    nor have tests of too many terms.
    """

    def __init__(self, tests: Sequence[AskedTest], terms: Mapping[str, Interner]) -> None:
        self._ids = [_ids_of(test, terms) for test in tests]
        self._known = [known for ids in self._ids for known in ids or () if known is not None]
        self._bounds = list[int]()
        self._shape = [(0, 0) for _ in tests]
        self.begin = np.full((len(tests), 2), kernel.NONE, np.int64)
        self.cell = np.zeros(1, np.uint8)

    def grow(self) -> None:
        """Make room for all terms that have an id."""
        bounds = [known.bound for known in self._known]
        if bounds == self._bounds:
            return
        shapes, self._bounds = [*map(_grown, self._shape, self._ids)], bounds
        if shapes == self._shape:
            return
        sizes = [rows * columns for rows, columns in shapes]
        cell, end = np.zeros(max(1, sum(sizes)), np.uint8), 0
        for test, (rows, columns) in enumerate(self._shape):
            if sizes[test] and rows:
                new = cell[end : end + sizes[test]].reshape(shapes[test])
                new[:rows, :columns] = self._matrix(test)
            self._shape[test] = shapes[test]
            end += sizes[test]
        ends = np.cumsum(sizes)
        for test, size in enumerate(sizes):
            self.begin[test] = (ends[test] - size, shapes[test][1]) if size else kernel.NONE
        self.cell = cell

    def forget(self) -> None:
        """Drop all answers."""
        self.cell[:] = kernel.FREE

    def each(self, cells: list[int]) -> Iterator[tuple[int, int, list[int]]]:
        """(the test, the cell, the numbers that decide it) of each of a few cells."""
        begins = [(first, width, test) for test, (first, width) in enumerate(self.begin.tolist())]
        for cell in cells:
            first, width, test = max(begin for begin in begins if begin[0] <= cell)
            places = zip(divmod(cell - first, width), self._ids[test] or (), strict=True)
            decisive = [at - 1 for at, known in places if known is not None]
            yield test, cell, [kernel.UNSET if n < 0 else n for n in decisive]

    def asked(self, cells: Int64s) -> Iterator[tuple[int, Int64s, Int64s]]:
        """(the test, some cells [n], the numbers [n, numbers] that decide each).

        The cells are the given ones, and perhaps others of their rows.
        """
        for test, (first, width) in enumerate(self.begin.tolist()):
            own = cells[(cells >= first) & (cells < first + np.prod(self._shape[test]))]
            if first < 0 or not len(own):
                continue
            own = self._with_more(test, own)
            places, ids = np.divmod(own - first, width), self._ids[test] or ()
            numbers = [at for at, known in zip(places, ids, strict=True) if known is not None]
            decisive = np.stack(numbers, axis=1) - 1
            yield test, own, np.where(decisive < 0, kernel.UNSET, decisive)

    def _with_more(self, test: int, cells: Int64s) -> Int64s:
        """Cells of a test, and others of their rows if these are not many more."""
        _, ids = self._ids[test] or (None, None)
        first, width = self.begin[test].tolist()
        rows = np.unique((cells - first) // width)
        if ids is None or len(rows) * len(ids) > _BESIDE * len(cells):
            return cells
        columns = 1 + np.fromiter(ids.keys(), np.int64, len(ids))
        more = (first + rows[:, None] * width + columns).ravel()
        return np.concatenate([more[self.cell[more] == kernel.FREE], cells])

    def _matrix(self, test: int) -> Bytes:
        first, (rows, columns) = self.begin[test, 0], self._shape[test]
        return self.cell[first : first + rows * columns].reshape(rows, columns)


_Ids = tuple[Interner | None, Interner | None]
"""The ids of a solution's terms, and of a run's terms; None for a side without a term."""


def _ids_of(test: AskedTest, terms: Mapping[str, Interner]) -> _Ids | None:
    """The ids that decide a test; None unless one term of a side, or of each, decides it."""
    sizes = {len(test.of_own), len(test.of_run)}
    if not test.is_of_terms or sizes == {0} or max(sizes) > 1:
        return None
    own, kept = ([terms[n.ids] for n in side] for side in (test.of_own, test.of_run))
    return own[0] if own else None, kept[0] if kept else None


def _grown(shape: tuple[int, int], ids: _Ids | None) -> tuple[int, int]:
    """The shape of a matrix with room for all ids; (0, 0) if that would be too large."""
    if ids is None:
        return 0, 0
    needed = [1 if known is None else known.bound + 1 for known in ids]
    rows, columns = (
        size if size <= room else 2 * size for size, room in zip(needed, shape, strict=True)
    )
    rows, columns = max(rows, shape[0]), max(columns, shape[1])
    return (rows, columns) if rows * columns <= _MOST_BYTES else (0, 0)
