"""Event batches under construction: quads of several blocks with one term table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.quad_block import MALFORMED, QuadBlock
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ABSENT, ListedTerms
from spaseq.rdf.documents.repeated_triples import repeated_rows
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.terms.triple_terms import is_triple_term, with_blank_nodes

_MADE_UP = re.compile(r"_:[a-f][0-9a-f]{23,31}")
"""Labels of oxrdf: 128 random bits in hexadecimal. A label of this form in the input is replaced,
too. That does no harm, as a label has no meaning beyond its event."""


def relabel(starts: Int64s, s: Int32s, o: Int32s, terms: list[str]) -> tuple[Int32s, Int32s]:
    """Subjects and objects int32 [m] with random labels replaced; new labels are added to `terms`.

    Event i has the rows starts[i]:starts[i + 1]. A new label differs from all labels that the input
    gives in the same event. The time is linear in the number of rows and terms.
    """
    made_up = np.fromiter((_has_made_up(t) for t in terms), np.bool_, len(terms))
    rows = np.flatnonzero(made_up[s] | made_up[o])
    if not len(rows):
        return s, o
    s, o = s.copy(), o.copy()
    codes = {text: code for code, text in enumerate(terms)}
    for event in np.unique(np.searchsorted(starts, rows, side="right") - 1).tolist():
        here = slice(int(starts[event]), int(starts[event + 1]))
        subjects, objects = s[here].tolist(), o[here].tolist()
        new = {}
        for code, text in _texts(subjects, objects, made_up, terms).items():
            new[code] = codes.setdefault(text, len(terms))
            if new[code] == len(terms):
                terms.append(text)
        s[here] = [new.get(code, code) for code in subjects]
        o[here] = [new.get(code, code) for code in objects]
    return s, o


def _has_made_up(text: str) -> bool:
    if is_triple_term(text):
        return _MADE_UP.search(text) is not None
    return _MADE_UP.fullmatch(text) is not None


def _texts(s: list[int], o: list[int], made_up: Bools, terms: list[str]) -> dict[int, str]:
    """The new text of each term of an event that has a random label, by code.

    Labels are numbered in order of first appearance.
    """
    in_order = dict.fromkeys(code for row in zip(s, o, strict=True) for code in row)
    written: set[str] = set()
    for code in in_order:
        if terms[code][:2] in ("_:", "<<"):
            written.update(_blank_nodes(terms[code]))
    names = _names(written)
    return {c: with_blank_nodes(terms[c], names) for c in in_order if made_up[c]}


def _blank_nodes(text: str) -> list[str]:
    """The blank nodes in a term."""
    found: list[str] = []

    def add(blank: str) -> str:
        found.append(blank)
        return blank

    with_blank_nodes(text, add)
    return found


def _names(written: set[str]) -> Callable[[str], str]:
    """Gives each random label the next free one; other labels stay."""
    names: dict[str, str] = {}
    free = (label for i in count() if (label := f"_:anon{i}") not in written)

    def name(blank: str) -> str:
        if _MADE_UP.fullmatch(blank) is None:
            return blank
        if blank not in names:
            names[blank] = next(free)
        return names[blank]

    return name


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
        terms = list(self._terms)
        if self._made_up_labels:
            s, o = relabel(start, s, o, terms)
        k, names = self._counter.assign(time), EventNames.of(self._graph)
        return EventBatch(self._stream, time, k, names, start, s, p, o, ListedTerms(terms))

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
