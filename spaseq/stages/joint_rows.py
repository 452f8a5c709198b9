"""Solutions of many queries on one batch of events, sorted and cut into a batch for each query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.expr.doubles import doubles_of
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.solution_rows import may_be_blank
from spaseq.rdf.columns.solution_batch import SolutionBatch, row_order
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    NumberColumn,
    TermColumn,
    TextArray,
    concat_texts,
    distinct_codes,
    text_array,
)
from spaseq.rdf.kernels.texts import compacted_parts
from spaseq.rdf.terms.term import scoped_term
from spaseq.records import record


@record
class JointSolutions:
    """n solutions of GPMs of several queries.

    `event` int64 [n] is the number of each solution's event, `query` and `gpm` int64 [n] the
    numbers of the query and of its GPM. `columns` has pairs of columns: the position [n] of a
    variable among the query's variables, negative if it is not one, and its codes [n] in the
    batch's lexicon.
    """

    event: Int64s
    query: Int64s
    gpm: Int64s
    columns: Sequence[tuple[Int32s, Int32s]]

    def take(self, rows: Indices) -> JointSolutions:
        """Some of the solutions."""
        columns = [(column[rows], codes[rows]) for column, codes in self.columns]
        return JointSolutions(self.event[rows], self.query[rows], self.gpm[rows], columns)


class RowCutter:
    """Makes the batches of queries with the given columns."""

    def __init__(self, columns: Sequence[SolutionColumns]) -> None:
        self._columns = columns
        self._widths = np.array([len(each.variables) for each in columns], np.int64)
        self._number_places = [
            np.array([each.variables.index(v) for v in each.numbers], np.int64) for each in columns
        ]

    def batches(
        self, found: Sequence[JointSolutions], streams: Int32s, index: VerticalPartition
    ) -> dict[int, SolutionBatch]:
        """The batch of each query that has solutions, by number, in order of events and GPMs.

        `streams` [queries] has each query's name for the stream of the events.
        """
        found = [part for part in found if len(part.event)]
        if not found:
            return {}
        cells = _Cells(found, self._widths)
        numbers = self._numbers(cells, index)
        codes, texts = _scoped(cells, index)
        used, ends, places = compacted_parts(codes, cells.ends, len(index.lexicon) + len(texts))
        terms = _strings(used, texts, index)
        events = index.batch
        stream, time, k = streams[cells.query], events.time[cells.event], events.k[cells.event]
        names = events.names(cells.event)
        batches: dict[int, SolutionBatch] = {}
        first_row = first_cell = first_term = first_number = 0
        rows = zip(cells.queries.tolist(), cells.row_ends.tolist(), strict=True)
        for (query, row_end), end, last in zip(
            rows, cells.ends.tolist(), ends.tolist(), strict=True
        ):
            columns, span = self._columns[query], slice(first_row, row_end)
            size = row_end - first_row
            shared = pa.concat_arrays([terms.slice(first_term, last - first_term)])  # a copy
            split = places[first_cell:end].reshape(len(columns.variables), size)
            values = {
                v: TermColumn(codes, shared)
                for v, codes in zip(columns.variables, split, strict=True)
            }
            floats = {}
            for v in columns.numbers:
                part = slice(first_number, first_number + size)
                floats[v] = NumberColumn(numbers.value[part], numbers.kind[part])
                first_number += size
            head = (
                stream[span],
                time[span],
                k[span],
                cells.gpm[span],
                names.apart(first_row, size),
            )
            batches[query] = SolutionBatch(*head, values, floats)
            first_row, first_cell, first_term = row_end, end, last
        return batches

    def _numbers(self, cells: _Cells, index: VerticalPartition) -> NumberColumn:
        """The numbers of all queries, query by query, column by column."""
        begins, sizes = [], []
        starts = cells.ends - self._widths[cells.queries] * cells.sizes
        for query, start, size in zip(
            cells.queries.tolist(), starts.tolist(), cells.sizes.tolist(), strict=True
        ):
            for column in self._number_places[query].tolist():
                begins.append(start + column * size)
                sizes.append(size)
        if not begins:
            return NumberColumn.unknown(0)
        lengths = np.array(sizes, np.int64)
        ends = np.cumsum(lengths)
        rows = np.arange(ends[-1]) + np.repeat(np.array(begins) - ends + lengths, lengths)
        return doubles_of(cells.codes[rows], index.lexicon)


class _Cells:
    """The codes of all solutions, by query, column and row.

    Attributes:
        queries: int64 [q], the queries with solutions, ascending.
        sizes, row_ends: int64 [q], the number of each query's rows, and their ends.
        ends: int64 [q], the ends of each query's codes.
        codes: int32, the codes, column by column of a query.
        query, event, gpm: [n], of each row.
    """

    def __init__(self, parts: Sequence[JointSolutions], widths: Int64s) -> None:
        query = np.concatenate([part.query for part in parts])
        event = np.concatenate([part.event for part in parts])
        gpm = np.concatenate([part.gpm for part in parts])
        order = row_order([query, event, gpm])
        self.query, self.event = query[order], event[order]
        self.gpm = gpm[order].astype(np.int32)
        firsts = np.flatnonzero(np.diff(self.query, prepend=-1))
        self.row_ends = np.append(firsts[1:], len(order))
        self.sizes = self.row_ends - firsts
        self.queries = self.query[firsts]
        self.ends = np.cumsum(widths[self.queries] * self.sizes)
        starts = self.ends - widths[self.queries] * self.sizes
        group = np.repeat(np.arange(len(firsts)), self.sizes)
        first_cell, step = np.empty_like(order), np.empty_like(order)
        first_cell[order] = (starts - firsts)[group] + np.arange(len(order))
        step[order] = self.sizes[group]
        self.starts = starts
        self.codes = np.full(int(self.ends[-1]), UNBOUND, np.int32)
        first = 0
        for part in parts:
            end = first + len(part.event)
            for column, codes in part.columns:
                kept = column >= 0
                cells = first_cell[first:end] + column * step[first:end]
                self.codes[cells[kept]] = codes[kept]
            first = end

    def rows_of(self, cells: Indices) -> Indices:
        """The row of each of some cells."""
        group = np.searchsorted(self.ends, cells, "right")
        within = (cells - self.starts[group]) % self.sizes[group]
        rows: Indices = within + self.row_ends[group] - self.sizes[group]
        return rows


def _scoped(cells: _Cells, index: VerticalPartition) -> tuple[Int32s, list[str]]:
    """The codes, with more for the answer labels of blank nodes, and the labels' texts."""
    lexicon, events = index.lexicon, index.batch
    if not lexicon.base.has_blank:
        return cells.codes, []
    known, _ = distinct_codes(cells.codes, len(lexicon))
    used: Int32s = known[(known >= 0) & (known < len(events.terms))].astype(np.int32)
    is_blank = np.zeros(len(lexicon) + 1, np.bool_)  # the last is UNBOUND's
    is_blank[used] = may_be_blank(lexicon.strings(used))
    blank = np.flatnonzero(is_blank[cells.codes])
    if not len(blank):
        return cells.codes, []
    codes, event = cells.codes[blank], cells.event[cells.rows_of(blank)]
    made: dict[str, int] = {}
    given = zip(lexicon.take(codes), event.tolist(), strict=True)
    labels = [
        scoped_term(events.stream, int(events.time[e]), int(events.k[e]), text) for text, e in given
    ]
    scoped = cells.codes.copy()
    scoped[blank] = [len(lexicon) + made.setdefault(label, len(made)) for label in labels]
    return scoped, [*made]


def _strings(used: Int32s, more: list[str], index: VerticalPartition) -> TextArray:
    """The texts of codes, the last of which are of `more`; each text is made once."""
    limit = len(index.lexicon)
    codes, which = distinct_codes(used, limit + len(more))
    known: Int32s = codes[codes < limit].astype(np.int32)
    texts = index.lexicon.strings(known)
    if more:
        texts = concat_texts([texts, text_array([more[c - limit] for c in codes[len(known) :]])])
    return texts.take(pa.array(which))
