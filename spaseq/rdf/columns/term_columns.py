"""Columns of terms and of numbers.

A term column stores each distinct text once, in Arrow memory. It makes Python objects only for
requested rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Float64s, Indices, Int8s, Int32s, Int64s, Objects
from spaseq.rdf.terms.number_kinds import EXACT, OTHER, SHORT
from spaseq.rdf.terms.term import XSD
from spaseq.records import record

Made = TypeVar("Made")


class TextMemo(Generic[Made]):
    """A function of arrays of texts that keeps its results as long as the arrays live."""

    def __init__(self, make: Callable[[TextArray], Made]) -> None:
        self._make = make
        self._known: dict[int, Made] = {}  # by the id of an array

    def __call__(self, texts: TextArray) -> Made:
        """The result for an array of texts; it must not be changed."""
        made = self._known.get(id(texts))
        if made is None:
            made = self._known[id(texts)] = self._make(texts)
            weakref.finalize(texts, self._known.pop, id(texts), None)
        return made


Ints = TypeVar("Ints", Int32s, Int64s)
RowSelection: TypeAlias = "Indices | slice"

UNBOUND = -1
"""The code of an unbound variable."""

TextArray: TypeAlias = Any
"""An Arrow array of large strings (pyarrow ships no types)."""

NO_TEXTS: TextArray = pa.LargeStringArray.from_buffers(0, pa.py_buffer(bytes(8)), pa.py_buffer(b""))
# built from buffers, as `pa.array` would import pandas at once


def text_array(texts: Sequence[str | None]) -> TextArray:
    """Strings, or None, as an Arrow array of large strings."""
    return pa.array(texts, pa.large_string())


def take_texts(array: TextArray, rows: RowSelection) -> TextArray:
    """Some rows of an Arrow array."""
    if isinstance(rows, slice):
        start, end, _ = rows.indices(len(array))
        return array.slice(start, max(end - start, 0))
    return array.take(pa.array(rows))


def concat_texts(arrays: Sequence[TextArray]) -> TextArray:
    """Arrow arrays one after the other."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def distinct(numbers: Ints) -> Ints:
    """The distinct values of integers [n], ascending.

    `np.unique` gives the same, but hashes the values first, which takes many times as long.
    """
    ordered = numbers if (numbers[1:] >= numbers[:-1]).all() else np.sort(numbers)
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def distinct_codes(codes: Ints, limit: int) -> tuple[Indices, Indices]:
    """(distinct codes ascending, index of each code among them) of codes [n] below `limit`."""
    if limit // (len(codes) + 1) >= thresholds.current.sparse_codes:
        used, which = np.unique(codes, return_inverse=True)
        return used.astype(np.intp), which
    mark = np.zeros(limit + 1, dtype=np.bool_)  # by code + 1
    mark[codes + 1] = True
    number_of = np.cumsum(mark) - 1
    return np.flatnonzero(mark) - 1, number_of[codes + 1]


NO_VALUE = -(2**63)
"""The value of an unbound term among numbers."""

INTEGER_TYPE, DECIMAL_TYPE = f"^^<{XSD}integer>", f"^^<{XSD}decimal>"

DECIMAL_PLACES = 6
"""Decimals that are computed in columns are multiples of 10**-DECIMAL_PLACES."""


def integer_texts(values: Int64s) -> list[str]:
    """The N-Triples texts of whole numbers."""
    return [f'"{value}"{INTEGER_TYPE}' for value in values.tolist()]


def decimal_texts(values: Int64s) -> list[str]:
    """The canonical N-Triples texts of decimals, given times 10**DECIMAL_PLACES."""
    import pyarrow.compute as pc  # few runs need it

    words = pa.py_buffer(np.column_stack([values, values >> 63]))  # of 128 bits
    numbers = pa.Array.from_buffers(pa.decimal128(18, DECIMAL_PLACES), len(values), [None, words])
    digits = pc.utf8_rtrim(pc.utf8_rtrim(numbers.cast(pa.string()), "0"), ".")
    texts: list[str] = pc.binary_join_element_wise('"', digits, f'"{DECIMAL_TYPE}', "").to_pylist()
    return texts


