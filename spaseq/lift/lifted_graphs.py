"""The graphs of lifted rows: an event batch with lazy triples.

Basic graph patterns need no triples: they are evaluated on the lanes of the template's triples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any, TypeVar

import numpy as np

from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.lang import ast
from spaseq.lift.lane_terms import LaneTerms, SharedTexts
from spaseq.lift.lanes import Lane
from spaseq.rdf.columns.event_batch import EventBatch, EventNames, GraphNames
from spaseq.rdf.columns.solution_batch import repeated_rows
from spaseq.rdf.columns.term_tables import ListedTerms

MOST_WAYS = 16
"""A pattern with more ways is evaluated on triples."""


@dataclass(frozen=True, slots=True)
class Way:
    """One choice of triples of the template, by number, for the triple patterns of a pattern.

    `columns` has the term of the template that binds each variable; `equal` are terms that must be
    the same in a row, the first of them a variable of the lift.
    """

    triples: tuple[int, ...]
    columns: Mapping[str, PatternTerm]
    equal: tuple[tuple[ast.Var, PatternTerm], ...]


def unified(triples: Sequence[TriplePattern], template: Sequence[Triple]) -> list[Way] | None:
    """The ways of a basic graph pattern; None if there are too many.

    >>> from spaseq.lang.ast import Var
    >>> template = [(Var("e"), "<http://e/speed>", Var("v")), (Var("e"), "<http://e/unit>", '"km"')]
    >>> pattern = TriplePattern(Var("x"), "<http://e/speed>", Var("speed"))
    >>> unified([pattern], template)[0].columns
    {'x': Var(name='e'), 'speed': Var(name='v')}
    """
    choices = [
        [number for number, made in enumerate(template) if _may_match(triple, made)]
        for triple in triples
    ]
    if prod(map(len, choices)) > MOST_WAYS:
        return None
    ways = (_way(triples, template, chosen) for chosen in product(*choices))
    return [way for way in ways if way is not None]


def _may_match(triple: TriplePattern, other: Triple) -> bool:
    return all(
        isinstance(term, ast.Var) or isinstance(made, ast.Var) or term == made
        for term, made in zip(triple.terms, other, strict=True)
    )


def _way(
    triples: Sequence[TriplePattern], template: Sequence[Triple], chosen: tuple[int, ...]
) -> Way | None:
    """The way of one choice; None if no row can have a solution."""
    columns: dict[str, PatternTerm] = {}
    equal: dict[tuple[ast.Var, PatternTerm], None] = {}
    for triple, number in zip(triples, chosen, strict=True):
        for term, made in zip(triple.terms, template[number], strict=True):
            other = columns.setdefault(term.name, made) if isinstance(term, ast.Var) else term
            if made == other:
                continue
            if isinstance(made, ast.Var):
                equal[made, other] = None
            elif isinstance(other, ast.Var):
                equal[other, made] = None
            else:
                return None
    return Way(tuple(sorted({*chosen})), columns, tuple(equal))


def way_rows(way: Way, events: LiftedEvents) -> Int64s:
    """The events with a solution, ascending."""
    mask = events.graphs.remembered((way.triples, way.equal), lambda: _mask(way, events.graphs))
    if mask is None:
        return np.arange(len(events), dtype=np.int64)
    return np.flatnonzero(mask if events.rows is None else mask[events.rows])


def _mask(way: Way, graphs: LiftedGraphs) -> Bools | None:
    """The rows with a solution; None if all have one."""
    mask = graphs.rows_of(way.triples)
    for equal in _equal_rows(way, graphs):
        if equal is not None:
            mask = equal if mask is None else mask & equal
    return mask


def _equal_rows(way: Way, graphs: LiftedGraphs) -> Iterator[Bools | None]:
    for one, other in way.equal:
        if isinstance(other, str):
            yield graphs.rows_with(one, other)
        else:
            yield graphs.codes(one) == graphs.codes(other)


T = TypeVar("T")

Triple = tuple[PatternTerm, PatternTerm, PatternTerm]
"""A triple of a template: constants and variables."""


class LiftedGraphs:
    """n graphs that one template makes of the lanes of n rows.

    `valid` has, for each triple of the template, the rows that have it [n]; None if all do.
    """

    def __init__(
        self,
        size: int,
        template: Sequence[Triple],
        lanes: Mapping[str, Lane],
        valid: Sequence[Bools | None],
        texts: SharedTexts | None = None,
    ) -> None:
        """`texts` are kept from block to block."""
        self.size, self.template, self.valid = size, tuple(template), tuple(valid)
        terms = [term for triple in template for term in triple]
        names = sorted({t.name for t in terms if isinstance(t, ast.Var) and t.name in lanes})
        constants = [t for t in terms if isinstance(t, str)]
        self.terms = LaneTerms(constants, {name: lanes[name] for name in names}, texts)
        self._bound = frozenset(names)
        self._memory: dict[object, Any] = {}

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, computed once per key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: T = self._memory[key]
        return value

    def codes(self, term: PatternTerm) -> Int32s:
        """The codes [n] of a term of the template, -1 where it is unbound."""
        if isinstance(term, str):
            return np.full(self.size, self.terms.code(term), np.int32)
        if term.name not in self._bound:
            return np.full(self.size, -1, np.int32)
        return self.terms.codes(term.name)

    def rows_with(self, term: PatternTerm, text: str) -> Bools | None:
        """The rows [n] in which a term of the template is this one; None if it is in all."""
        if isinstance(term, str):
            return None if term == text else np.zeros(self.size, np.bool_)
        if term.name not in self._bound:
            return np.zeros(self.size, np.bool_)
        return self.terms.rows_with(term.name, text)

    def rows_of(self, triples: Iterable[int]) -> Bools | None:
        """The rows [n] that have all of some triples of the template; None if all do."""
        mask = None
        for number in triples:
            valid = self.valid[number]
            if valid is not None:
                mask = valid if mask is None else mask & valid
        return mask

    def triples(self, rows: Indices | Int64s | None) -> tuple[Int64s, Int32s, Int32s, Int32s]:
        """(start, s, p, o) of the graphs of some rows, None for all; without repetitions."""
        size, at = (self.size, slice(None)) if rows is None else (len(rows), rows)
        masks = [None if mask is None else mask[at] for mask in self.valid]
        codes = partial(self._codes_of, at)
        return event_triples(self.template, codes, masks, np.arange(size), size)

    def _codes_of(self, at: Any, term: PatternTerm) -> Int32s:
        codes: Int32s = self.codes(term)[at]
        return codes


def event_triples(
    template: Sequence[Triple],
    codes: Callable[[PatternTerm], Int32s],
    masks: Sequence[Bools | None],
    owner: Int64s,
    events: int,
) -> tuple[Int64s, Int32s, Int32s, Int32s]:
    """(start [events + 1], s, p, o) of the triples of events, without repetitions.

    `owner` [m] is the event of each solution, ascending but for -1, which is none. `codes` gives
    the codes [m] of a term, `masks` the solutions [m] that have a triple (None: all).
    """
    if not template:
        none = np.empty(0, np.int32)
        return np.zeros(events + 1, np.int64), none, none, none
    size = len(template)
    columns = [np.array([codes(t[i]) for t in template]).T.ravel() for i in range(3)]
    owners, valid = np.repeat(owner, size), owner >= 0
    if not valid.all() or any(mask is not None for mask in masks):
        kept = np.array([valid if mask is None else valid & mask for mask in masks]).T.ravel()
        owners, *columns = (column[kept] for column in (owners, *columns))
    start = np.zeros(events + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=events), out=start[1:])
    predicates = {triple[1] for triple in template if isinstance(triple[1], str)}
    if len(predicates) < size or (owner[1:] == owner[:-1]).any():
        twice = repeated_rows(start, *columns)
        if len(twice):
            columns = [np.delete(column, twice) for column in columns]
            start = start - np.searchsorted(twice, start)
    s, p, o = columns
    return start, s, p, o


def united(batches: Sequence[EventBatch]) -> EventBatch:
    """The events of several batches as one batch."""
    codes: dict[str, int] = {}
    coded = [
        np.array([codes.setdefault(t, len(codes)) for t in b.terms], np.int32) for b in batches
    ]
    s, p, o = (
        np.concatenate([code[getattr(b, name)] for b, code in zip(batches, coded, strict=True)])
        for name in "spo"
    )
    sizes = np.concatenate([np.diff(b.start) for b in batches])
    return EventBatch(
        batches[0].stream,
        np.concatenate([b.time for b in batches]),
        np.concatenate([b.k for b in batches]),
        EventNames.concat([b.graph.read(np.arange(len(b))) for b in batches]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        s,
        p,
        o,
        ListedTerms([*codes]),
        filtered=sum(b.filtered for b in batches),
    )


class LiftedEvents(EventBatch):
    """Events with graphs of lifted rows; `rows` are their places there, None for all in order.

    `triples` counts also those whose predicates no query reads; None if these do not count.
    """

    graphs: LiftedGraphs
    rows: Int64s | None
    _given: int | None

    def __init__(
        self,
        place: tuple[str, Int64s, Int32s, GraphNames],
        graphs: LiftedGraphs,
        rows: Int64s | None = None,
        triples: int | None = None,
        filtered: int = 0,
    ) -> None:
        """`place` is (stream, times, ks, names) as in `EventBatch`."""
        stream, time, k, graph = place
        fields = {"stream": stream, "time": time, "k": k, "graph": graph, "terms": graphs.terms}
        counts = {"_given": triples, "filtered": filtered, "skipped_groups": 0}
        replaced = {"graphs": graphs, "rows": rows, **counts}
        for name, value in {**fields, **replaced}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _columns(self) -> tuple[Int64s, Int32s, Int32s, Int32s]:
        return self.graphs.triples(self.rows)

    @property
    def start(self) -> Int64s:
        return self._columns[0]

    @property
    def s(self) -> Int32s:
        return self._columns[1]

    @property
    def p(self) -> Int32s:
        return self._columns[2]

    @property
    def o(self) -> Int32s:
        return self._columns[3]

    @property
    def skipped(self) -> int:
        return self.triples - len(self.s)

    @property
    def triples(self) -> int:
        return len(self.s) if self._given is None else self._given

    def part(self, first: int, end: int) -> EventBatch:
        if end - first == len(self):
            return self
        return self._picked(np.arange(first, end), self.graph[first:end], not first)

    def take(self, events: Indices | Int64s) -> EventBatch:
        return self._picked(events, self.graph.take(events), False)

    def with_k(self, k: Int32s) -> EventBatch:
        head = self.stream, self.time, k, self.graph
        return LiftedEvents(head, self.graphs, self.rows, self._given, self.filtered)

    def _picked(self, events: Indices | Int64s, names: GraphNames, first: bool) -> LiftedEvents:
        rows = events if self.rows is None else self.rows[events]
        head = self.stream, self.time[events], self.k[events], names
        counts = (None, self.filtered if first else 0)
        return LiftedEvents(head, self.graphs, rows, *counts)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.time, self.k, self.graph, self.start, self.s, self.p, self.o, self.terms)
        return EventBatch, (self.stream, *columns, self.skipped, self.filtered)
