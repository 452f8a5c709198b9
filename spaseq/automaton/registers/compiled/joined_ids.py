"""Ids by which waiting runs are found: of a slot and a number that a run and a solution share."""

from __future__ import annotations

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.row_store import KeyNumbering
from spaseq.compiled.arrays import Float64s, Int32s


class JoinedIds(KeyNumbering[tuple[int, float]]):
    """Numbers pairs of a slot and a number: a value, or the id of a term."""

    __slots__ = ()

    def of_rows(self, slot: Int32s, number: Float64s) -> Float64s:
        """[n] the ids of the slots [n] with the numbers [n]; NaN where the number is NaN."""
        if len(number) <= thresholds.current.few_rows:
            pairs = zip(slot.tolist(), number.tolist(), strict=True)
            return np.array([self.number(p) if p[1] == p[1] else np.nan for p in pairs], np.float64)
        ids, known = np.full(len(number), np.nan), np.flatnonzero(~np.isnan(number))
        values, value = np.unique(number[known], return_inverse=True)
        pair = slot[known] * np.int64(len(values)) + value
        distinct, place = np.unique(pair, return_inverse=True)
        slots, value = np.divmod(distinct, len(values))
        keys = [*zip(slots.tolist(), values[value].tolist(), strict=True)]
        ids[known] = np.array(self._of_keys(keys), np.float64)[place]
        return ids