class TermColumn:
    """n terms, some of which may be unbound.

    `codes` int32 [n] are positions in `terms`, or UNBOUND. `terms` is an Arrow array of distinct
    N-Triples texts (large strings), so two codes of one column are equal if and only if their terms
    are. Codes of two columns are comparable only if `terms` is the same object. `terms` may contain
    texts that no row uses.

    A computed number is mostly only compared. So a column of whole numbers, or of decimals, stores
    numbers, and `codes` and `terms` are made when they are first read.

    >>> TermColumn.of_integers(np.array([7, NO_VALUE, -8])).texts(slice(1, 3))
    [None, '"-8"^^<http://www.w3.org/2001/XMLSchema#integer>']
    """

    __slots__ = ("_are_decimals", "_codes", "_terms", "_values")

    def __init__(self, codes: Int32s, terms: TextArray) -> None:
        self._codes: Int32s | None = codes
        self._terms = terms
        self._values: Int64s | None = None
        self._are_decimals = False

    @classmethod
    def of_integers(cls, values: Int64s) -> TermColumn:
        """The canonical xsd:integers of values [n] that are exact in float64, or NO_VALUE."""
        return cls._of_values(values, False)

    @classmethod
    def of_decimals(cls, values: Int64s) -> TermColumn:
        """The canonical xsd:decimals of values [n], given times 10**DECIMAL_PLACES, or NO_VALUE.

        They have at most 15 digits.
        """
        return cls._of_values(values, True)

    @classmethod
    def _of_values(cls, values: Int64s, are_decimals: bool) -> TermColumn:
        column = cls.__new__(cls)
        column._codes, column._terms, column._values = None, None, values
        column._are_decimals = are_decimals
        return column

    @property
    def codes(self) -> Int32s:
        """Positions in `terms`, int32 [n], or UNBOUND."""
        if self._codes is None:
            self._make()
        return self._codes  # type: ignore[return-value]  # just made

    @property
    def terms(self) -> TextArray:
        """The distinct texts."""
        if self._codes is None:
            self._make()
        return self._terms

    @property
    def values(self) -> Int64s | None:
        """The whole numbers [n], NO_VALUE where unbound; None if the column is not of these."""
        return None if self._are_decimals else self._values

    @property
    def table(self) -> int | None:
        """A number shared by columns with the same `terms`; None if there are no terms yet."""
        return None if self._codes is None else id(self._terms)

    @property
    def numbers(self) -> NumberColumn | None:
        """The numbers [n] of a column that is stored as numbers; None for others."""
        if self._values is None:
            return None
        made = NumberColumn.of_decimals if self._are_decimals else NumberColumn.of_integers
        return made(self._values)

    @property
    def bound(self) -> Bools:
        """[n] whether there is a term."""
        if self._codes is None:
            return self._values != NO_VALUE  # type: ignore[return-value]
        return self._codes >= 0

    @property
    def identities(self) -> Int32s | Int64s:
        """[n] numbers that are equal for equal terms, and the least where unbound."""
        return self._values if self._codes is None else self._codes  # type: ignore[return-value]

    def _make(self) -> None:
        """Make codes and texts of numbers."""
        assert self._values is not None
        distinct, which = np.unique(self._values, return_inverse=True)
        unbound = int(len(distinct) > 0 and distinct[0] == NO_VALUE)
        texts_of = decimal_texts if self._are_decimals else integer_texts
        self._terms = text_array(texts_of(distinct[unbound:]))
        # Last, as another thread may check whether there are codes; -1 is UNBOUND.
        self._codes = (which.reshape(-1) - unbound).astype(np.int32)

    def __len__(self) -> int:
        return len(self._values if self._codes is None else self._codes)  # type: ignore[arg-type]

    @property
    def arrays(self) -> list[Any]:
        """The arrays that the column keeps in memory."""
        return [a for a in (self._values, self._codes, self._terms) if a is not None]

    def __getstate__(self) -> list[Any]:
        return [self.codes, self.terms]

    def __setstate__(self, state: Sequence[Any]) -> None:
        self._codes, self._terms = state
        self._values, self._are_decimals = None, False

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> TermColumn:
        """A column from texts; None is unbound."""
        few = 2 * len(texts) <= thresholds.current.few_pairs
        return _of_few(texts) if few else cls.from_arrow(text_array(texts))

    @classmethod
    def unbound(cls, size: int) -> TermColumn:
        """A column in which every row is unbound."""
        return cls(np.full(size, UNBOUND, np.int32), NO_TEXTS)

    @classmethod
    def concat(cls, columns: Sequence[TermColumn]) -> TermColumn:
        """The rows of all columns, in order."""
        if len(columns) == 1:
            return columns[0]
        stored = {column._are_decimals for column in columns if column._values is not None}
        if len(stored) == 1:
            values = [_values(column, *stored) for column in columns]
            if all(part is not None for part in values):
                whole = np.concatenate([part for part in values if part is not None])
                return cls._of_values(whole, *stored)
        bound = [c for c in columns if len(c.terms)]
        if not bound or have_same_terms(bound):
            terms = bound[0].terms if bound else NO_TEXTS
            return cls(np.concatenate([c.codes for c in columns]), terms)
        if 2 * sum(map(len, columns)) <= thresholds.current.few_pairs:
            return _of_few([text for c in columns for text in c.texts()])
        codes, terms = side_by_side(columns)
        unified = terms.dictionary_encode()
        new_code = np.append(unified.indices.to_numpy(), np.int32(UNBOUND))  # the last is UNBOUND's
        return cls(new_code[codes], unified.dictionary)

    def take(self, rows: RowSelection) -> TermColumn:
        """The rows at the given positions; `terms` stays the same object."""
        if self._codes is None:
            return self._of_values(self._values[rows], self._are_decimals)  # type: ignore[index]
        return TermColumn(self._codes[rows], self._terms)

    def compact(self) -> TermColumn:
        """The same column; if most of `terms` is unused, without the unused ones."""
        if self._codes is None or len(self._terms) <= 2 * len(self._codes):
            return self
        if len(self.codes) // 3 <= thresholds.current.few_terms:
            return _of_few(self.texts())
        return self.used()

    def used(self) -> TermColumn:
        """The same column, without the unused ones of `terms`."""
        terms = self.terms
        return self.of_codes(self.codes, len(terms), lambda used: terms.take(pa.array(used)))

    @classmethod
    def of_codes(
        cls, codes: Int32s, limit: int, strings: Callable[[Int32s], TextArray]
    ) -> TermColumn:
        """A column from another table's codes [n] below `limit`; `strings` gives their texts."""
        used, places = distinct_codes(codes, limit)
        unbound = len(used) > 0 and used[0] < 0
        return cls(
            (places - unbound).astype(np.int32), strings(used[int(unbound) :].astype(np.int32))
        )

    def texts(self, rows: RowSelection = slice(None)) -> list[str | None]:
        """The texts of some rows, None where unbound.

        In a long result, equal texts are the same object.
        """
        codes, terms = self.codes[rows], self.terms
        few = len(codes) if len(terms) <= 2 * len(codes) else len(codes) // 3
        if few <= thresholds.current.few_terms:
            return [None if code < 0 else terms[code].as_py() for code in codes.tolist()]
        return self.objects(rows).tolist()  # type: ignore[no-any-return]

    def objects(self, rows: RowSelection = slice(None)) -> Objects:
        """`texts` as an array."""
        part = self.take(rows).compact()
        table = np.full(len(part.terms) + 1, None, dtype=object)  # the last is UNBOUND's
        table[:-1] = part.terms.to_numpy(zero_copy_only=False)
        return table[part.codes]

    def pairs(self, name: str) -> list[tuple[str, str] | None]:
        """(name, text) of all rows, None where unbound.

        In a long result, equal pairs are one object.
        """
        if len(self.codes) <= thresholds.current.few_pairs:
            terms = self.terms
            return [None if c < 0 else (name, terms[c].as_py()) for c in self.codes.tolist()]
        column = self.compact()
        texts = column.terms.to_pylist()
        table = np.empty(len(texts) + 1, object)  # the last entry is UNBOUND's
        table[:-1] = np.fromiter(zip(repeat(name), texts), object, len(texts))
        pairs: list[tuple[str, str] | None] = table[column.codes].tolist()
        return pairs

    def strings(self) -> TextArray:
        """The texts of all rows, null where unbound, as an Arrow array of large strings."""
        if not len(self.terms):
            return pa.nulls(len(self), pa.large_string())
        return self.terms.take(_indices(self.codes))

    def to_arrow(self) -> Any:
        """The column as an Arrow dictionary array."""
        return pa.DictionaryArray.from_arrays(_indices(self.codes), self.terms)

    @classmethod
    def from_arrow(cls, array: Any) -> TermColumn:
        """The column of an Arrow array of strings, with a dictionary or without."""
        if not pa.types.is_dictionary(array.type):
            array = array.cast(pa.large_string()).dictionary_encode()
        return cls(_codes(array.indices), array.dictionary)


