"""The groups of a window: their keys, how many rows they have, and sums of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Array, Bools, Int32s, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import distinct_codes
from spaseq.windows.kernels.group_runs import BOTH, OTHER

Key = tuple[str | None, ...]
Counts = tuple[Int64s, Int64s, Int64s, Int64s]


class GroupTable:
    """Groups by number: g of them, in arrays with room for more.

    Attributes:
        keys: the values of the keys of each group.
        counts: (rows, head, tail, mark) int64 [room] of `kernels.group_runs.advanced`.
        sums: the digits of sums int64 [operands, room, BOTH]; rows by kind [operands, room, 5].
        held: int8 [room].
    """

    def __init__(self, variables: Sequence[str], operands: int) -> None:
        self._variables = variables
        self.keys: list[Key] = []
        self._numbers: dict[Any, int] = {}  # by key, or by its only value
        self._room, self._operands = 0, operands
        self.counts: Counts = (np.zeros(0, np.int64),) * 4
        self.sums: tuple[Int64s, Int64s] = (
            np.zeros((operands, 0, BOTH), np.int64),
            np.zeros((operands, 0, OTHER + 1), np.int64),
        )
        self.held = np.zeros(0, np.int8)
        self._known: tuple[object, Int32s] | None = None  # texts of a column, and their groups
        if not variables:
            self._add(())

    def __len__(self) -> int:
        return len(self.keys)

    def _add(self, key: Key) -> int:
        number = len(self.keys)
        self.keys.append(key)
        if number == self._room:
            self._grow(max(64, 2 * number))
        return number

    def _add_new(self, texts: Sequence[str | None]) -> None:
        """Add the groups of those distinct texts that are the only key of none."""
        new = [text for text in texts if text not in self._numbers]
        size = len(self.keys)
        self.keys += [(text,) for text in new]
        self._numbers.update(zip(new, range(size, len(self.keys)), strict=True))
        if len(self.keys) > self._room:
            self._grow(max(64, 2 * len(self.keys)))

    def _grow(self, room: int) -> None:
        more = room - self._room
        rows, head, tail, mark = (_longer(own, more, 0) for own in self.counts)
        self.counts = rows, head, tail, mark
        self.sums = _longer(self.sums[0], more, 1), _longer(self.sums[1], more, 1)
        self.held, self._room = _longer(self.held, more, 0), room

    # --- numbers of groups ------------------------------------------------------------------------

    def numbers(self, rows: SolutionBatch) -> Int32s:
        """The group [n] of each row; new groups are added."""
        columns = [rows.values[v] for v in self._variables]
        if not columns:
            return np.zeros(len(rows), np.int32)
        if len(columns) == 1:
            return self._of_one(columns[0].codes, columns[0].terms)
        which = np.zeros(len(rows), np.int64)
        for column in columns:
            which = which * (len(column.terms) + 1) + column.codes + 1
            _, which = np.unique(which, return_inverse=True)
        _, first, which = np.unique(which, return_index=True, return_inverse=True)
        texts = [column.texts(first) for column in columns]
        found = [self._number(key, key) for key in zip(*texts, strict=True)]
        return np.array(found, np.int32)[which]

    def _of_one(self, codes: Int32s, terms: Any) -> Int32s:
        """The groups of rows with one key."""
        if self._known is None or self._known[0] is not terms:
            self._known = terms, np.full(len(terms) + 1, -1, np.int32)  # the last is UNBOUND's
        groups = self._known[1]
        found = groups[codes]
        new = codes[found < 0]
        if len(new):
            used, _ = distinct_codes(new, len(terms))
            texts = self._texts(terms, used)
            self._add_new(texts)
            groups[used] = [*map(self._numbers.__getitem__, texts)]
            found = groups[codes]
        return found

    def _texts(self, terms: Any, used: Array) -> list[str | None]:
        texts: list[str | None] = terms.take(pa.array(np.maximum(used, 0))).to_pylist()
        if used[0] < 0:
            texts[0] = None
        return texts

    def _number(self, name: Any, key: Key) -> int:
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = self._add(key)
        return known

    # --- groups that are over ---------------------------------------------------------------------

    def without_empty(self, used: Bools) -> Int32s | None:
        """Let go of the groups that are not `used` [g], if there are many groups.

        The new numbers [g] of the groups; None if all stay.
        """
        size = len(self.keys)
        kept = np.flatnonzero(used)
        if not self._variables or size <= thresholds.current.kept_groups:
            return None
        places = np.full(size, -1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        self.keys = [self.keys[i] for i in kept.tolist()]
        alone = len(self._variables) == 1
        self._numbers = {key[0] if alone else key: i for i, key in enumerate(self.keys)}
        rows, head, tail, mark = (own[kept] for own in self.counts)
        self.counts = rows, head, tail, mark
        sums, kinds = (np.ascontiguousarray(own[:, kept]) for own in self.sums)
        self.sums = sums, kinds
        self.held, self._room, self._known = self.held[kept], len(kept), None
        return places

    def restore(self, keys: Sequence[Key]) -> None:
        """Take the keys of a snapshot, in the order of the groups."""
        for key in keys if self._variables else ():
            self._number(key[0] if len(self._variables) == 1 else key, key)


def _longer(array: Array, more: int, axis: int) -> Array:
    shape = list(array.shape)
    shape[axis] = more
    return np.concatenate([array, np.zeros(shape, array.dtype)], axis)
