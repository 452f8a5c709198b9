"""Triple patterns over a graph or over the graphs of a batch of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.gpm.solutions.lexicon import Lexicon
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
