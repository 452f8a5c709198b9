"""Vertical partitions of an event batch: its triples by predicate, in order of events. An index of
needed triples finds the events that may have solutions of many patterns. A window event is the
union graph of its events.

One pass over the triples of a batch serves all patterns. A pattern is then evaluated on the events
that have the rarest of its needed triples, if these are few, and on none if there is no such event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.constants import PARTS
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.gpm.graphs.triple_source import TripleTable, parts_of_events, with_parts
from spaseq.gpm.solutions.lazy_columns import LazyColumn, Lexicon
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import row_order
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ListedTerms, term_table
from spaseq.records import record

T = TypeVar("T")

PatternRows: TypeAlias = "tuple[Int64s, Int32s | Sequence[LazyColumn] | list[Int32s]]"
"""The event [n] of each solution of a basic graph pattern, and the column [n] of each variable."""

_EVENT_BYTES, _VALUE_BYTES = 8, 4

ANY = -1
"""The number of any object."""

_NONE = np.empty(0, np.int64)


def _free(value: object) -> int:
    return 0


def _size_of_rows(rows: PatternRows) -> int:
    event, columns = rows
    return len(event) * (_EVENT_BYTES + _VALUE_BYTES * len(columns))


class VerticalPartition:
    """An event batch as a triple source with a table per predicate, shared by all GPMs of a stream.

    Tables are built on first use. An event's graph is a set: a repeated triple counts once. Queries
    that are evaluated together share it, too. The cache of solutions has limited bytes.
    """

    of_events = True

    def __init__(self, batch: EventBatch, lexicon: Lexicon | None = None) -> None:
        self.batch = batch
        self.lexicon = Lexicon(term_table(batch.terms)) if lexicon is None else lexicon
        self._tables: dict[str | None, TripleTable] = {}
        self._memory: dict[object, Any] = {}
        self._room = thresholds.current.remembered_bytes

    def remembered(self, key: object, make: Callable[[], T], size: Callable[[T], int] = _free) -> T:
        """The result of `make`, computed once per key while there is room for its bytes."""
        if key in self._memory:
            known: T = self._memory[key]
            return known
        made = make()
        taken = size(made)
        self._room -= taken
        if not taken or self._room >= 0:
            self._memory[key] = made
        return made

    def solutions(self, key: object, make: Callable[[], PatternRows]) -> PatternRows:
        """The solutions of `make`, computed once per key while there is room."""
        return self.remembered(key, make, _size_of_rows)

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


class SomeEvents:
    """Some events of a batch, by the events' `numbers` there; None for all events."""

    def __init__(self, batch: VerticalPartition, numbers: Int64s | None = None) -> None:
        self._batch, self.numbers = batch, numbers

    @cached_property
    def index(self) -> VerticalPartition:
        """The graphs of these events."""
        return self._batch if self.numbers is None else self._batch.part(self.numbers)

    def in_batch(self, events: Int64s) -> Int64s:
        """The numbers in the batch of some of these events."""
        return events if self.numbers is None else self.numbers[events]


class NeededTriples:
    """The triples that some patterns need, for many batches.

    A *mark* is a predicate with an object, or with any.
    """

    def __init__(self, needs: Sequence[Int64s]) -> None:
        """
        Args:
            needs: by pattern [alternatives, triples, 2], the predicate and the object of each
                triple that an event needs, as numbers of texts; the object may be `ANY`. An event
                may be in a solution if it has the triples of one of the alternatives.
        """
        self.patterns = len(needs)
        sizes = [len(each) if each.shape[1] else 0 for each in needs]
        pairs = [each.reshape(-1, 2) for each in needs]
        self._marks, mark = np.unique(
            np.concatenate([np.empty((0, 2), np.int64), *pairs]), axis=0, return_inverse=True
        )
        self._mark: Indices = mark.reshape(-1)
        lengths = np.repeat([each.shape[1] for each in needs], sizes)
        self._start = np.cumsum(lengths) - lengths  # [alternatives], the start of its marks
        self._pattern = np.repeat(np.arange(self.patterns), sizes)
        self._is_open = np.array(sizes, np.int64) == 0  # each event may be in a solution

    def possible(self, index: VerticalPartition, codes: Callable[[], Int32s]) -> PossibleEvents:
        """The events of a batch that each pattern may match.

        `codes` gives the code of each text in the batch, -1 if it is not there.
        """
        if type(index.batch) is not EventBatch:  # no pattern may read the triples of lifted events
            every = np.ones(self.patterns, np.bool_)
            return PossibleEvents(index, every, every)
        mark, event = self._marked(index, codes())
        counts = np.bincount(mark, minlength=len(self._marks))
        pattern, rarest = self._rarest(counts)
        totals = np.bincount(pattern, counts[rarest], self.patterns).astype(np.int64)
        few, size = thresholds.current.few_possible, len(index.batch)
        has_some, is_whole = self._is_open | (totals > 0), self._is_open.copy()
        matched = np.flatnonzero(totals)
        are_many = [few * total > size for total in totals[matched].tolist()]
        is_whole[matched] |= np.array(are_many, np.bool_)
        used = np.zeros(len(counts), np.bool_)
        used[rarest[~is_whole[pattern]]] = True
        kept = used[mark]
        mark, event = mark[kept], event[kept]
        order = np.argsort(mark, kind="stable")
        begin = np.searchsorted(mark[order], np.arange(len(counts) + 1))
        first = np.searchsorted(pattern, np.arange(self.patterns + 1))
        return PossibleEvents(index, has_some, is_whole, first, rarest, begin, event[order])

    def _rarest(self, counts: Int64s) -> tuple[Indices, Indices]:
        """(pattern, mark) of the rarest mark of each alternative, distinct, in order."""
        if not len(self._start):
            return self._pattern, self._pattern
        size = len(self._mark)
        best = np.minimum.reduceat(counts[self._mark] * size + np.arange(size), self._start)
        pairs = np.unique(self._pattern * len(counts) + self._mark[best % size])
        return pairs // len(counts), pairs % len(counts)

    def _marked(self, index: VerticalPartition, codes: Int32s) -> tuple[Indices, Int64s]:
        """(mark, event) of each triple that has a mark."""
        batch, terms = index.batch, len(index.lexicon)
        predicate, target = np.append(codes, ANY).astype(np.int64)[self._marks].T
        known = np.flatnonzero((predicate >= 0) & (target >= ANY))
        keys = predicate[known] * (terms + 1) + target[known] + 1
        order = np.argsort(keys)
        keys, known = keys[order], known[order]
        if not len(known):
            return known, known
        marks, events = [], []
        for object_place in (batch.o + 1, 0):
            probe = batch.p.astype(np.int64) * (terms + 1) + object_place
            key_place = np.minimum(np.searchsorted(keys, probe), len(keys) - 1)
            rows = np.flatnonzero(keys[key_place] == probe)
            marks.append(known[key_place[rows]])
            events.append(index.event_of[rows])
        return np.concatenate(marks), np.concatenate(events)


