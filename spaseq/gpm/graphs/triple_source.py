"""Triple patterns over a graph, or over the graphs of a batch of events.

A `TripleSource` gives triples; a named graph of the knowledge base is one. `ActiveGraph` is the
source that is active for a pattern. The parts of the triple terms of graphs are triples, too; see
`spaseq.algebra.constants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from spaseq.algebra.constants import PARTS
from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.gpm.solutions.lazy_columns import Lexicon, translated
from spaseq.gpm.solutions.solutions import Solutions, none
from spaseq.kb.knowledge import KbGraph, KbRelation
from spaseq.lang import ast
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_columns import distinct_codes
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.triple_terms import is_triple_term, triple_term_parts
from spaseq.records import record

T = TypeVar("T")

_NO_CODES = np.empty(0, np.int32)


@record
class TripleTable:
    """n triples as columns of codes [n], distinct per event.

    `event` is ascending, or None in a graph of the knowledge base. `p` is None if the caller asked
    for one predicate.
    """

    event: Int64s | None
    s: Int32s
    p: Int32s | None
    o: Int32s

    def __len__(self) -> int:
        return len(self.s)

    def take(self, rows: Indices | Bools | slice) -> TripleTable:
        """The triples at the given rows."""
        event = None if self.event is None else self.event[rows]
        return TripleTable(
            event, self.s[rows], None if self.p is None else self.p[rows], self.o[rows]
        )


class TripleSource(Protocol):
    """A graph, or the graphs of a batch of events, with one lexicon."""

    @property
    def lexicon(self) -> Lexicon: ...

    @property
    def of_events(self) -> bool: ...

    def select(self, predicate: str | None, s: int | None, o: int | None) -> TripleTable:
        """The triples with a predicate (text), subject and object (codes); None matches any."""

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, computed once per key and graph."""


def triple_solutions(source: TripleSource, triple: TriplePattern) -> Solutions:
    """The solutions of one triple pattern."""
    predicate = triple.predicate if isinstance(triple.predicate, str) else None
    s, o = _code(source, triple.subject), _code(source, triple.object)
    table = source.select(predicate, s, o)
    columns: dict[str, Int32s] = {}
    same: Bools | None = None
    for term, codes in zip(triple.terms, (table.s, table.p, table.o), strict=True):
        if not isinstance(term, ast.Var) or codes is None:
            continue
        if term.name in columns:
            equal = columns[term.name] == codes
            same = equal if same is None else same & equal
        columns[term.name] = codes
    if not len(table):
        return none(source.lexicon, columns, of_events=source.of_events)
    solutions = Solutions(len(table), table.event, columns, source.lexicon)
    return solutions if same is None else solutions.take(np.flatnonzero(same))


def _code(source: TripleSource, term: PatternTerm) -> int | None:
    return source.lexicon.code(term) if isinstance(term, str) else None


@record
class ActiveGraph:
    """The active graph of SPARQL 1.1 section 18.6, or the active graphs of `events` events.

    `given` are solutions that the pattern's solutions will be joined with, if they are known. A
    request to an endpoint asks only for solutions that are compatible with one of them. `outer` are
    more such solutions, which the search of a path uses, too. With `keeps` the solutions will be
    cached for all batches.
    """

    source: TripleSource
    events: int = 0
    given: Solutions | None = None
    outer: tuple[Solutions, ...] = ()
    keeps: bool = False

    @property
    def known(self) -> tuple[Solutions, ...]:
        """All sequences of solutions that the pattern's solutions will be joined with."""
        return self.outer if self.given is None else (self.given, *self.outer)

    def beside(self, solutions: Solutions) -> ActiveGraph:
        """The active graph of a pattern whose solutions are joined with `solutions`."""
        return replace(self, given=solutions, outer=())

    def within(self, solutions: Solutions) -> ActiveGraph:
        """The active graph of another operand of a join of which `solutions` is a part."""
        return replace(self, given=solutions, outer=self.known)

    def alone(self) -> ActiveGraph:
        """The active graph of a pattern whose solutions are all needed."""
        return replace(self, given=None, outer=())

    def projecting(self, variables: Iterable[str]) -> ActiveGraph:
        """The active graph of a pattern whose other variables are not visible outside."""
        if self.given is None:
            return self
        names = list(variables)
        outer = tuple(solutions.only(names) for solutions in self.outer)
        return replace(self, given=self.given.only(names), outer=outer)

    @property
    def of_events(self) -> bool:
        return self.source.of_events

    def spread(self, solutions: Solutions) -> Solutions:
        """The solutions per event, if the pattern is evaluated over events."""
        return solutions.spread(self.events, self.source.lexicon) if self.of_events else solutions


