"""The terms of lifted columns: groups of lanes, whose codes and texts are made on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.lift.lanes import Lane, LaneForm
from spaseq.rdf.columns.term_columns import TermColumn, TextArray, text_array
from spaseq.rdf.columns.term_tables import ABSENT, ListedTerms, Numbers, TermTable
from spaseq.rdf.terms.number_kinds import OTHER, UNKNOWN

_SPARSE = 2
"""Integers are their own codes if their range is at most this many times as large."""

_FAR = 2**62

_SHARED = 4096
"""The texts of up to this number of values are kept from block to block."""


class SharedTexts:
    """The texts of the values of small groups of lanes, kept from block to block.

    Columns that share them need not be compared by text.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[LaneForm, str, str], tuple[Any, TextArray]] = {}

    def of(self, lane: Lane) -> TextArray:
        """The texts of distinct values; the same object if the last block had the same values."""
        key, values = (lane.form, lane.prefix, lane.suffix), lane.values
        known = self._known.get(key)
        if known is None or not known[0].equals(values):
            known = self._known[key] = values, lane.texts()
        return known[1]


class LaneGroup:
    """Lanes of one block that may share terms.

    Codes [n] begin at 0 and are below `room`, -1 for null; equal terms have equal codes.
    Integers in a small range are their own codes, less the least one. Others go into a dictionary
    at the first request for codes.
    """

    def __init__(self, lanes: Sequence[Lane], texts: SharedTexts) -> None:
        self.lanes, self._shared = lanes, texts
        self._least, self.room = _range(lanes)

    @property
    def is_coded(self) -> bool:
        """Whether codes cost little: they are there, or are made without a dictionary."""
        if self._least is not None or "_encoded" in self.__dict__:
            return True
        return len(self.lanes) == 1 and pa.types.is_dictionary(self.lanes[0].values.type)

    def codes(self, number: int) -> Int32s:
        """The codes of a lane."""
        if self._least is None:
            return self._encoded[0][number]
        values = self.lanes[number].values
        codes: Int32s = (values.fill_null(self._least).to_numpy() - self._least).astype(np.int32)
        if values.null_count:
            codes[values.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes

    @cached_property
    def distinct(self) -> Lane:
        """The values that have codes, in order of codes."""
        if self._least is None:
            return self._encoded[1]
        first = self.lanes[0]
        values = pa.array(self._least + np.arange(self.room, dtype=np.int64))
        return Lane(first.form, values, first.prefix, first.suffix)

    @cached_property
    def numbers(self) -> Numbers:
        """(values, kinds) of the distinct values as float64, and of an unbound variable."""
        values, kinds = self.distinct.numbers()
        return np.append(values, np.nan), np.append(kinds, np.int8(OTHER))

    def place(self, text: str) -> int:
        """The code of a term, -1 if it has none."""
        if not any(lane.may_hold(text) for lane in self.lanes):
            return -1
        value = None if self.distinct.form is LaneForm.TEXT else self.distinct.value_of(text)
        if value is None:
            texts = self.texts
            return int(pc.index(texts, pa.scalar(text, texts.type)).as_py())
        if self._least is not None:
            code = value - self._least
            return code if 0 <= code < self.room else -1
        values = self.distinct.values
        return int(pc.index(values, pa.scalar(value, values.type)).as_py())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The codes of all terms."""
        return {text: code for code, text in enumerate(self.texts.to_pylist())}

    @cached_property
    def texts(self) -> TextArray:
        """The texts of all terms, in order of codes."""
        return self._shared.of(self.distinct) if self.is_small else self.distinct.texts()

    @property
    def is_small(self) -> bool:
        """Whether blocks share the texts of all terms."""
        return self.room <= _SHARED

    @cached_property
    def _encoded(self) -> tuple[list[Int32s], Lane]:
        """(codes of each lane, distinct values)."""
        encoded = [lane.encoded() for lane in self.lanes]
        if len(encoded) == 1:
            return [encoded[0][0]], encoded[0][1]
        places, distinct = _together([lane for _, lane in encoded]).encoded()
        ends = np.cumsum([len(lane) for _, lane in encoded])[:-1]
        parts = np.split(places, ends)
        codes = [
            np.append(part, np.int32(-1))[codes]
            for part, (codes, _) in zip(parts, encoded, strict=True)
        ]
        return codes, distinct


def _range(lanes: Sequence[Lane]) -> tuple[int | None, int]:
    """(the least of some integers that lie close together, or None; bound of the codes)."""
    size = sum(map(_distinct_bound, lanes))
    kinds = {(lane.form, lane.prefix, lane.suffix) for lane in lanes}
    if len(kinds) > 1 or not all(pa.types.is_integer(lane.values.type) for lane in lanes):
        return None, size
    if lanes[0].form not in (LaneForm.INTEGER, LaneForm.IRI):
        return None, size
    extremes = [pc.min_max(lane.values).as_py() for lane in lanes]
    least = min((e["min"] for e in extremes if e["min"] is not None), default=0)
    most = max((e["max"] for e in extremes if e["max"] is not None), default=0)
    span = most - least + 1
    if span <= _SHARED // 4 and -_FAR < least < _FAR:  # so that most blocks have the same range
        unit = 1 << (span - 1).bit_length()
        least -= least % unit
        return least, most - most % unit + unit - least
    return (least, span) if span <= _SPARSE * size + 1024 else (None, size)


def _distinct_bound(lane: Lane) -> int:
    values = lane.values
    return len(values.dictionary if pa.types.is_dictionary(values.type) else values)


class LaneTerms(TermTable):
    """Constants and the terms of a block's lanes. Lanes that may share a term are in one group.

    A constant that a lane has, too, has the lane's code. Some codes may belong to no row, and codes
    of a dictionary that is smaller than its bound belong to no term.
    """

    has_canonical_doubles = True

    def __init__(
        self, constants: Sequence[str], lanes: Mapping[str, Lane], texts: SharedTexts | None = None
    ) -> None:
        """`texts` are kept from block to block."""
        texts = texts or SharedTexts()
        self._constants = [*dict.fromkeys(constants)]
        self._groups: list[LaneGroup] = []
        self._of_lane: dict[str, tuple[int, int]] = {}  # its group, and its number there
        for number, names in enumerate(_groups(lanes)):
            self._groups.append(LaneGroup([lanes[name] for name in names], texts))
            self._of_lane.update((name, (number, column)) for column, name in enumerate(names))
        rooms = [len(self._constants), *(group.room for group in self._groups)]
        self._starts: Int64s = np.cumsum([0, *rooms], dtype=np.int64)
        self._texts: dict[int, str] = {}
        self._codes: dict[str, Int32s] = {}

    def __len__(self) -> int:
        return int(self._starts[-1])

    def codes(self, lane: str) -> Int32s:
        """The codes [n] of a lane, by name; -1 for null."""
        codes = self._codes.get(lane)
        if codes is None:
            number, lane_number = self._of_lane[lane]
            codes = self._groups[number].codes(lane_number)
            start = np.int32(self._starts[number + 1])
            whole = not self._groups[number].lanes[lane_number].values.null_count
            codes = codes + start if whole else np.where(codes < 0, codes, codes + start)
            self._codes[lane] = codes
        return codes

    def rows_with(self, lane: str, text: str) -> Bools:
        """Which rows [n] of a lane have this term."""
        number, lane_number = self._of_lane[lane]
        group = self._groups[number]
        column = group.lanes[lane_number]
        if not column.may_hold(text):
            return np.zeros(len(column), np.bool_)
        value = column.value_of(text)
        if not (group.is_coded or value is None or pa.types.is_dictionary(column.values.type)):
            same = pc.equal(column.values, pa.scalar(value, column.values.type))
            same_rows: Bools = same.fill_null(False).to_numpy(zero_copy_only=False)
            return same_rows
        code = group.place(text)
        if code < 0:
            return np.zeros(len(column), np.bool_)
        equal: Bools = self.codes(lane) == code + self._starts[number + 1]
        return equal

    def text(self, code: int) -> str:
        text = self._texts.get(code)
        if text is None:
            if not -len(self) <= code < len(self):
                raise IndexError(code)
            text = self._texts[code] = self.take(np.array([code % len(self)], np.int32))[0]
        return text

    def take(self, codes: Int32s) -> list[str]:
        texts: list[str] = self.strings(codes).to_pylist()
        return texts

    def strings(self, codes: Int32s) -> TextArray:
        parts: list[TextArray] = []
        places: list[Any] = []
        for part, rows in self._by_part(codes):
            indices = pa.array(codes[rows] - self._starts[part])
            if part:
                parts.append(self._groups[part - 1].distinct.take(indices).texts())
            else:
                parts.append(text_array(self._constants).take(indices))
            places.append(rows)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.array([], pa.large_string())
        order = np.empty(len(codes), np.int64)
        order[np.concatenate(places)] = np.arange(len(codes))
        return pa.concat_arrays(parts).take(pa.array(order))

    def shared(self, codes: Int32s) -> TermColumn | None:
        part, local_codes = self._only_part(codes)
        if part is None or not part or not self._groups[part - 1].is_small:
            return None
        return TermColumn(local_codes, self._groups[part - 1].texts)

    def _only_part(self, codes: Int32s) -> tuple[int | None, Int32s]:
        """The part that all codes [n], -1 for unbound, belong to, None if there is no such one.

        Also the codes in this part, -1 for unbound; see `_by_part`.
        """
        most = int(codes.max(initial=-1))
        if most < 0:
            return None, codes
        least = int(codes.view(np.uint32).min())  # unbound is the greatest one
        first, last = (np.searchsorted(self._starts, [least, most], side="right") - 1).tolist()
        if first != last:
            return None, codes
        start = np.int32(self._starts[first])
        return first, np.maximum(codes - start, np.int32(-1)) if start else codes

    def _by_part(self, codes: Int32s) -> list[tuple[int, Indices | slice]]:
        """(0 for constants or 1 + group, rows whose codes are its) of nonnegative codes [n]."""
        if not len(codes):
            return []
        ends = np.array([codes.min(), codes.max()])
        first, last = (np.searchsorted(self._starts, ends, side="right") - 1).tolist()
        if first == last:
            return [(first, slice(None))]
        parts = np.searchsorted(self._starts, codes, side="right") - 1
        return [(int(part), np.flatnonzero(parts == part)) for part in np.unique(parts)]

    def find(self, texts: Sequence[str]) -> Int32s:
        many = len(texts) > thresholds.current.few_terms
        return np.array([self._found(text, many) for text in texts], np.int32)

    def _found(self, text: str, many: bool) -> int:
        for group, start in zip(self._groups, self._starts[1:].tolist(), strict=False):
            place = group.places.get(text, -1) if many else group.place(text)
            if place >= 0:
                return int(start + place)
        return self._constants.index(text) if text in self._constants else ABSENT

    def numbers(self, codes: Int32s) -> Numbers:
        only, local_codes = self._only_part(codes)
        if only is not None:
            return self._numbers(only, local_codes)
        values, kinds = np.full(len(codes), np.nan), np.full(len(codes), OTHER, np.int8)
        bound = np.flatnonzero(codes >= 0)
        for part, rows in self._by_part(codes[bound]):
            places = bound[rows]
            local_codes = codes[places] - np.int32(self._starts[part])
            values[places], kinds[places] = self._numbers(part, local_codes)
        return values, kinds

    def _numbers(self, part: int, local_codes: Int32s) -> Numbers:
        """The numbers of codes in one part, 0 for constants or 1 + group; -1 for unbound."""
        if not part:
            kinds = np.where(local_codes < 0, OTHER, UNKNOWN).astype(np.int8)
            return np.full(len(local_codes), np.nan), kinds
        numbers, kinds = self._groups[part - 1].numbers
        if (kinds[:-1] == kinds[0]).all():
            return numbers[local_codes], np.where(local_codes < 0, kinds[-1], kinds[0])
        return numbers[local_codes], kinds[local_codes]

    @property
    def has_blank(self) -> bool:
        return any(lane.may_be_blank for group in self._groups for lane in group.lanes)

    def __iter__(self) -> Iterator[str]:
        yield from self._constants
        for group in self._groups:
            texts = group.texts.to_pylist()
            yield from texts
            yield from [""] * (group.room - len(texts))

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedTerms, (list(self),)


def _groups(lanes: Mapping[str, Lane]) -> list[list[str]]:
    """The names of lanes; lanes that may share a term are together."""
    groups: list[list[str]] = []
    for name, lane in lanes.items():
        near = [g for g in groups if any(_may_share(lane, lanes[other]) for other in g)]
        groups = [g for g in groups if g not in near]
        groups.append([*(other for g in near for other in g), name])
    return groups


def _together(lanes: Sequence[Lane]) -> Lane:
    first = lanes[0]
    alike = {(lane.form, lane.values.type, lane.prefix, lane.suffix) for lane in lanes}
    if len(alike) == 1:
        values = pa.concat_arrays([lane.values for lane in lanes])
        return Lane(first.form, values, first.prefix, first.suffix)
    return Lane(LaneForm.TEXT, pa.concat_arrays([lane.texts() for lane in lanes]))


def _may_share(one: Lane, other: Lane) -> bool:
    if one.form is LaneForm.TEXT and other.form is LaneForm.TEXT:
        return True
    if one.form is LaneForm.TEXT or other.form is LaneForm.TEXT:
        texts, lane = (one, other) if one.form is LaneForm.TEXT else (other, one)
        if _distinct_bound(texts) > thresholds.current.few_terms:
            return True
        return any(lane.may_hold(text) for text in texts.values.unique().to_pylist() if text)
    if one.form is LaneForm.IRI and other.form is LaneForm.IRI:
        return one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)
    return one.form is other.form
