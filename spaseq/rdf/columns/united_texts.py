"""Columns of terms from several tables, whose texts are the same in each batch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s
from spaseq.rdf.columns.term_columns import NO_TEXTS, UNBOUND, TermColumn, TextArray

Made = TypeVar("Made")


class TextMemo(Generic[Made]):
    """A function of arrays of texts that keeps its results as long as the arrays live."""

    def __init__(self, make: Callable[[TextArray], Made]) -> None:
        self._make = make
        self._known: dict[int, Made] = {}  # by the id of an array

    def __call__(self, texts: TextArray) -> Made:
        """The result for an array of texts; it must not be changed."""
        found = self._known.get(id(texts))
        if found is None:
            found = self._known[id(texts)] = self._make(texts)
            weakref.finalize(texts, self._known.pop, id(texts), None)
        return found


class UnitedTexts:
    """Joins columns over a few arrays of texts. Each array is united with the others once.

    All joined columns share their texts, so what follows need not compare them.

    >>> united = UnitedTexts()
    >>> united.joined([TermColumn.of(["a", "b"]), TermColumn.of(["b", None, "c"])]).texts()
    ['a', 'b', 'b', None, 'c']
    """

    def __init__(self) -> None:
        self._terms: TextArray = NO_TEXTS
        # By the id of an array, which is kept: the place of each of its texts, and of UNBOUND.
        self._known: dict[int, tuple[TextArray, Int32s]] = {}

    def joined(self, columns: Sequence[TermColumn]) -> TermColumn:
        """The rows of all columns, in order."""
        if len(self._known) + len(columns) > thresholds.current.united_arrays:
            self._known, self._terms = {}, NO_TEXTS
        codes = [self._places(column.terms)[column.codes] for column in columns]
        return TermColumn(codes[0] if len(codes) == 1 else np.concatenate(codes), self._terms)

    def _places(self, terms: TextArray) -> Int32s:
        known = self._known.get(id(terms))
        if known is None:
            known = self._known[id(terms)] = terms, self._united(terms)
        return known[1]

    def _united(self, terms: TextArray) -> Int32s:
        """The places of further texts, which come after those so far."""
        before = len(self._terms)
        if not before:
            self._terms, places = terms, np.arange(len(terms), dtype=np.int32)
        else:
            united = pa.concat_arrays([self._terms, terms]).dictionary_encode()
            self._terms, places = united.dictionary, united.indices.to_numpy()[before:]
        return np.append(places, np.int32(UNBOUND))
