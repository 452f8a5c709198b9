"""The terms of lifted columns: distinct values of lanes, which become texts on demand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.lift.lanes import Lane, LaneForm
from spaseq.rdf.columns.term_columns import TextArray
from spaseq.rdf.columns.term_tables import ABSENT, ListedTerms, Numbers, TermTable
from spaseq.rdf.terms.number_kinds import OTHER

_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
"""An integer as STR writes it."""

_FEW = 8
"""Up to this number of texts, looking through the lanes is faster than a dictionary."""


class LaneTerms(TermTable):
    """The distinct values of lanes, one lane after the other. No two lanes share a term."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._ends: Int64s = np.cumsum([0, *map(len, lanes)], dtype=np.int64)
        self._known: dict[str, int] | None = None
        self._texts: dict[int, str] = {}
        self._numbers: list[Numbers | None] = [None] * len(lanes)

    def __len__(self) -> int:
        return int(self._ends[-1])

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
        parts, places = [], []
        for number, rows in self._by_lane(codes):
            own = pa.array(codes[rows] - self._ends[number])
            parts.append(self._lanes[number].take(own).texts())
            places.append(rows)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.array([], pa.large_string())
        order = np.empty(len(codes), np.int64)
        order[np.concatenate(places)] = np.arange(len(codes))
        return pa.concat_arrays(parts).take(pa.array(order))

    def _by_lane(self, codes: Int32s) -> list[tuple[int, Indices]]:
        """(lane, rows whose codes are its) of nonnegative codes [n]."""
        lanes = np.searchsorted(self._ends, codes, side="right") - 1
        if len(lanes) and (lanes == lanes[0]).all():
            return [(int(lanes[0]), np.arange(len(codes)))]
        return [(int(number), np.flatnonzero(lanes == number)) for number in np.unique(lanes)]

    def find(self, texts: Sequence[str]) -> Int32s:
        if self._known is None and len(texts) > _FEW:
            self._known = {text: code for code, text in enumerate(self)}
        if self._known is not None:
            return np.array([self._known.get(text, ABSENT) for text in texts], np.int32)
        return np.array([self._found(text) for text in texts], np.int32)

    def _found(self, text: str) -> int:
        for number, lane in enumerate(self._lanes):
            place = _place(lane, text)
            if place >= 0:
                return int(self._ends[number]) + place
        return ABSENT

    def numbers(self, codes: Int32s) -> Numbers:
        values, kinds = np.full(len(codes), np.nan), np.full(len(codes), OTHER, np.int8)
        bound = np.flatnonzero(codes >= 0)
        for number, rows in self._by_lane(codes[bound]):
            known = self._numbers[number]
            if known is None:
                known = self._numbers[number] = self._lanes[number].numbers()
            own = codes[bound[rows]] - self._ends[number]
            values[bound[rows]], kinds[bound[rows]] = known[0][own], known[1][own]
        return values, kinds

    @property
    def has_blank(self) -> bool:
        return any(
            lane.form is LaneForm.TEXT and pc.any(pc.match_substring(lane.values, "_:")).as_py()
            for lane in self._lanes
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedTerms, (list(self),)


def _place(lane: Lane, text: str) -> int:
    """The place of a text among a lane's terms, -1 if it is none."""
    if not len(lane) or not lane.may_hold(text):
        return -1
    if lane.form is LaneForm.IRI:
        if not text.endswith(f"{lane.suffix}>"):
            return -1
        inner = text[1 + len(lane.prefix) : -1 - len(lane.suffix)]
        if not pa.types.is_integer(lane.values.type):
            return int(pc.index(lane.values, pa.scalar(inner, lane.values.type)).as_py())
        if _INTEGER.fullmatch(inner) is None or not -(2**63) <= int(inner) < 2**63:
            return -1
        return int(pc.index(lane.values, pa.scalar(int(inner), pa.int64())).as_py())
    return int(pc.index(lane.texts(), pa.scalar(text, pa.large_string())).as_py())


@dataclass(frozen=True, slots=True)
class LaneNames(Sequence["str | None"]):
    """The graph IRIs of n events; `lane` has the form IRI."""

    lane: Lane

    def __len__(self) -> int:
        return len(self.lane)

    @overload
    def __getitem__(self, event: int) -> str: ...
    @overload
    def __getitem__(self, event: slice) -> LaneNames: ...
    def __getitem__(self, event: int | slice) -> str | LaneNames:
        lane = self.lane
        if isinstance(event, slice):
            return LaneNames(Lane(lane.form, lane.values[event], lane.prefix, lane.suffix))
        return f"{lane.prefix}{lane.values[event].as_py()}{lane.suffix}"

    def take(self, events: Indices) -> LaneNames:
        """The names of some events."""
        return LaneNames(self.lane.take(pa.array(events)))

    def strings(self, events: Indices) -> TextArray:
        """The names of some events as an Arrow array."""
        texts = self.lane.take(pa.array(events)).texts()
        return pc.utf8_slice_codeunits(texts, 1, -1)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def united(lanes: Sequence[Lane]) -> tuple[LaneTerms, list[Int32s]]:
    """(the terms of lanes of distinct values, the code of each of their values).

    Lanes that may share a term become one.
    """
    groups: list[list[int]] = []
    for number, lane in enumerate(lanes):
        near = [g for g in groups if any(_may_share(lane, lanes[other]) for other in g)]
        groups = [g for g in groups if g not in near]
        groups.append(sorted([number, *(other for g in near for other in g)]))
    codes: list[Int32s] = [np.empty(0, np.int32)] * len(lanes)
    out: list[Lane] = []
    first = 0
    for group in groups:
        if len(group) == 1:
            lane = lanes[group[0]]
            codes[group[0]] = np.arange(first, first + len(lane), dtype=np.int32)
        else:
            whole = _together([lanes[number] for number in group])
            places, lane = whole.encoded()
            ends = np.cumsum([len(lanes[number]) for number in group])[:-1]
            for number, part in zip(group, np.split(places + np.int32(first), ends), strict=True):
                codes[number] = part
        out.append(lane)
        first += len(lane)
    return LaneTerms(out), codes


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
        if len(texts) > _FEW:
            return True
        return any(lane.may_hold(text) for text in texts.values.to_pylist())
    if one.form is LaneForm.IRI and other.form is LaneForm.IRI:
        return one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)
    return one.form is other.form
