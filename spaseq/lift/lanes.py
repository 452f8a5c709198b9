"""Columns: the terms of a variable in n rows or solutions.

A lane is an Arrow array with the form of its terms, and makes their texts on request only. A few
rows, such as a pushed one, have lists of texts instead: an array has a fixed cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Bools, Float64s, Int8s, Int32s, Int64s
from spaseq.lift.cells import Items, Wrong, is_term
from spaseq.lift.row_blocks import TermType, cells
from spaseq.rdf.columns.term_columns import TextArray
from spaseq.rdf.terms.number_kinds import DATE_TIME, DOUBLE, EXACT, SHORT, UNKNOWN
from spaseq.rdf.terms.term import XSD, kind_of, literal_text, split_literal

_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
_EXACT_INTEGER, _SHORT_DECIMAL, _EXACT_POWER = 2**53, 10**15, 22
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
_SAMPLE, _FEW_OF_SAMPLE = 512, 64
_LONG_NUMBER = 64  # bytes of the longest text of a value that is no string, without its datatype
_ESCAPED = '[\\x00-\\x1f"\\\\\\x7f\\x{fffe}\\x{ffff}]'


class _NoLane(Exception):
    """A value would make its row bad, or the type has no lane."""


_POSITIONS = {"literal": 1, "triple": 1, "bnode": 2, "iri": 3}


def position_of(text: str) -> int:
    """The last position that a term can have in a triple, from the object: 1, 2, or 3 for a
    predicate; 0 if it is no RDF.
    """
    return _POSITIONS[kind_of(text)] if is_term(text) else 0


@dataclass(frozen=True, slots=True)
class Listed:
    """n terms as a list of their texts, None for unbound."""

    terms: list[str | None]

    def __len__(self) -> int:
        return len(self.terms)

    def take(self, places: Int64s) -> Listed:
        """The terms at these places."""
        return Listed([self.terms[place] for place in places.tolist()])

    def row_texts(self) -> list[str | None]:
        """The texts [n], None for unbound."""
        return self.terms

    def bound(self) -> Bools:
        """The places [n] that are bound."""
        return np.array([text is not None for text in self.terms], np.bool_)

    def positions(self) -> Int8s | int:
        """The positions [n] of `position_of`, 0 for unbound; one number if they are the same."""
        found = [0 if text is None else position_of(text) for text in self.terms]
        return found[0] if len({*found}) == 1 else np.array(found, np.int8)

    def read(self, reader: Callable[[str], int | None]) -> tuple[Int64s, Bools]:
        """(numbers [n] that a reader makes of the texts, mask of those that it can read)."""
        known = {text: None if text is None else reader(text) for text in self.terms}
        numbers = [known[text] for text in self.terms]
        return (
            np.array([number or 0 for number in numbers], np.int64),
            np.array([number is not None for number in numbers], np.bool_),
        )

    def is_within(self, size: int) -> bool:
        """Whether no text is certainly longer than some bytes, escaped."""
        return all(text is None or len(text) <= 2 * size for text in self.terms)


class LaneForm(Enum):
    """The form of the terms of a lane."""

    TEXT = "texts of terms"
    IRI = "parts of IRIs, between a prefix and a suffix: strings, or int64"
    STRING = "strings"
    INTEGER = "int64"
    DOUBLE = "float64"
    DECIMAL = "decimals"
    BOOLEAN = "booleans"
    MOMENT = "microseconds since the epoch"


@dataclass(frozen=True, slots=True)
class Lane:
    """n values. `prefix` and `suffix` belong to the form IRI."""

    form: LaneForm
    values: Any  # Arrow array [n]
    prefix: str = ""
    suffix: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: Any) -> Lane:
        """The values at these places (an array of NumPy or Arrow)."""
        return Lane(self.form, self.values.take(pa.array(places)), self.prefix, self.suffix)

    def bound(self) -> Bools:
        """The places [n] that are bound."""
        if not self.values.null_count:
            return np.ones(len(self), np.bool_)
        bound: Bools = self.values.is_valid().to_numpy(zero_copy_only=False)
        return bound

    def positions(self) -> Int8s | int:
        """The positions [n] of `position_of`, 0 for unbound; one number if they are the same."""
        if self.form is LaneForm.TEXT:
            codes, distinct = self.encoded()
            of_distinct = [*map(position_of, distinct.values.to_pylist()), 0]
            return np.array(of_distinct, np.int8)[codes]
        kind = 3 if self.form is LaneForm.IRI else 1
        return self.bound() * np.int8(kind) if self.values.null_count else kind

    def read(self, reader: Callable[[str], int | None]) -> tuple[Int64s, Bools]:
        """(numbers [n] that a reader makes of the texts, mask of those that it can read)."""
        codes, distinct = self.encoded()
        numbers, readable = Listed([*distinct.texts().to_pylist(), None]).read(reader)
        return numbers[codes], readable[codes]

    def is_within(self, size: int) -> bool:
        """Whether no text is certainly longer than some bytes, escaped."""
        values = self.values
        if pa.types.is_dictionary(values.type):
            values = values.dictionary
        if self.form not in (LaneForm.TEXT, LaneForm.STRING) and not is_text(values.type):
            return size >= _LONG_NUMBER
        return (pc.max(pc.binary_length(values)).as_py() or 0) <= size

    def encoded(self) -> tuple[Int32s, Lane]:
        """(codes [n], -1 for null; the distinct values)."""
        values = self.values
        if not pa.types.is_dictionary(values.type):
            if self.form is LaneForm.DOUBLE:
                values = values.view(pa.int64())
            values = values.dictionary_encode()
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        distinct = values.dictionary
        if self.form is LaneForm.DOUBLE:
            distinct = distinct.view(pa.float64())
        return codes, Lane(self.form, distinct, self.prefix, self.suffix)

    def texts(self) -> TextArray:
        """The texts [n] of the terms; no value may be null."""
        values = self.values
        match self.form:
            case LaneForm.TEXT:
                return values
            case LaneForm.IRI:
                return _joined(f"<{self.prefix}", values, f"{self.suffix}>")
            case LaneForm.STRING:
                if pc.any(pc.match_substring_regex(values, _ESCAPED)).as_py():
                    return pa.array(
                        [literal_text(v) for v in values.to_pylist()], pa.large_string()
                    )
                return _joined('"', values, '"')
            case LaneForm.INTEGER:
                return _joined('"', values.cast(pa.large_string()), f'"^^<{XSD}integer>')
            case LaneForm.MOMENT:
                values = values.cast(pa.timestamp("us"))
        return pa.array(cells(values), pa.large_string())

    def row_texts(self) -> list[str | None]:
        """The texts [n] of the terms, each distinct one made once; None for unbound."""
        codes, distinct = self.encoded()
        texts = [*distinct.texts().to_pylist(), None]
        return [texts[code] for code in codes.tolist()]

    def numbers(self) -> tuple[Float64s, Int8s]:
        """(values [n], kinds [n]) of terms without nulls as float64."""
        size = len(self.values)
        match self.form:
            case LaneForm.INTEGER:
                whole = self.values.to_numpy()
                exact = _below(whole, _EXACT_INTEGER)
                return whole.astype(np.float64), np.where(exact, EXACT, UNKNOWN).astype(np.int8)
            case LaneForm.DOUBLE:
                return self.values.to_numpy(), np.full(size, DOUBLE, np.int8)
            case LaneForm.MOMENT:
                moments = self.values.to_numpy()
                exact = _below(moments, _EXACT_INTEGER)
                return moments / 1e6, np.where(exact, DATE_TIME, UNKNOWN).astype(np.int8)
            case LaneForm.DECIMAL if self.values.type.scale in range(_EXACT_POWER + 1):
                return _decimals(self.values)
        return np.full(size, np.nan), np.full(size, UNKNOWN, np.int8)

    def may_hold(self, text: str) -> bool:
        """Whether this lane may have a term with this text."""
        match self.form:
            case LaneForm.TEXT:
                return True
            case LaneForm.IRI:
                inner = self._inner(text)
                if inner is None or not pa.types.is_integer(self.values.type):
                    return inner is not None
                return _is_int64(inner)
            case LaneForm.STRING:
                return text[-1:] == '"'
        end = f'"^^<{XSD}{DATATYPES[self.form]}>'
        if self.form is LaneForm.INTEGER:
            return text.endswith(end) and _is_int64(text[1 : -len(end)])
        return text.endswith(end)

    def value_of(self, text: str) -> Any:
        """The value with a term that this lane may hold; None if only the texts can be compared."""
        match self.form:
            case LaneForm.IRI:
                inner = self._inner(text)
                assert inner is not None
                return int(inner) if pa.types.is_integer(self.values.type) else inner
            case LaneForm.STRING:
                return split_literal(text)[0]
            case LaneForm.INTEGER:
                return int(split_literal(text)[0])
        return None

    def _inner(self, text: str) -> str | None:
        """The text between prefix and suffix of an IRI."""
        before, after = f"<{self.prefix}", f"{self.suffix}>"
        if len(text) < len(before) + len(after):
            return None
        inside = text.startswith(before) and text.endswith(after)
        return text[len(before) : -len(after)] if inside else None

    @property
    def may_be_blank(self) -> bool:
        """Whether some term may be a blank node, or have one."""
        if self.form is not LaneForm.TEXT:
            return False
        values = self.values
        texts = values.dictionary if pa.types.is_dictionary(values.type) else values
        return bool(pc.any(pc.match_substring(texts, "_:")).as_py())


def _is_int64(text: str) -> bool:
    """Whether a text is an integer as STR writes it."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


