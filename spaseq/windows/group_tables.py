"""The groups of a window: their keys, how many rows they have, and sums of their operands; and
which operands have queues (MIN, MAX) or twins (of DISTINCT) in the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Array, Bools, Int8s, Int32s
from spaseq.lang import ast
from spaseq.plan.pattern_plan import KeptGroups
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import (
    NO_TEXTS,
    TermColumn,
    TextArray,
    concat_texts,
    distinct_codes,
    text_array,
)
from spaseq.records import record
from spaseq.stateful import Stateful
from spaseq.windows.kernels.group_runs import WIDTH

_SIGNS = {"MIN": 1, "MAX": -1}

Key = tuple[str | None, ...]


@record
class TrackedOperands:
    """(operand, sign) of each queue, and the operand of each sum of distinct terms.

    Sums of distinct terms follow the sums of the `operands`.
    """

    operands: int
    queues: Sequence[tuple[int, int]]
    twins: Sequence[int]

    @classmethod
    def of(cls, kept: KeptGroups, operands: int) -> TrackedOperands:
        """The tracked operands of the kept groups of a GPM, given the number of all operands."""
        queues = dict[tuple[int, int], None]()
        twins = dict[int, None]()
        for (_, aggregate), operand in zip(kept.group.aggregates, kept.operands, strict=True):
            if operand is not None and aggregate.function in _SIGNS:
                queues[operand, _SIGNS[aggregate.function]] = None
            elif operand is not None and _sums_terms(aggregate):
                twins[operand] = None
        return cls(operands, [*queues], [*twins])

    def queue(self, aggregate: ast.Aggregate, operand: int) -> int | None:
        """The queue of an aggregate, None if it has none."""
        sign = _SIGNS.get(aggregate.function)
        return None if sign is None else self.queues.index((operand, sign))

    def distinct(self, aggregate: ast.Aggregate, operand: int) -> int | None:
        """The place of the sum of distinct terms that an aggregate needs, None if it needs none."""
        return self.operands + self.twins.index(operand) if _sums_terms(aggregate) else None


def _sums_terms(aggregate: ast.Aggregate) -> bool:
    return aggregate.function in ("COUNT", "SUM", "AVG") and aggregate.distinct


class GroupTable(Stateful):
    """Groups by number: g of them, in arrays with room for more (`kernels.group_runs.advanced`).

    Attributes:
        keys: the values of the keys of each group.
        counts: int64 [room, 4].
        numbers: int64 [sums, room, WIDTH].
        ends: int64 [room, 2 * queues].
        held: int8 [room].
    """

    STATE = ("keys", ("held", "_used_held"))

    def __init__(self, variables: Sequence[str], sums: int = 0, queues: int = 0) -> None:
        self._variables = variables
        self.keys: list[Key] = []
        self._room = 0
        self._numbers: dict[Any, int] = {}  # by key, or by its only value
        self._texts: TextArray = NO_TEXTS  # of the first groups, if there is one key
        self.counts = np.zeros((0, 4), np.int64)
        self.numbers = np.zeros((sums, 0, WIDTH), np.int64)
        self.ends = np.zeros((0, 2 * queues), np.int64)
        self.held = np.zeros(0, np.int8)
        self._known: tuple[object, Int32s] | None = None  # texts of a column, and their groups
        if not variables:
            self._add([()])

    def __len__(self) -> int:
        return len(self.keys)

    def _add(self, keys: Sequence[Key]) -> None:
        """Add groups."""
        self.keys += keys
        if len(self.keys) > self._room:
            more = max(64, 2 * len(self.keys)) - self._room
            self._room += more
            self.counts, self.ends, self.held = (
                _longer(column, more, 0) for column in (self.counts, self.ends, self.held)
            )
            self.numbers = _longer(self.numbers, more, 1)

    # --- numbers of groups ------------------------------------------------------------------------

    def of_rows(self, rows: SolutionBatch) -> Int32s:
        """The group [n] of each row; new groups are added."""
        columns = [rows.values[v] for v in self._variables]
        if not columns:
            return np.zeros(len(rows), np.int32)
        if len(columns) == 1:
            return self.of_column(columns[0])
        which = np.zeros(len(rows), np.int64)
        for column in columns:
            which = which * (len(column.terms) + 1) + column.codes + 1
            _, which = np.unique(which, return_inverse=True)
        _, first, which = np.unique(which, return_index=True, return_inverse=True)
        texts = [column.texts(first) for column in columns]
        groups = self._of_keys([*zip(*texts, strict=True)])
        return groups[which]

    def of_column(self, column: TermColumn) -> Int32s:
        """The group [n] of each row of the only key; new groups are added."""
        codes, terms = column.codes, column.terms
        if self._known is None or self._known[0] is not terms:
            self._known = terms, np.full(len(terms) + 1, -1, np.int32)  # the last is UNBOUND's
        groups = self._known[1]
        row_groups = groups[codes]
        new = codes[row_groups < 0]
        if len(new):
            used, _ = distinct_codes(new, len(terms))
            groups[used] = self._of_texts(terms.take(pa.array(used, mask=used < 0)))
            row_groups = groups[codes]
        return row_groups

    def _of_texts(self, texts: TextArray) -> Int32s:
        """The groups [n] of distinct texts, null for unbound."""
        many = len(texts) > thresholds.current.few_terms and 16 * len(texts) > len(self.keys)
        if not many:
            return self._of_keys([(text,) for text in texts.to_pylist()])
        more = [key[0] for key in self.keys[len(self._texts) :]]
        if more:
            self._texts = concat_texts([self._texts, text_array(more)])
        known = pc.index_in(texts, value_set=self._texts)
        new = texts.filter(known.is_null())
        size = len(self.keys)
        groups: Int32s = known.fill_null(-1).to_numpy().copy()  # Arrow's is read-only
        groups[groups < 0] = np.arange(size, size + len(new))
        if len(new):
            self._texts = concat_texts([self._texts, new])
            self._add([(text,) for text in new.to_pylist()])
        return groups

    def _of_keys(self, keys: Sequence[Key]) -> Int32s:
        """The groups [n] of distinct keys."""
        for number in range(len(self._numbers), len(self.keys)):
            self._numbers[self.keys[number]] = number
        new = [key for key in keys if key not in self._numbers]
        self._numbers.update(
            zip(new, range(len(self.keys), len(self.keys) + len(new)), strict=True)
        )
        self._add(new)
        return np.array([self._numbers[key] for key in keys], np.int32)

    # --- groups that are over ---------------------------------------------------------------------

    def without_empty(self, used: Bools) -> Int32s | None:
        """Drop the groups that are not `used` [g], if there are many groups.

        Returns the new numbers [g] of the groups; None if all stay.
        """
        size = len(self.keys)
        kept = np.flatnonzero(used)
        if not self._variables or size <= thresholds.current.kept_groups:
            return None
        places = np.full(size, -1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        self.keys = [self.keys[i] for i in kept.tolist()]
        self._numbers, self._texts, self._known = {}, NO_TEXTS, None
        self.counts, self.ends, self.held = self.counts[kept], self.ends[kept], self.held[kept]
        self.numbers = np.ascontiguousarray(self.numbers[:, kept])
        self._room = len(kept)
        return places

    @property
    def _used_held(self) -> Int8s:
        return self.held[: len(self.keys)].copy()

    def _after_restore(self) -> None:
        keys, held, self.keys, self.held = self.keys, self.held, [], np.zeros(0, np.int8)
        self._add(keys)
        self.held[: len(held)] = held


def _longer(array: Array, more: int, axis: int) -> Array:
    shape = list(array.shape)
    shape[axis] = more
    return np.concatenate([array, np.zeros(shape, array.dtype)], axis)