def reduced(solutions: Solutions, active: ActiveGraph) -> Solutions:
    """Solutions over a graph, mostly without those compatible with no given solution."""
    if active.of_events:
        return solutions
    for given in active.known:
        for v in given.columns.keys() & solutions.columns.keys():
            if not given.may_be_unbound(v) and not solutions.may_be_unbound(v):
                codes = translated(given.columns[v], given.lexicon, solutions.lexicon, add=False)
                solutions = solutions.take(np.isin(solutions.columns[v], np.unique(codes)))
    return solutions


def parts_of_event(triples: Iterable[Triple]) -> dict[str, list[Triple]]:
    """The parts of the triple terms among the objects, by predicate."""
    waiting = [o for _, _, o in triples if is_triple_term(o)]
    known: dict[str, tuple[str, str, str]] = {}
    while waiting:
        text = waiting.pop()
        if text not in known:
            known[text] = terms = triple_term_parts(text)
            if is_triple_term(terms[2]):
                waiting.append(terms[2])
    return {p: [(t, p, terms[i]) for t, terms in known.items()] for i, p in enumerate(PARTS)}


def parts_of_graph(lexicon: Lexicon, objects: Int32s) -> dict[str, TripleTable]:
    """The parts of the triple terms among the objects [m] of a graph, by predicate."""
    terms = _TripleTerms(lexicon, objects)
    code, *parts = (np.array(column, np.int32) for column in (terms.code, *terms.parts))
    return {p: TripleTable(None, code, None, part) for p, part in zip(PARTS, parts, strict=True)}


def parts_of_events(lexicon: Lexicon, event: Int64s, objects: Int32s) -> TripleTable:
    """The parts of the triple terms among the objects [m] of triples, by event.

    `event` [m] is ascending. Each event has the parts of a term once.
    """
    terms = _TripleTerms(lexicon, objects)
    number = terms.number_of(objects)
    event, number = event[number >= 0], number[number >= 0]
    inner = np.array(terms.inner, np.int64)
    pairs = [np.stack([event, number])]
    while pairs[-1].size:
        event, number = pairs[-1]
        below = inner[number] if len(inner) else number
        pairs.append(np.stack([event[below >= 0], below[below >= 0]]))
    event, number = np.concatenate(pairs, axis=1)
    keys = np.unique(event * max(1, len(terms.code)) + number)
    event, number = np.divmod(keys, max(1, len(terms.code)))
    predicates = np.tile(lexicon.encode(PARTS), len(event))
    code, parts = np.array(terms.code, np.int32), np.array(terms.parts, np.int32).reshape(3, -1)
    return TripleTable(
        np.repeat(event, 3), np.repeat(code[number], 3), predicates, parts[:, number].T.ravel()
    )


def with_parts(batch: EventBatch, lexicon: Lexicon, parts: TripleTable) -> EventBatch:
    """The events with more triples, whose codes are of a lexicon that extends the batch's terms."""
    assert parts.event is not None and parts.p is not None
    events = np.arange(len(batch), dtype=np.int64)
    event_of_row = np.repeat(events, np.diff(batch.start))
    order = np.argsort(np.concatenate([event_of_row, parts.event]), kind="stable")
    more = np.searchsorted(parts.event, np.arange(len(batch) + 1))
    s, p, o = (
        np.concatenate([first, second])[order]
        for first, second in ((batch.s, parts.s), (batch.p, parts.p), (batch.o, parts.o))
    )
    columns = batch.stream, batch.time, batch.k, batch.graph
    return EventBatch(*columns, batch.start + more, s, p, o, lexicon)


