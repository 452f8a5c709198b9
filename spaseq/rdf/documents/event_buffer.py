"""Event batches under construction: quads of several blocks with one term table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.quad_block import MALFORMED, QuadBlock
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ABSENT, ListedTerms, TermTable
from spaseq.rdf.documents.repeated_triples import repeated_rows
from spaseq.rdf.events.blank_labels import relabelled
from spaseq.rdf.events.instants import InstantCounter


class EventBuffer:
    """Collects quad blocks and the row ranges of events, and returns event batches.

    `made_up_labels` says that the parser gives unlabelled blank nodes random labels.
    """

    def __init__(self, stream: str, counter: InstantCounter, made_up_labels: bool) -> None:
        self._stream = stream
        self._counter = counter
        self._made_up_labels = made_up_labels
        self._codes: dict[str, int] = {}
        self._terms: list[str] = []
        self._chunks: list[tuple[Int32s, Int32s, Int32s]] = []
        self._base = 0  # number of the first row in the buffer
        self.rows = 0  # number of the row after the last one
        self._clear()

    def _clear(self) -> None:
        self._time: list[int] = []
        self._graph: list[str | None] = []
        self._first: list[int] = []
        self._end: list[int] = []

    def __len__(self) -> int:
        return len(self._time)

    def add(self, block: QuadBlock) -> QuadBlock:
        """Append a block's rows and return the block with this buffer's codes."""
        if self._terms:
            recode = self._recode(block.terms)
            own = replace(
                block,
                s=recode[block.s],
                p=recode[block.p],
                o=recode[block.o],
                g=recode[block.g],
                terms=self._terms,
            )
        else:
            self._terms = list(block.terms)
            self._codes = {text: code for code, text in enumerate(self._terms)}
            own = replace(block, terms=self._terms)
        self._chunks.append((own.s, own.p, own.o))
        self.rows += len(own)
        return own

    def _recode(self, terms: Sequence[str]) -> Int32s:
        """The buffer code of each block code. The last entry is -1: code -1 is no term."""
        codes, own = self._codes, self._terms
        recode = np.empty(len(terms) + 1, np.int32)
        recode[-1] = -1
        for i, text in enumerate(terms):
            code = codes.get(text)
            if code is None:
                code = codes[text] = len(own)
                own.append(text)
            recode[i] = code
        return recode

    def code(self, text: str) -> int:
        """The code of a term, ABSENT if the buffer does not have it."""
        return self._codes.get(text, ABSENT)

    def close(self, time: int, graph: str | None, first: int, end: int) -> None:
        """Add the next event: its time (ms), graph IRI and rows first:end.

        Rows are numbered from the start of the file. Events have ascending rows.
        """
        self._time.append(time)
        self._graph.append(graph)
        self._first.append(first)
        self._end.append(end)

    def rows_before(self, keep: int) -> int:
        """The number of rows in the buffer before the row `keep`."""
        return keep - self._base

    def take(self, keep: int, batch_events: int) -> Iterator[EventBatch]:
        """Return the events in batches of at most `batch_events`; keep the rows from `keep` on."""
        if not self._chunks:
            return
        s, p, o = (np.concatenate(column) for column in zip(*self._chunks, strict=True))
        if self._time:
            batch = self._batch(s, p, o)
            for first in range(0, len(batch), batch_events):
                yield batch.part(first, min(first + batch_events, len(batch)))
        self._restart(keep, s, p, o)

    def _batch(self, s: Int32s, p: Int32s, o: Int32s) -> EventBatch:
        time = np.array(self._time, np.int64)
        first = np.array(self._first, np.int64) - self._base
        end = np.array(self._end, np.int64) - self._base
        rows, start = _rows(first, end)
        rows, start = _without(np.flatnonzero(s[rows] == MALFORMED), rows, start)
        rows, start = _without(repeated_rows(start, s[rows], p[rows], o[rows]), rows, start)
        s, p, o = s[rows], p[rows], o[rows]
        terms: TermTable = ListedTerms(list(self._terms))
        if self._made_up_labels:
            s, o, terms = relabelled(start, s, o, terms)
        k, names = self._counter.assign(time), EventNames.of(self._graph)
        return EventBatch(self._stream, time, k, names, start, s, p, o, terms)

    def _restart(self, keep: int, s: Int32s, p: Int32s, o: Int32s) -> None:
        """Remove the events, the rows before `keep`, and the terms that no kept row has."""
        left = slice(keep - self._base, None)
        old = self._terms
        used = distinct(np.concatenate((s[left], p[left], o[left])))
        used = used[used >= 0]
        recode = np.full(len(old) + 1, -1, np.int32)
        recode[used] = np.arange(len(used), dtype=np.int32)
        self._terms = [old[code] for code in used.tolist()]
        self._codes = {text: code for code, text in enumerate(self._terms)}
        self._chunks = [(recode[s[left]], recode[p[left]], recode[o[left]])]
        self._base = keep
        self._clear()


def _rows(first: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The rows of all events in order, and the start of each event among them [n + 1]."""
    lengths = end - first
    start = np.zeros(len(first) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    return np.arange(start[-1]) + np.repeat(first - start[:-1], lengths), start


def _without(drop: Int64s, rows: Int64s, start: Int64s) -> tuple[Int64s, Int64s]:
    """Rows and starts, without the rows at the ascending positions `drop`."""
    if not len(drop):
        return rows, start
    return np.delete(rows, drop), start - np.searchsorted(drop, start)
