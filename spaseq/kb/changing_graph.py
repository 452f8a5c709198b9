"""A graph of the knowledge base whose triples come and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from spaseq.algebra.graph_changes import GraphChange, fits, is_wildcard, looks_inside
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.kb.knowledge import KbGraph, KbRelation
from spaseq.rdf.columns.term_tables import ABSENT, ExtendedTerms
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.triple_terms import is_triple_term

_BITS = 32
_LOW = 2**_BITS - 1


class ChangingGraph:
    """The triples of a graph now, by predicate.

    A triple is a number, its subject's code before its object's. The codes are those of `terms`,
    to which the terms of new triples are added.
    """

    def __init__(self, terms: ExtendedTerms, graph: Mapping[int, KbRelation]) -> None:
        self._terms = terms
        self._keys: dict[int, Int64s] = {}  # ascending, by predicate
        self._made: dict[int, KbRelation] = {}
        self.replace(graph)

    def replace(self, graph: Mapping[int, KbRelation]) -> None:
        """Take the triples of another graph."""
        self._made = dict(graph)
        self._keys = {}

    def relations(self) -> KbGraph:
        """The graph as patterns are evaluated on it."""
        for predicate, keys in self._keys.items():
            if predicate not in self._made and len(keys):
                s, o = (keys >> _BITS).astype(np.int32), (keys & _LOW).astype(np.int32)
                self._made[predicate] = KbRelation(s, o)
        return KbGraph(self._made)

    def apply(self, change: GraphChange) -> int:
        """Remove what a change removes, then add what it adds.

        Returns:
            how many triples have gone and come.
        """
        gone = sum(self._remove(pattern) for pattern in change.deleted)
        return gone + sum(self._add(triple) for triple in change.inserted)

    def triples(self) -> list[Triple]:
        """All triples, as texts."""
        found = list[Triple]()
        for predicate, relation in self.relations().items():
            p = self._terms.text(predicate)
            pairs = zip(self._terms.take(relation.s), self._terms.take(relation.o), strict=True)
            found += [(s, p, o) for s, o in pairs]
        return found

    def restore(self, triples: Sequence[Triple]) -> None:
        """Take these triples instead of all that there are."""
        self.replace({})
        by_predicate: dict[str, list[Triple]] = {}
        for triple in triples:
            by_predicate.setdefault(triple[1], []).append(triple)
        for p, some in by_predicate.items():
            s, o = (self._terms.encode([t[i] for t in some]).astype(np.int64) for i in (0, 2))
            self._keys[self._code(p)] = np.unique((s << _BITS) | o)

    def _code(self, text: str) -> int:
        return int(self._terms.encode([text])[0])

    def _known(self, predicate: int) -> Int64s:
        """The triples with a predicate."""
        keys = self._keys.get(predicate)
        if keys is None:
            relation = self._made.get(predicate)
            keys = np.empty(0, np.int64)
            if relation is not None:
                keys = (relation.s.astype(np.int64) << _BITS) | relation.o
            self._keys[predicate] = keys
        return keys

    def _set(self, predicate: int, keys: Int64s) -> None:
        self._keys[predicate] = keys
        self._made.pop(predicate, None)

    def _add(self, triple: Triple) -> int:
        s, p, o = map(self._code, triple)
        keys, key = self._known(p), (s << _BITS) | o
        place = int(np.searchsorted(keys, key))
        if place < len(keys) and keys[place] == key:
            return 0
        self._set(p, np.insert(keys, place, key))
        return 1

    def _remove(self, pattern: Triple) -> int:
        if looks_inside(pattern[2]):
            fitting = [triple for triple in self._having(pattern) if fits(pattern, triple, {})]
            return sum(map(self._remove, fitting))
        s, p, o = (None if is_wildcard(t) else self._terms.code(t) for t in pattern)
        if ABSENT in (s, p, o):
            return 0
        predicates = [*{**self._made, **self._keys}] if p is None else [p]
        return sum(self._remove_of(predicate, s, o, pattern) for predicate in predicates)

    def _having(self, pattern: Triple) -> Iterator[Triple]:
        """The triples with the predicate of a pattern that have a triple term as their object."""
        wanted = None if is_wildcard(pattern[1]) else self._terms.code(pattern[1])
        for predicate, relation in self.relations().items():
            if wanted in (None, predicate):
                p = self._terms.text(predicate)
                pairs = zip(self._terms.take(relation.s), self._terms.take(relation.o), strict=True)
                yield from ((s, p, o) for s, o in pairs if is_triple_term(o))

    def _remove_of(self, predicate: int, s: int | None, o: int | None, pattern: Triple) -> int:
        """Remove the triples with a predicate that match the pattern."""
        keys = self._known(predicate)
        low, high = 0, len(keys)
        if s is not None:
            low, high = np.searchsorted(keys, [s << _BITS, (s + 1) << _BITS]).tolist()
        part = keys[low:high]
        out: Bools = np.ones(len(part), np.bool_)
        if o is not None:
            out &= (part & _LOW) == o
        for one, other in _equal_places(pattern):
            out &= _place(part, one, predicate) == _place(part, other, predicate)
        count = int(np.count_nonzero(out))
        if count:
            self._set(predicate, np.concatenate([keys[:low], part[~out], keys[high:]]))
        return count


def _equal_places(pattern: Triple) -> list[tuple[int, int]]:
    """The places of a pattern in which one wildcard stands."""
    pairs = ((0, 1), (0, 2), (1, 2))
    return [(i, j) for i, j in pairs if is_wildcard(pattern[i]) and pattern[i] == pattern[j]]


def _place(keys: Int64s, place: int, predicate: int) -> Int64s:
    """The codes of the subjects, predicates or objects of triples."""
    if place == 1:
        return np.full(len(keys), predicate, np.int64)
    return keys >> _BITS if place == 0 else keys & _LOW
