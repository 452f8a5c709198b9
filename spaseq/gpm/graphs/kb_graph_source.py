"""A named graph of the knowledge base as a source of triples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from spaseq.algebra.constants import PARTS
from spaseq.algebra.nodes import TriplePattern
from spaseq.compiled.arrays import Int32s
from spaseq.gpm.graphs.term_parts import parts_of_graph
from spaseq.gpm.graphs.triple_source import TripleTable, triple_solutions
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.kb.knowledge import KbGraph, KbRelation

T = TypeVar("T")

_NO_CODES = np.empty(0, np.int32)


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
