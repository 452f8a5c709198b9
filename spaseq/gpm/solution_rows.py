"""The solutions for stage 2: distinct ones, without unused variables, as rows with the terms and
numbers that stage 2 reads.

The variable EVENT has the triples of its event as one literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

import numpy as np

from spaseq.algebra.translate import EVENT
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.expr.doubles import doubles_of
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.kernels.keyed_ranges import some_repeats
from spaseq.gpm.solutions.solutions import known_terms, only, taken, with_columns
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch, first_rows
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    NumberColumn,
    RowSelection,
    TermColumn,
    TextArray,
    distinct,
)
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.kernels.texts import compacted
from spaseq.rdf.terms.term import (
    XSD_STRING,
    Triple,
    literal_text,
    numbered_term,
    scoped_term,
    split_literal,
)
from spaseq.rdf.terms.triple_terms import blank_nodes

_UNDERSCORE, _LESS = b"_<"


def with_events(
    solutions: EventSolutions, index: VerticalPartition, predicates: Sequence[str] | None = None
) -> EventSolutions:
    """The solutions with the variable EVENT: the triples of their event as one literal.

    Blank nodes in it have their labels of answers. Only triples with some `predicates` (N-Triples
    texts) are in it, unless it is None.
    """
    events = distinct(solutions.event)
    texts = [*_event_texts(index.batch.take(events), predicates)]
    codes = index.lexicon.encode(texts)[np.searchsorted(events, solutions.event)]
    return EventSolutions(solutions.event, {**solutions.columns, EVENT: codes}, solutions.terms)


def _event_texts(batch: EventBatch, predicates: Sequence[str] | None) -> Iterator[str]:
    """The triples of each event, only those with some predicates if these are given."""
    table = term_table(batch.terms)
    kept = None if predicates is None else np.isin(batch.p, table.find(predicates)).tolist()
    rows = [*zip(*map(table.take, (batch.s, batch.p, batch.o)), strict=True)]
    starts, times, ks = batch.start.tolist(), batch.time.tolist(), batch.k.tolist()
    for first, end, time, k in zip(starts, starts[1:], times, ks, strict=False):
        triples = rows[first:end] if kept is None else compress(rows[first:end], kept[first:end])
        yield event_text(batch.stream, time, k, triples, table.has_blank)


def event_text(
    stream: str, time: int, k: int, triples: Iterable[Triple], has_blank: bool = True
) -> str:
    """The value of EVENT for an event; `has_blank` says whether it may have blank nodes."""
    terms = (term for triple in triples for term in triple)
    if has_blank:
        terms = (scoped_term(stream, time, k, term) for term in terms)
    return literal_text("\n".join(terms), XSD_STRING)  # no canonical term has a line break


def renamed_in_event(stream: str, time: int, k: int, event: str) -> str:
    """A value of EVENT from before k was known; see `numbered_term`."""
    terms = split_literal(event)[0].split("\n")
    return literal_text("\n".join(numbered_term(stream, time, k, t) for t in terms), XSD_STRING)


def event_triples(event: str) -> list[Triple]:
    """The triples of a value of EVENT."""
    lines = split_literal(event)[0].split("\n")
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=False))


def without_private(bindings: EventSolutions, private: frozenset[str]) -> EventSolutions:
    """The solutions without private variables, unless an event has several solutions."""
    if not private or not len(bindings.event):
        return bindings
    columns = only(bindings.columns, [v for v in bindings.columns if v not in private])
    event = bindings.event
    if (event[1:] == event[:-1]).any():
        several = are_several(bindings)
        if several.any():
            given = taken(only(bindings.columns, private), several)
            told = {v: np.full(len(event), UNBOUND, np.int32) for v in given}
            for variable, codes in given.items():
                told[variable][several] = codes
            columns = with_columns(columns, told)
    return EventSolutions(bindings.event, columns, bindings.terms)


def are_several(bindings: EventSolutions) -> Bools:
    """A mask of the rows whose event has several solutions, in a family for one member."""
    event, member = bindings.event, _members(bindings)
    if member is None:
        new = np.ones(len(event) + 1, np.bool_)
        new[1:-1] = event[1:] != event[:-1]
        return ~(new[1:] & new[:-1])
    if not _some_repeat(event, member):
        return np.zeros(len(event), np.bool_)
    members = int(member.max()) + 1
    _, which, counts = np.unique(event * members + member, return_inverse=True, return_counts=True)
    several: Bools = counts[which] > 1
    return several


def _members(bindings: EventSolutions) -> Int32s | None:
    """The number of each solution's member of the family; None without a family."""
    if QUERY not in bindings.columns:
        return None
    members = known_terms(bindings.columns, QUERY)
    return bindings.columns[QUERY] if members is None else members.codes


