"""Texts of rows, joined from constant texts and texts of columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.answer_batch import Runs
from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.rdf.columns.term_columns import UNBOUND, TermColumn, TextArray, text_array
from spaseq.rdf.kernels.texts import CONSTANT, OWN, joined_texts
from spaseq.rdf.kernels.vectors import WIDTH
from spaseq.records import record


@record
class PlacedTexts:
    """Rows of texts [n]: row i is `table[places[i]]`, or no text where the place is negative."""

    table: TextArray
    places: Int32s

    @classmethod
    def of(cls, column: TermColumn) -> PlacedTexts:
        """The terms of a column."""
        column = column.compact()
        return cls(column.terms, column.codes)


Part: TypeAlias = "str | TextArray | PlacedTexts"
"""A part of a row's text: a constant text, or a text of each row."""


def joined(parts: Sequence[Part], size: int) -> TextArray:
    """Texts [n] one after the other, row by row."""
    tables: list[TextArray] = []
    places: list[Int32s] = []
    column = []
    for fixed, group in groupby(parts, lambda part: isinstance(part, str)):
        if fixed:
            tables.append(text_array(["".join(map(str, group))]))
            column.append(CONSTANT)
            continue
        for part in group:
            if isinstance(part, PlacedTexts):
                column.append(len(places))
                places.append(part.places)
            else:
                column.append(OWN)
            tables.append(part.table if isinstance(part, PlacedTexts) else part)
    data, offsets, first = _together(tables)
    rows = np.array(places, np.int32).reshape(len(places), size)
    ends, texts = joined_texts(data, offsets, first, np.array(column), rows, size)
    return pa.LargeStringArray.from_buffers(size, pa.py_buffer(ends), pa.py_buffer(texts))


def _together(tables: Sequence[TextArray]) -> tuple[Bytes, Int64s, Int64s]:
    """(bytes, offsets, the number of the first text of each table) of all texts of some tables.

    A table that stands there several times is copied once.
    """
    different = {id(table): table for table in tables}
    texts = [bytes_of(table) for table in different.values()]
    begins = np.cumsum([0, *(len(data) for data, _ in texts)])
    offsets = [ends + begin for (_, ends), begin in zip(texts, begins, strict=False)]
    first = dict(zip(different, np.cumsum([0, *map(len, offsets)]), strict=False))
    data = np.concatenate([*(data for data, _ in texts), np.zeros(WIDTH, np.uint8)])
    return data, np.concatenate(offsets), np.array([first[id(table)] for table in tables])


def joined_where_bound(
    fields: Sequence[tuple[str, PlacedTexts]], separator: str, size: int
) -> list[Part]:
    """Parts that write fields: a constant and a text, nothing where the text is unbound.

    The separator separates the written fields.
    """
    parts: list[Part] = []
    before = np.zeros(size, np.int32)  # whether there is a text before
    for lead, texts in fields:
        bound = texts.places >= 0
        leads = text_array([lead, separator + lead])
        parts += [PlacedTexts(leads, np.where(bound, before, np.int32(UNBOUND))), texts]
        before |= bound
    return parts


def joined_runs(texts: TextArray, runs: Runs, separator: str) -> list[Part]:
    """Parts that write the texts of each run, separated."""
    if width := runs.width:
        places = runs.places.reshape(-1, width).astype(np.int32)
        parts = [part for column in places.T for part in (separator, PlacedTexts(texts, column))]
        return parts[1:]
    ends = np.concatenate([[0], runs.ends])
    lists = pa.LargeListArray.from_arrays(pa.array(ends), texts.take(pa.array(runs.places)))
    return [pc.binary_join(lists, pa.scalar(separator, pa.large_string()))]


def bytes_of(texts: TextArray) -> tuple[Bytes, Int64s]:
    """The bytes of texts, and [n + 1] where each text begins and the last one ends."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    whole = np.frombuffer(data or b"", np.uint8)
    whole.setflags(write=False)  # one type, so one kernel
    return whole[ends[0] : ends[-1]], ends - ends[0]
