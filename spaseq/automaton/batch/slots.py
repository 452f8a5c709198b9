"""Numbers for texts: the slots of keys, and ids of terms that are joined.

Equal texts have equal numbers for as long as somebody uses them; numbers of texts that nobody uses
any more are given back, so that memory does not grow with the number of distinct texts ever seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.term_columns import TermColumn, distinct_codes

Key: TypeAlias = tuple[str | None, ...]


class Interner:
    """Numbers from 0 for keys of one or more terms; a number that is given back is used again."""

    __slots__ = ("_free", "_known", "_next", "_numbers", "_of_code")

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._free: list[int] = []
        self._next = 0
        self._known: Any = None  # the terms for whose codes `_of_code` has the numbers
        self._of_code = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def bound(self) -> int:
        """All numbers are below this."""
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
        found: Int64s = self._of_code[codes]
        if len(found) and found.min() < 0:
            missing = np.flatnonzero(found < 0)
            used, first = np.unique(codes[missing], return_index=True)
            texts = column.texts(missing[first])
            self._of_code[used] = [self.number((text,)) for text in texts]
            found = self._of_code[codes]
        return found

    def _of_several(self, columns: list[TermColumn]) -> Int64s:
        first = columns[0]
        used, place = distinct_codes(first.codes, len(first.terms))
        combined = place.astype(np.int64)
        for column in columns[1:]:
            used, place = distinct_codes(column.codes, len(column.terms))
            _, combined = np.unique(combined * len(used) + place, return_inverse=True)
        _, row, which = np.unique(combined, return_index=True, return_inverse=True)
        texts = zip(*(c.texts(row) for c in columns), strict=True)
        numbers = np.array([self.number(key) for key in texts], np.int64)
        result: Int64s = numbers[which]
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
        """Give numbers back; those of them that were in use."""
        gone = set(numbers)
        keys = [key for key, number in self._numbers.items() if number in gone]
        freed = [self._numbers.pop(key) for key in keys]
        self._free += freed
        self._known = None
        return freed

    def keys(self) -> dict[int, Key]:
        """Each key by its number."""
        return {number: key for key, number in self._numbers.items()}

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        return self._numbers, self._free, self._next

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        self._numbers, self._free, self._next = state
        self._known = None
