"""Numbers keys of terms: the slots of keys, and the ids of terms that joins compare.

Equal keys have equal numbers while they are in use. Keys that are no longer in use are released, so
memory does not grow with the number of distinct keys ever seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    TermColumn,
    TextArray,
    distinct,
    distinct_codes,
)
from spaseq.stateful import Stateful

Key: TypeAlias = tuple[str | None, ...]


class Interner(Stateful):
    """Numbers keys of one or more terms from 0 on; a released number is used again."""

    STATE = ("_numbers", "_free", "_next")

    __slots__ = ("_free", "_keys", "_known", "_next", "_numbers", "_of_code")

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._free: list[int] = []
        self._next = 0
        self._known: Any = None  # the term table that `_of_code` is for
        self._of_code = np.empty(0, np.int64)
        self._keys: dict[int, Key] = {}  # of the first numbers of `_numbers`

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def bound(self) -> int:
        """All numbers are below this bound."""
        return self._next

    def numbers(self, columns: list[TermColumn], rows: int) -> Int64s:
        """The numbers of n rows of key terms."""
        if not columns:
            return np.full(rows, self.number(()), np.int64)
        if len(columns) == 1:
            return self._of_one(columns[0])
        return self._of_several(columns)

    def _of_one(self, column: TermColumn) -> Int64s:
        codes, size = column.codes, len(column.terms)
        if column.terms is not self._known:
            self._known, self._of_code = column.terms, np.full(size + 1, -1, np.int64)
            self._look_up(codes, column.terms)
            return self._of_code[codes]
        numbers: Int64s = self._of_code[codes]
        if len(numbers) and numbers.min() < 0:
            self._look_up(codes[numbers < 0], column.terms)
            numbers = self._of_code[codes]
        return numbers

    def _look_up(self, codes: Int32s, terms: TextArray) -> None:
        """Write the numbers of codes into `_of_code`."""
        used = _used(codes, len(terms))
        texts = TermColumn(used, terms).texts()
        self._of_code[used] = self._of_keys([*zip(texts, strict=True)])

    def _of_keys(self, keys: list[Key]) -> list[int]:
        """The numbers of distinct keys."""
        numbers = [*map(self._numbers.get, keys)]
        new = [key for key, number in zip(keys, numbers, strict=True) if number is None]
        if not new:
            return numbers  # type: ignore[return-value]
        made = self._free[: -len(new) - 1 : -1]
        del self._free[len(self._free) - len(made) :]
        end = self._next + len(new) - len(made)
        made += range(self._next, end)
        self._next = end
        self._numbers.update(zip(new, made, strict=True))
        return [*map(self._numbers.__getitem__, keys)]

    def _of_several(self, columns: list[TermColumn]) -> Int64s:
        key, size = np.zeros(len(columns[0].codes), np.int64), 1  # below size; equal for equal keys
        for column in columns:
            used, number = distinct_codes(column.codes, len(column.terms))
            used, key = distinct_codes(key * len(used) + number, size * len(used))
            size = len(used)
        row = np.empty(size, np.int64)  # some row of each key
        row[key] = np.arange(len(key))
        keys = [*zip(*(c.texts(row) for c in columns), strict=True)]
        result: Int64s = np.array(self._of_keys(keys), np.int64)[key]
        return result

    def number(self, key: Key) -> int:
        """The number of one key."""
        number = self._numbers.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number, self._next = self._next, self._next + 1
            self._numbers[key] = number
        return number

    def release(self, numbers: Iterable[int]) -> list[int]:
        """Release numbers; returns the ones that were in use."""
        gone = set(numbers)
        if not gone:
            return []
        freed = [*filter(gone.__contains__, self._numbers.values())]
        self._numbers = {key: n for key, n in self._numbers.items() if n not in gone}
        self._free += freed
        self._known, self._keys = None, {}
        return freed

    def key(self, number: int) -> Key:
        """The key that a number in use stands for."""
        new = len(self._numbers) - len(self._keys)
        if new:
            latest = islice(reversed(self._numbers.items()), new)
            self._keys.update((number, key) for key, number in latest)
        return self._keys[number]

    def keys(self) -> dict[int, Key]:
        """Each key by its number."""
        return {number: key for key, number in self._numbers.items()}


def _used(codes: Int32s, limit: int) -> Int32s:
    """The distinct codes, -1 or more and below `limit`, of codes [n]."""
    if limit // (len(codes) + 1) >= thresholds.current.sparse_codes:
        return distinct(codes)
    mark = np.zeros(limit + 1, np.bool_)
    mark[codes] = True  # the last is that of -1
    used = np.flatnonzero(mark).astype(np.int32)
    used[used == limit] = UNBOUND
    return used
