"""Ids that runs and solutions share: of terms that `=` may hold for, and of a slot and a number."""

from __future__ import annotations

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.row_store import Interner, Key, KeyNumbering
from spaseq.compiled.arrays import Float64s, Int32s
from spaseq.expr.numbers import is_number
from spaseq.expr.temporal import Duration, Moment
from spaseq.expr.values import TripleTermValue, decode


class JoinedIds(KeyNumbering[tuple[int, float]]):
    """Numbers pairs of a slot and a number: a value, or the id of a term."""

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


class EqualTerms(Interner):
    """Numbers terms. Equal terms have one number; so do some that are not equal.

    All numbers have one, all durations, all triple terms, and all dates and times but dateTimes.
    """

    def number(self, key: Key) -> int:
        """The number of a term."""
        return super().number(_class_of(key))

    def _of_keys(self, keys: list[Key]) -> list[int]:
        classes = [*map(_class_of, keys)]
        distinct = [*dict.fromkeys(classes)]
        number = dict(zip(distinct, super()._of_keys(distinct), strict=True))
        return [number[known] for known in classes]


def _class_of(key: Key) -> Key:
    """The key that a term shares with all terms that it may equal."""
    (text,) = key
    if text is None or text.startswith("_") or (text.startswith("<") and not text.startswith("<<")):
        return key
    value = decode(text)
    if isinstance(value, str):
        return (f'"{value}"',)
    if isinstance(value, Moment) and value.kind == "dateTime":
        return (f"dateTime {float(value.instant)}",)
    if is_number(value):
        return ("number",)
    if isinstance(value, bool | Moment | Duration | TripleTermValue):
        return (str(value) if isinstance(value, bool) else type(value).__name__,)
    return (text.lower(),)
