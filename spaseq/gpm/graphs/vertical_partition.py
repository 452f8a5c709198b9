"""Vertical partitions of an event batch: its triples by predicate, in order of events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from spaseq import thresholds
from spaseq.algebra.triple_terms import PARTS
from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.gpm.graphs.term_parts import parts_of_events, with_parts
from spaseq.gpm.graphs.triple_source import TripleTable
from spaseq.gpm.solutions.lazy_columns import LazyColumn
from spaseq.gpm.solutions.lexicon import Lexicon
from spaseq.rdf.columns.distinct_rows import row_order
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_tables import term_table

T = TypeVar("T")

PatternRows: TypeAlias = "tuple[Int64s, Int32s | Sequence[LazyColumn] | list[Int32s]]"
"""The event [n] of each solution of a basic graph pattern, and the column [n] of each variable."""

_EVENT_BYTES, _VALUE_BYTES = 8, 4


class VerticalPartition:
    """An event batch as a triple source with a table per predicate, shared by all GPMs of a stream.

    Tables are built on first use. An event's graph is a set: a repeated triple counts once. Queries
    that are evaluated together share it, too. The bytes of the solutions that it remembers are
    bounded.
    """

    of_events = True

    def __init__(self, batch: EventBatch, lexicon: Lexicon | None = None) -> None:
        self.batch = batch
        self.lexicon = Lexicon(term_table(batch.terms)) if lexicon is None else lexicon
        self._tables: dict[str | None, TripleTable] = {}
        self._memory: dict[object, Any] = {}
        self._room = thresholds.current.remembered_bytes

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, computed once per key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: T = self._memory[key]
        return value

    def solutions(self, key: object, make: Callable[[], PatternRows]) -> PatternRows:
        """The solutions that `make` gives, computed once per key while there is room."""
        solutions: PatternRows | None = self._memory.get(key)
        if solutions is None:
            event, rows = solutions = make()
            self._room -= len(event) * (_EVENT_BYTES + _VALUE_BYTES * len(rows))
            if self._room >= 0:
                self._memory[key] = solutions
        return solutions

    def part(self, events: Int64s) -> VerticalPartition:
        """Some of the events as a source with the same lexicon; they are numbered from 0."""
        return VerticalPartition(self.batch.take(events), self.lexicon)

    @cached_property
    def event_of(self) -> Int64s:
        """The event [m] of each triple."""
        return np.repeat(np.arange(len(self.batch), dtype=np.int64), np.diff(self.batch.start))

    def select(self, predicate: str | None, s: int | None, o: int | None) -> TripleTable:
        """The triples with a predicate, subject and object; see `TripleSource`."""
        table = self._tables.get(predicate)
        if table is None:
            table = self._tables[predicate] = self._table(predicate)
        mask = None if s is None else table.s == s
        if o is not None:
            mask = table.o == o if mask is None else mask & (table.o == o)
        return table if mask is None else table.take(np.flatnonzero(mask))

    def with_parts(self, predicates: tuple[str, ...] | None) -> EventBatch:
        """The events with the parts of the triple terms that are objects of some predicates.

        The predicates are all if None. The batch's codes are codes of the lexicon.
        """
        made = lambda: with_parts(self.batch, self.lexicon, self._parts(predicates))  # noqa: E731
        return self.remembered(("parts", predicates), made)

    def _parts(self, predicates: tuple[str, ...] | None) -> TripleTable:
        batch = self.batch
        if predicates is None:
            return parts_of_events(self.lexicon, self.event_of, batch.o)
        rows = np.flatnonzero(np.isin(batch.p, self.lexicon.find(predicates)))
        return parts_of_events(self.lexicon, self.event_of[rows], batch.o[rows])

    def _table(self, predicate: str | None) -> TripleTable:
        batch = self.batch
        if predicate in PARTS:
            parts = self.remembered("parts", lambda: self._parts(None))
            assert parts.p is not None
            of_predicate = parts.take(np.flatnonzero(parts.p == self.lexicon.code(predicate)))
            return TripleTable(of_predicate.event, of_predicate.s, None, of_predicate.o)
        if predicate is None:
            return _distinct(self.event_of, batch.s, batch.p, batch.o)
        rows: Indices = np.flatnonzero(batch.p == self.lexicon.code(predicate))
        return _distinct(self.event_of[rows], batch.s[rows], None, batch.o[rows])


def _distinct(event: Int64s, s: Int32s, p: Int32s | None, o: Int32s) -> TripleTable:
    """The triples, distinct per event."""
    table = TripleTable(event, s, p, o)
    if not len(event) or bool((event[1:] > event[:-1]).all()):
        return table
    keys = (o, s, event) if p is None else (o, p, s, event)
    order = row_order(keys[::-1])
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    for column in keys:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return table.take(order[new])