class PossibleEvents:
    """The events of one batch that each of some patterns may match.

    `has_some` [patterns] says whether there are any.
    """

    def __init__(
        self,
        index: VerticalPartition,
        has_some: Bools,
        is_whole: Bools,
        first: Indices = _NONE,
        rarest: Indices = _NONE,
        begin: Indices = _NONE,
        event: Int64s = _NONE,
    ) -> None:
        """
        Args:
            index: the graphs of the batch.
            has_some: as in the class.
            is_whole: [patterns], whether to evaluate a pattern on all events.
            first: [patterns + 1], the start of the marks of each pattern.
            rarest: the marks of all patterns.
            begin: [marks + 1], the start of the events of each mark.
            event: the events of all marks.
        """
        self.has_some = has_some
        self._index, self._is_whole, self._first = index, is_whole, first
        self._rarest, self._begin, self._event = rarest, begin, event
        self._known: dict[bytes, SomeEvents | None] = {}

    def of(self, pattern: int) -> SomeEvents | None:
        """The events that a pattern may match; None if there are none."""
        if self._is_whole[pattern]:
            return SomeEvents(self._index)
        marks = self._rarest[self._first[pattern] : self._first[pattern + 1]]
        key = marks.tobytes()
        if key not in self._known:
            self._known[key] = self._with(marks)
        return self._known[key]

    def _with(self, marks: Indices) -> SomeEvents | None:
        """The events that have some of the marks."""
        ends = zip(self._begin[marks].tolist(), self._begin[marks + 1].tolist(), strict=True)
        events = np.concatenate([self._event[begin:end] for begin, end in ends])
        if not len(events):
            return None
        numbers = distinct(events).astype(np.int64)
        return SomeEvents(self._index, numbers)


class ScopedTerms(ListedTerms):
    """Terms whose blank nodes already have their labels of answers."""

    @property
    def has_blank(self) -> bool:
        return False


@record
class WindowContent:
    """The events in some windows, in the order of their streams (docs/windows.md).

    `stream` int32 [n] has the number of each event's stream in `names`.
    """

    source: VerticalPartition
    stream: Int32s
    names: Sequence[str]


class WindowPartition(VerticalPartition):
    """A batch of window events.

    The event `member[i]` of `content` is in the window event `owner[i]`; owners ascend, and so do
    the members of one owner.
    """

    def __init__(
        self,
        batch: EventBatch,
        lexicon: Lexicon,
        content: WindowContent,
        owner: Int64s,
        member: Int64s,
    ) -> None:
        super().__init__(batch, lexicon)
        self.content, self.owner, self.member = content, owner, member

    def part(self, events: Int64s) -> WindowPartition:
        """Some of the window events, numbered from 0."""
        first = np.searchsorted(self.owner, events)
        sizes = np.searchsorted(self.owner, events, "right") - first
        rows = ranges(first, sizes)
        owner = np.repeat(np.arange(len(events), dtype=np.int64), sizes)
        batch = self.batch.take(events)
        return WindowPartition(batch, self.lexicon, self.content, owner, self.member[rows])


class SolutionsPartition(VerticalPartition):
    """Solutions of a pattern as events without triples, one event per solution."""

    def __init__(
        self, batch: EventBatch, lexicon: Lexicon, pattern: n.Pattern, solutions: Solutions
    ) -> None:
        super().__init__(batch, lexicon)
        self.pattern, self.given = pattern, solutions

    def part(self, events: Int64s) -> SolutionsPartition:
        """Some of the solutions, numbered from 0."""
        some = self.given.take(events)
        numbered = Solutions(some.size, np.arange(some.size), some.columns, some.lexicon)
        return SolutionsPartition(self.batch.take(events), self.lexicon, self.pattern, numbered)


def ranges(first: Indices, sizes: Indices) -> Indices:
    """The numbers from `first[i]` on, `sizes[i]` of them, for each i.

    >>> ranges(np.array([5, 2]), np.array([2, 3])).tolist()
    [5, 6, 2, 3, 4]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first - ends + sizes, sizes)