class _TripleTerms:
    """The triple terms among some terms, and those inside them, without duplicates.

    `code` has their codes, `parts` the codes of their subjects, predicates and objects, and `inner`
    the numbers of their objects among the triple terms, -1 for others.
    """

    def __init__(self, lexicon: Lexicon, objects: Int32s) -> None:
        self._lexicon, self._numbers = lexicon, dict[int, int]()
        self.code: list[int] = []
        self.parts: tuple[list[int], list[int], list[int]] = ([], [], [])
        self.inner: list[int] = []
        codes, _ = distinct_codes(objects, len(lexicon))
        known = codes[codes >= 0].astype(np.int32)
        self._take(known.tolist(), lexicon.take(known))

    def _take(self, codes: list[int], texts: list[str]) -> None:
        """Add the triple terms among some terms, and those inside them."""
        new = [
            (code, triple_term_parts(text))
            for code, text in zip(codes, texts, strict=True)
            if is_triple_term(text) and code not in self._numbers
        ]
        if not new:
            return
        for code, _ in new:
            self._numbers[code] = len(self.code)
            self.code.append(code)
        for column, position in zip(self.parts, range(3), strict=True):
            column += self._lexicon.encode([terms[position] for _, terms in new]).tolist()
        inside = [terms[2] for _, terms in new]
        self._take(self.parts[2][-len(new) :], inside)
        self.inner = [self._numbers.get(code, -1) for code in self.parts[2]]

    def number_of(self, codes: Int32s) -> Int64s:
        """The number [m] of each code among the triple terms, -1 for others."""
        if not self.code:
            return np.full(len(codes), -1, np.int64)
        order = np.argsort(np.array(self.code))
        ordered = np.array(self.code)[order]
        index = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
        return np.where(ordered[index] == codes, order[index], -1)


class GraphSource:
    """A triple source over one graph of the knowledge base. Its triples hold for every event."""

    of_events = False

    def __init__(self, graph: KbGraph, lexicon: Lexicon) -> None:
        self._graph = graph
        self.lexicon = lexicon
        self._solutions: dict[TriplePattern, Solutions] = {}
        self._term_parts: dict[str, TripleTable] | None = None

    def solutions(self, triple: TriplePattern) -> Solutions:
        """The solutions of a triple pattern, which keep their indexes from batch to batch."""
        solutions = self._solutions.get(triple)
        if solutions is None:
            solutions = self._solutions[triple] = triple_solutions(self, triple)
        return solutions

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, computed once per key and graph of the knowledge base."""
        memo = self._graph.memo
        if key not in memo:
            memo[key] = make()
        value: T = memo[key]
        return value

    def select(self, predicate: str | None, s: int | None, o: int | None) -> TripleTable:
        """The triples with a predicate, subject and object; see `TripleSource`."""
        if predicate in PARTS:
            return self._parts(predicate, s, o)
        if predicate is not None:
            relation = self._graph.get(self.lexicon.code(predicate))
            if relation is None:
                return TripleTable(None, _NO_CODES, None, _NO_CODES)
            return TripleTable(None, *_slice(relation, s, o))
        parts = {p: _slice(relation, s, o) for p, relation in self._graph.items()}
        sizes = [len(subjects) for subjects, _, _ in parts.values()]
        predicates = np.repeat(np.array(list(parts), np.int32), sizes)
        subjects, objects = (
            np.concatenate([part[i] for part in parts.values()]) if parts else _NO_CODES
            for i in (0, 2)
        )
        return TripleTable(None, subjects, predicates, objects)

    def _parts(self, predicate: str, s: int | None, o: int | None) -> TripleTable:
        """The triples about the parts of the graph's triple terms with a predicate."""
        if self._term_parts is None:
            objects = [relation.o for relation in self._graph.values()]
            every = np.concatenate([_NO_CODES, *objects])
            self._term_parts = parts_of_graph(self.lexicon, every)
        table = self._term_parts[predicate]
        kept = np.ones(len(table), np.bool_)
        if s is not None:
            kept &= table.s == s
        if o is not None:
            kept &= table.o == o
        return table.take(kept)


def _slice(relation: KbRelation, s: int | None, o: int | None) -> tuple[Int32s, None, Int32s]:
    """(subjects, None, objects) of a relation's triples with a subject and an object."""
    if s is not None:
        low, high = np.searchsorted(relation.s, [s, s + 1])
        subjects, objects = relation.s[low:high], relation.o[low:high]
        if o is None:
            return subjects, None, objects
        low, high = np.searchsorted(objects, [o, o + 1])
        return subjects[low:high], None, objects[low:high]
    if o is None:
        return relation.s, None, relation.o
    ordered = relation.o[relation.by_object]
    low, high = np.searchsorted(ordered, [o, o + 1])
    rows = relation.by_object[low:high]
    return relation.s[rows], None, relation.o[rows]
