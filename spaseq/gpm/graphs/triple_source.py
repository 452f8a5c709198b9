"""Triple patterns over a graph or over the graphs of a batch of events: what a source of triples
gives, and the source that is active for a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.gpm.solutions.lazy_columns import Lexicon, translated
from spaseq.gpm.solutions.solutions import Solutions, none
from spaseq.lang import ast
from spaseq.records import record

T = TypeVar("T")


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
    more such solutions, which the search of a path uses, too. `keeps` says that the solutions will
    be kept for all batches.
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
        """The active graph of a pattern of which all solutions are needed."""
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
    """Solutions over a graph, without most of those that are compatible with no given solution."""
    if active.of_events:
        return solutions
    for given in active.known:
        for v in given.columns.keys() & solutions.columns.keys():
            if not given.may_be_unbound(v) and not solutions.may_be_unbound(v):
                codes = translated(given.columns[v], given.lexicon, solutions.lexicon, add=False)
                solutions = solutions.take(np.isin(solutions.columns[v], np.unique(codes)))
    return solutions