def _of_few(texts: Sequence[str | None]) -> TermColumn:
    """The same as `TermColumn.of`, faster for few texts."""
    places: dict[str, int] = {}
    codes = [UNBOUND if text is None else places.setdefault(text, len(places)) for text in texts]
    return TermColumn(np.array(codes, np.int32), text_array([*places]))


def _values(column: TermColumn, are_decimals: bool) -> Int64s | None:
    """The values of a column of integers or decimals, or of unbound terms; None for others."""
    if column._values is not None:
        return column._values if column._are_decimals == are_decimals else None
    return None if len(column.terms) else np.full(len(column), NO_VALUE)


def side_by_side(columns: Sequence[TermColumn]) -> tuple[Int32s, TextArray]:
    """The codes of all columns, one after the other, in a table of all their terms.

    A term has several codes if it is in the tables of several columns. Tables of long columns come
    first: their terms, if mostly ascending, stay so.
    """
    columns = [column.compact() for column in columns]
    longest = sorted(columns, key=len, reverse=True)
    tables = {id(column.terms): column.terms for column in longest}
    begin = dict(zip(tables, accumulate(map(len, tables.values()), initial=0), strict=False))
    codes = [
        np.where(column.codes < 0, UNBOUND, column.codes + begin[id(column.terms)]).astype(np.int32)
        for column in columns
    ]
    return np.concatenate(codes), pa.concat_arrays([*tables.values()])