DATATYPES = {
    LaneForm.INTEGER: "integer",
    LaneForm.DOUBLE: "double",
    LaneForm.DECIMAL: "decimal",
    LaneForm.BOOLEAN: "boolean",
    LaneForm.MOMENT: "dateTime",
}
"""The datatypes of XSD of forms whose values are no texts."""


def _joined(before: str, values: Any, after: str) -> TextArray:
    ends = (pa.scalar(before, pa.large_string()), pa.scalar(after, pa.large_string()))
    empty = pa.scalar("", pa.large_string())
    return pc.binary_join_element_wise(ends[0], values.cast(pa.large_string()), ends[1], empty)


def _below(whole: Any, bound: int) -> Any:
    return (whole > -bound) & (whole < bound)


def _decimals(values: Any) -> tuple[Float64s, Int8s]:
    scale = values.type.scale
    words = np.frombuffer(values.buffers()[1], np.int64)
    low = words[::2][values.offset : values.offset + len(values)]
    high = words[1::2][values.offset : values.offset + len(values)]
    small = (high == low >> 63) & _below(low, _SHORT_DECIMAL)
    whole = low % 5**scale == 0
    kinds = np.where(small, np.where(whole, EXACT, SHORT), UNKNOWN).astype(np.int8)
    return low / 10.0**scale, kinds


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of strings; Polars gives views."""
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


Column: TypeAlias = "Lane | Listed"


def column_of_texts(texts: Sequence[str | None], lanes: bool) -> Column:
    """Terms as a lane, or as a list."""
    if not lanes:
        return Listed([*texts])
    return Lane(LaneForm.TEXT, _with_dictionary(pa.array(texts, pa.large_string())))


def field_column(
    values: Any, lanes: bool, compared: bool = True, is_utf8: bool = False
) -> tuple[Column, dict[int, str]]:
    """(column of a field, by row the reason why its value is no term).

    Args:
        values: an Arrow array, or a list of cells.
        lanes: whether a list becomes a lane.
        compared: whether codes may be needed.
        is_utf8: whether strings in an array are known to be valid.
    """
    if not isinstance(values, list):
        try:
            return _lane_of(values, compared, is_utf8), {}
        except _NoLane:
            values = cells(values)
    wrong = {row: _wrong(c) for row, c in enumerate(values) if isinstance(c, Wrong | Items)}
    if wrong:
        values = [None if row in wrong else cell for row, cell in enumerate(values)]
    return column_of_texts(values, lanes), wrong


def _wrong(cell: Wrong | Items) -> str:
    return cell.reason if isinstance(cell, Wrong) else "a list is no term"


def _lane_of(column: Any, compared: bool, is_utf8: bool) -> Lane:
    t, kind = pa.types, column.type
    if isinstance(kind, TermType):
        return Lane(LaneForm.TEXT, column.storage)
    if isinstance(kind, pa.BaseExtensionType):
        raise _NoLane
    if t.is_dictionary(kind):
        return _dictionary(column)
    if is_text(kind):
        texts = column.cast(pa.large_string()) if is_utf8 else _text(column)
        return Lane(LaneForm.STRING, _with_dictionary(texts) if compared else texts)
    if t.is_boolean(kind):
        return Lane(LaneForm.BOOLEAN, column)
    if t.is_integer(kind):
        return Lane(LaneForm.INTEGER, _cast(column, pa.int64()))
    if t.is_float64(kind):
        return Lane(LaneForm.DOUBLE, _one_nan(column))
    if t.is_decimal128(kind):
        return Lane(LaneForm.DECIMAL, column)
    if t.is_timestamp(kind):
        return Lane(LaneForm.MOMENT, _microseconds(column))
    raise _NoLane


def _text(column: Any) -> Any:
    try:
        column.validate(full=True)  # files may hold bytes that are no UTF-8
    except pa.ArrowInvalid:
        raise _NoLane from None
    return column.cast(pa.large_string())


def _with_dictionary(texts: Any) -> Any:
    """Strings as a dictionary if a sample has few distinct ones, so that each is checked once."""
    sample = texts.slice(0, _SAMPLE)
    few = len(texts) > 4 * _SAMPLE and len(sample.unique()) <= _FEW_OF_SAMPLE
    return texts.dictionary_encode() if few else texts


def _cast(column: Any, kind: Any) -> Any:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise _NoLane from None


def _dictionary(column: Any) -> Lane:
    values = column.dictionary
    if not is_text(values.type):
        raise _NoLane
    texts = _text(values)
    unique = texts.dictionary_encode()
    if texts.null_count or len(unique.dictionary) < len(texts):
        return Lane(LaneForm.STRING, column.cast(pa.large_string()))
    return Lane(
        LaneForm.STRING, pa.DictionaryArray.from_arrays(_cast(column.indices, pa.int32()), texts)
    )


def times_of(column: Any) -> Int64s:
    """The times (ms) of a column of timestamps in the years 1 to 9999, without a null.

    Raises:
        OSError: it is not, although the statistics of its file say so.
    """
    try:
        microseconds = _microseconds(column)
    except _NoLane:
        microseconds = None
    if microseconds is None or microseconds.null_count:
        raise OSError("the statistics of a column of times are wrong")
    times: Int64s = microseconds.to_numpy() // 1000
    return times


def _one_nan(column: Any) -> Any:
    """The doubles with one NaN, so that equal terms have equal bits."""
    odd = pc.fill_null(pc.is_nan(column), False)
    return pc.if_else(odd, pa.scalar(float("nan")), column) if pc.any(odd).as_py() else column


def _microseconds(column: Any) -> Any:
    unit, numbers = column.type.unit, column.cast(pa.int64())
    try:
        if unit in ("s", "ms"):
            numbers = pc.multiply_checked(numbers, 1_000_000 if unit == "s" else 1_000)
    except pa.ArrowInvalid:
        raise _NoLane from None
    if unit == "ns":
        whole = numbers.fill_null(0).to_numpy(zero_copy_only=False) // 1_000
        numbers = pa.array(whole, mask=numbers.is_null().to_numpy(zero_copy_only=False))
    extremes = pc.min_max(numbers).as_py()
    if extremes["min"] is not None and (extremes["min"] < _FIRST_US or extremes["max"] > _LAST_US):
        raise _NoLane
    return numbers