def _some_repeat(event: Int64s, member: Int32s) -> bool:
    """Whether a member has several solutions on an event; events ascend."""
    return some_repeats(event, member, np.full(int(member.max()) + 1, -1))


def distinct_solutions(bindings: EventSolutions) -> EventSolutions:
    """The distinct solutions, as matches are a set."""
    event = bindings.event
    if len(event) < 2 or (np.diff(event) > 0).all():
        return bindings
    member = _members(bindings)
    # The members of a family have one solution of most events each.
    if member is not None and not _some_repeat(event, member):
        return bindings
    alone = np.ones(len(event) + 1, np.bool_)
    alone[1:-1] = event[1:] != event[:-1]
    kept = alone[1:] & alone[:-1]
    rows = np.flatnonzero(~kept)  # the only ones whose columns are read
    first = first_rows([event[rows], *taken(bindings.columns, rows).values()])
    if len(first) == len(rows):
        return bindings
    kept[rows[first]] = True
    return EventSolutions(event[kept], taken(bindings.columns, kept), bindings.terms)


class SolutionRows:
    """Collects solutions, all in the batch's lexicon, into one SolutionBatch."""

    def __init__(self, plan: QueryPlan, stream: int, index: VerticalPartition) -> None:
        self._plan, self._stream, self._events = plan, stream, index.batch
        self._terms = index.lexicon
        self._parts: list[tuple[int, EventSolutions]] = []
        self._texts: list[tuple[Int32s, TextArray]] = []  # codes, and their texts

    def add(self, gpm: int, bindings: EventSolutions) -> None:
        if len(bindings.event):
            self._parts.append((gpm, bindings))

    def unseen(self) -> Int64s:
        """The events without solutions so far."""
        seen = np.zeros(len(self._events), dtype=bool)
        for _, bindings in self._parts:
            seen[bindings.event] = True
        return np.flatnonzero(~seen)

    def batch(self, without: Sequence[int] = ()) -> SolutionBatch:
        """The rows, in order of events, without the rows of some events."""
        columns, events = self._plan.patterns.columns, self._events
        if without:
            self._parts = [
                (gpm, rows.take(np.flatnonzero(~np.isin(rows.event, without))))
                for gpm, rows in self._parts
            ]
        if not self._parts:
            return SolutionBatch.empty(columns)
        event = np.concatenate([b.event for _, b in self._parts])
        gpm = np.concatenate([np.full(len(b.event), g, np.int32) for g, b in self._parts])
        order: RowSelection = slice(None)
        if len(self._parts) > 1:
            order = np.argsort(event, kind="stable")
            event, gpm = event[order], gpm[order]
        read = {*columns.variables, *columns.numbers}
        known = {v: column for v in read if (column := self._known(v, order)) is not None}
        bound = {v for _, b in self._parts for v in b.columns if v in read and v not in known}
        codes = {v: self._codes(v, order) for v in bound}
        return SolutionBatch(
            np.full(len(event), self._stream, dtype=np.int32),
            events.time[event],
            events.k[event],
            gpm,
            events.names(event),
            {
                v: known[v] if v in known else self._column(codes.get(v), event)
                for v in columns.variables
            },
            {v: self._numbers(known.get(v), codes.get(v), len(event)) for v in columns.numbers},
        )

    def _known(self, variable: str, order: RowSelection) -> TermColumn | None:
        """The terms of a variable, in all rows in order, if they are known without their codes."""
        parts = list[TermColumn]()
        for _, bindings in self._parts:
            terms = known_terms(bindings.columns, variable)
            if variable not in bindings.columns:
                terms = TermColumn.unbound(len(bindings.event))
            if terms is None:
                return None
            parts.append(terms)
        return TermColumn.concat(parts).take(order) if any(map(len, parts)) else None

    def _codes(self, variable: str, order: RowSelection) -> Int32s:
        """The codes of a variable in all rows, in order."""
        parts = [
            b.columns[variable]
            if variable in b.columns
            else np.full(len(b.event), UNBOUND, np.int32)
            for _, b in self._parts
        ]
        codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return np.ascontiguousarray(codes[order])  # as kernels want it

    def _column(self, codes: Int32s | None, event: Int64s) -> TermColumn:
        if codes is None:
            return TermColumn.unbound(len(event))
        column = self._terms.shared(codes)
        if column is None:
            used, places = compacted(codes, len(self._terms))
            column = TermColumn(places, self._strings(used))
        return self._scoped(column, codes, event) if self._terms.base.has_blank else column

    def _strings(self, used: Int32s) -> TextArray:
        """The texts of codes; variables of several GPMs that have the same ones share them."""
        for codes, texts in self._texts:
            if np.array_equal(codes, used):
                return texts
        texts = self._terms.strings(used)
        self._texts.append((used, texts))
        return texts

    def _numbers(self, known: TermColumn | None, codes: Int32s | None, size: int) -> NumberColumn:
        if known is not None:
            numbers = known.numbers
            if numbers is not None:
                return numbers
            return doubles_of(known.codes, known.terms.to_pylist())
        return NumberColumn.unknown(size) if codes is None else doubles_of(codes, self._terms)

    def _scoped(self, column: TermColumn, codes: Int32s, event: Int64s) -> TermColumn:
        """The column with the answer labels of the events' blank nodes."""
        blank = may_be_blank(column.terms)
        if not blank.any():
            return column
        rows = np.flatnonzero(codes >= 0)
        rows = rows[blank[column.codes[rows]]]
        if not len(rows):
            return column
        texts, events = column.objects(), self._events
        made = (codes[rows] >= len(events.terms)).tolist()
        for row, e, is_made in zip(rows.tolist(), event[rows].tolist(), made, strict=True):
            time, k = int(events.time[e]), int(events.k[e])
            labels = self._blank_nodes(e) if is_made else None
            texts[row] = scoped_term(events.stream, time, k, texts[row], labels)
        return TermColumn.of(texts.tolist())

    def _blank_nodes(self, event: int) -> set[str]:
        """The blank nodes of an event, also inside its triple terms."""
        first, end = self._events.start[event : event + 2].tolist()
        codes = np.concatenate([self._events.s[first:end], self._events.o[first:end]])
        return {node for text in self._terms.take(codes) for node in blank_nodes(text)}


def may_be_blank(terms: TextArray) -> Bools:
    """A mask of the terms that are blank nodes or triple terms: they begin with `_` or `<<`."""
    if not len(terms):
        return np.zeros(0, np.bool_)
    _, offsets, data = terms.buffers()
    at = np.frombuffer(offsets, np.int64)[terms.offset : terms.offset + len(terms)]
    texts = np.frombuffer(data, np.uint8)
    first = texts[at]
    may_be: Bools = (first == _UNDERSCORE) | ((first == _LESS) & (texts[at + 1] == _LESS))
    return may_be
