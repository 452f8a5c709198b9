"""Vertical partitions of an event batch: its triples by predicate, in order of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.gpm.graphs.triple_source import TripleTable
from spaseq.gpm.solutions.lazy_columns import LazyColumn
from spaseq.gpm.solutions.lexicon import Lexicon
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import term_table

T = TypeVar("T")

PatternRows: TypeAlias = "tuple[Int64s, Int32s | Sequence[LazyColumn] | list[Int32s]]"
"""The event [n] of each solution of a basic graph pattern, and the column [n] of each variable."""

_EVENT_BYTES, _VALUE_BYTES = 8, 4

MOST_BYTES = 256 * 2**20
"""The most bytes of solutions that are remembered for a batch."""


class VerticalPartition:
    """An event batch as a triple source with a table per predicate, shared by all GPMs of a stream.

    Tables are built on first use. An event's graph is a set: a repeated triple counts once. Queries
    that are evaluated together share it, too; `MOST_BYTES` bound the solutions that it remembers.
    `readers` says how many they are.
    """

    of_events = True

    def __init__(self, batch: EventBatch, lexicon: Lexicon | None = None, readers: int = 1) -> None:
        self.batch, self.readers = batch, readers
        self.lexicon = lexicon or Lexicon(term_table(batch.terms))
        self._tables: dict[str | None, TripleTable] = {}
        self._memory: dict[object, Any] = {}
        self._room = MOST_BYTES

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, computed once per key."""
        if key not in self._memory:
            self._memory[key] = make()
        found: T = self._memory[key]
        return found

    def solutions(self, key: object, make: Callable[[], PatternRows]) -> PatternRows:
        """The solutions that `make` gives, computed once per key while there is room."""
        found: PatternRows | None = self._memory.get(key)
        if found is None:
            event, rows = found = make()
            self._room -= len(event) * (_EVENT_BYTES + _VALUE_BYTES * len(rows))
            if self._room >= 0:
                self._memory[key] = found
        return found

    def part(self, events: Int64s) -> VerticalPartition:
        """Some of the events as a source with the same lexicon; they are numbered from 0."""
        return VerticalPartition(self.batch.take(events), self.lexicon)

    def marked(self, marks: Iterable[tuple[str, str]]) -> Int64s:
        """The events that have the rarest of some marks, pairs of a predicate and an object.

        The predicate's triples are sorted by object once, for all queries.
        """
        return min(map(self._with_mark, marks), key=len)

    def _with_mark(self, mark: tuple[str, str]) -> Int64s:
        return self.remembered(("mark", mark), lambda: self._having(*mark))

    def _having(self, predicate: str, text: str) -> Int64s:
        """The events that have a triple with a predicate and an object."""
        code = self.lexicon.code(text)
        if code < 0:
            return np.empty(0, np.int64)
        objects, events = self.by_object(predicate)
        first, end = np.searchsorted(objects, (code, code + 1)).tolist()
        return distinct(events[first:end])

    def by_object(self, predicate: str) -> tuple[Int32s, Int64s]:
        """The objects and events of a predicate's triples, by object and then by event."""
        return self.remembered(("objects", predicate), lambda: self._by_object(predicate))

    def _by_object(self, predicate: str) -> tuple[Int32s, Int64s]:
        table = self.select(predicate, None, None)
        assert table.event is not None
        order = np.argsort(table.o, kind="stable")
        return table.o[order], table.event[order]

    def marked_part(self, events: Int64s) -> VerticalPartition:
        """`part`, made once for all queries that need the same events."""
        return self.remembered(("part", events.tobytes()), lambda: self.part(events))

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

    def _table(self, predicate: str | None) -> TripleTable:
        batch = self.batch
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
    order = np.lexsort(keys)
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    for column in keys:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return table.take(order[new])
