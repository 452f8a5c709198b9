"""The same columns in every encoding that a run may give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from spaseq.lift.lane_terms import SharedTexts
from spaseq.lift.lanes import Lane, LaneForm
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import (
    DECIMAL_PLACES,
    DECIMAL_TYPE,
    INTEGER_TYPE,
    NO_VALUE,
    TermColumn,
    text_array,
)

PREFIX = "http://example/"

OUTSIDE = '"of another batch"'


def _between(names: EventNames) -> EventNames:
    texts = [text.removeprefix(PREFIX) for text in names.texts() if text]
    return EventNames.between(PREFIX, text_array(texts), "")


def _integers(names: EventNames) -> EventNames:
    """The names `http://example/NUMBER#it` as numbers."""
    texts = [str(text).removeprefix(PREFIX).removesuffix("#it") for text in names.texts()]
    return EventNames.between(PREFIX, pa.array(map(int, texts), pa.int64()), "#it")


def _dictionary(names: EventNames) -> EventNames:
    texts = [text.removeprefix(PREFIX) for text in names.texts() if text]
    return EventNames.between(PREFIX, text_array(texts).dictionary_encode(), "")


def _part(names: EventNames) -> EventNames:
    other = EventNames.of([None, "http://other/"])
    return EventNames.concat([other, names, other])[2 : 2 + len(names)]


def _joined(names: EventNames) -> EventNames:
    half = len(names) // 2
    return EventNames.concat([_between(names[:half]), names[half:]])


NAMES: Mapping[str, Callable[[EventNames], EventNames]] = {
    "whole": lambda names: names,
    "parts": _between,
    "integers": _integers,
    "dictionary": _dictionary,
    "slice": _part,
    "joined": _joined,
}
"""Encodings of names `http://example/NUMBER#it`."""


def _unused(column: TermColumn) -> TermColumn:
    """Terms among many others, in another order."""
    texts = column.terms.to_pylist()
    table = [*(f'"{i}"@de' for i in range(9 * len(column) + 9)), *reversed(texts)]
    codes = np.where(column.codes < 0, -1, len(table) - 1 - column.codes).astype(np.int32)
    return TermColumn(codes, text_array(table))


def _values(column: TermColumn) -> TermColumn:
    """Canonical integers, or short decimals, as values; other columns as they are."""
    texts = column.texts()
    for datatype, places in ((INTEGER_TYPE, 0), (DECIMAL_TYPE, DECIMAL_PLACES)):
        end = f'"{datatype}'
        if all(text is None or text.endswith(end) for text in texts):
            numbers = [None if text is None else Decimal(text[1 : -len(end)]) for text in texts]
            values = [NO_VALUE if n is None else int(n.scaleb(places)) for n in numbers]
            made = TermColumn.of_decimals if places else TermColumn.of_integers
            own = made(np.array(values, np.int64))
            return own if own.texts() == texts else column
    return column


def _lane(column: TermColumn) -> TermColumn:
    """Texts that batches share."""
    texts = SharedTexts()
    lane = Lane(LaneForm.TEXT, column.terms)
    assert texts.of(lane) is texts.of(lane)
    return TermColumn(column.codes, texts.of(lane))


def _slice(column: TermColumn) -> TermColumn:
    other = TermColumn.of([OUTSIDE, None])
    return TermColumn.concat([other, column, other]).take(slice(2, 2 + len(column)))


TERMS: Mapping[str, Callable[[TermColumn], TermColumn]] = {
    "plain": lambda column: column,
    "unused": _unused,
    "values": _values,
    "lane": _lane,
    "slice": _slice,
}
"""Encodings of columns of terms."""


def encoded(rows: SolutionBatch, names: str, terms: str) -> SolutionBatch:
    """The same rows, with their names and terms in some encodings."""
    values = {v: TERMS[terms](column) for v, column in rows.values.items()}
    return replace(rows, event=NAMES[names](rows.event), values=values)


PAIRS = [*((name, "plain") for name in NAMES), *(("integers", term) for term in TERMS)]
"""Each encoding of names and of terms."""