def have_same_terms(columns: Sequence[TermColumn]) -> bool:
    """Whether the codes of some columns are comparable."""
    return all(_are_same(column.terms, columns[0].terms) for column in columns)


def _are_same(terms: TextArray, others: TextArray) -> bool:
    return terms is others or bool(terms.equals(others))


def _indices(codes: Int32s) -> Any:
    bound = codes >= 0
    valid = None if bound.all() else pa.py_buffer(np.packbits(bound, bitorder="little"))
    whole = pa.py_buffer(np.ascontiguousarray(codes, np.int32))
    return pa.Array.from_buffers(pa.int32(), len(codes), [valid, whole])


def _codes(indices: Any) -> Int32s:
    if indices.null_count:
        indices = indices.fill_null(UNBOUND)
    codes: Int32s = indices.to_numpy(zero_copy_only=False)
    return codes


@record
class NumberColumn:
    """float64 approximations of n terms: `value` float64 [n] and `kind` int8 [n].

    `spaseq.rdf.terms.number_kinds` defines the kinds. UNKNOWN does not occur here. `value` is NaN
    where the kind is OTHER.
    """

    value: Float64s
    kind: Int8s

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def unknown(cls, rows: int) -> NumberColumn:
        """n rows without a number."""
        return cls(np.full(rows, np.nan), np.full(rows, OTHER, np.int8))

    @classmethod
    def of_integers(cls, values: Int64s) -> NumberColumn:
        """Whole numbers that are exact, or NO_VALUE."""
        bound: Bools = values != NO_VALUE
        kind = np.where(bound, np.int8(EXACT), np.int8(OTHER))
        return cls(np.where(bound, values, np.nan), kind)

    @classmethod
    def of_decimals(cls, values: Int64s) -> NumberColumn:
        """Decimals of at most 15 digits, given times 10**DECIMAL_PLACES, or NO_VALUE."""
        bound: Bools = values != NO_VALUE
        kind = np.where(values % 5**DECIMAL_PLACES == 0, np.int8(EXACT), np.int8(SHORT))
        kind[~bound] = OTHER
        return cls(np.where(bound, values / 10**DECIMAL_PLACES, np.nan), kind)

    @classmethod
    def concat(cls, columns: Sequence[NumberColumn]) -> NumberColumn:
        """The rows of all columns, in order."""
        if len(columns) == 1:
            return columns[0]
        return cls(
            np.concatenate([c.value for c in columns]), np.concatenate([c.kind for c in columns])
        )

    def take(self, rows: RowSelection) -> NumberColumn:
        """The rows at the given positions."""
        return NumberColumn(self.value[rows], self.kind[rows])
