"""A graph of the knowledge base whose triples come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.algebra.graph_changes import GraphChange, fits, is_wildcard, looks_inside
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.kb.knowledge import KbGraph, KbRelation
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ABSENT, ExtendedTerms
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.triple_terms import is_triple_term
from spaseq.stateful import Stateful

_BITS = 32
_LOW = 2**_BITS - 1


Recoded: TypeAlias = "Callable[[Int64s], Int64s]"
"""Gives the codes in another table."""


class ChangingGraph(Stateful):
    """The present triples of a graph, by predicate.

    A triple is a number, its subject's code before its object's. The codes are those of `terms`,
    to which the terms of new triples are added.
    """

    def __init__(self, terms: ExtendedTerms, graph: Mapping[int, KbRelation]) -> None:
        self._terms = terms
        self._keys: dict[int, Int64s] = {}  # ascending, by predicate
        self._by_object: dict[int, Int64s] = {}
        self._made: dict[int, KbRelation] = {}
        self.replace(graph)

    def replace(self, graph: Mapping[int, KbRelation]) -> None:
        """Take the triples of another graph."""
        self._made = dict(graph)
        self._keys, self._by_object = {}, {}

    def relations(self) -> KbGraph:
        """The graph as patterns are evaluated on it."""
        for predicate, keys in self._keys.items():
            if predicate not in self._made and len(keys):
                self._made[predicate] = _relation(keys)
        return KbGraph(self._made)

    def add(self, s: Int64s, p: Int64s, o: Int64s) -> int:
        """Add triples [n]; how many have come."""
        return sum(self._with(*columns) for columns in _by_predicate(s, p, o))

    def remove(self, s: Int64s, p: Int64s, o: Int64s) -> int:
        """Remove triples [n]; how many have gone."""
        return sum(self._without(*columns) for columns in _by_predicate(s, p, o))

    def exchange(self, predicate: int, out: Int64s, new: Int64s) -> None:
        """Remove triples with a predicate that are there, and add others that are not.

        Both are keys that ascend.
        """
        if not self._replaced(predicate, out, new):
            self._without(predicate, out)
            self._with(predicate, new)

    def _replaced(self, predicate: int, out: Int64s, new: Int64s) -> bool:
        """Put new triples in the places of others, if all triples ascend then.

        So a change of some subjects' only value costs nothing for the other triples.
        """
        keys = self.keys(predicate)
        if len(out) != len(new) or not len(out):
            return False
        places = np.searchsorted(keys, out)
        keys[places] = new
        before, after = np.maximum(places - 1, 0), np.minimum(places + 1, len(keys) - 1)
        ascends = (keys[before] < new) | (places == 0)
        ascends &= (new < keys[after]) | (places == len(keys) - 1)
        if not ascends.all():
            keys[places] = out
            return False
        self._set(predicate, keys)
        return True

    def apply(self, change: GraphChange) -> int:
        """Remove triples, then add triples.

        Returns:
            the numbers of triples removed and added.
        """
        whole = [pattern for pattern in change.deleted if _is_triple(pattern)]
        count = self.remove(*self._coded(whole, adds=False))
        for pattern in change.deleted:
            if not _is_triple(pattern):
                count += self._remove(pattern)
        return count + self.add(*self._coded(change.inserted))

    def triples(self) -> list[Triple]:
        """All triples, as texts."""
        return [triple for predicate in self.relations() for triple in self._texts(predicate)]

    def _texts(self, predicate: int) -> Iterator[Triple]:
        """The triples with a predicate, as texts."""
        relation, p = self.relations()[predicate], self._terms.text(predicate)
        pairs = zip(self._terms.take(relation.s), self._terms.take(relation.o), strict=True)
        return ((s, p, o) for s, o in pairs)

    snapshot = triples

    def restore(self, triples: Sequence[Triple]) -> None:
        """Take these triples instead of all that there are."""
        self.replace({})
        self._keys.update(_by_predicate(*self._coded(triples)))

    def _coded(self, triples: Sequence[Triple], adds: bool = True) -> list[Int64s]:
        """The codes of triples; without `adds`, those with an unknown term are left out."""
        if not triples:
            return [np.empty(0, np.int64)] * 3
        coded = self._terms.encode if adds else self._terms.find
        columns = [coded([t[i] for t in triples]).astype(np.int64) for i in range(3)]
        known = np.logical_and.reduce([codes >= 0 for codes in columns])
        return [codes[known] for codes in columns]

    def codes(self) -> Iterator[Int64s]:
        """The codes of its terms; one may stand several times."""
        yield np.array(self.predicates(), np.int64)
        for keys in map(self.keys, self.predicates()):
            yield keys >> _BITS
            yield keys & _LOW

    def use(self, terms: ExtendedTerms, recoded: Recoded) -> None:
        """Go on with another table of terms."""
        self._terms, keys = terms, {p: self.keys(p) for p in self.predicates()}
        self._by_object, self._made = {}, {}
        again = (recoded(np.array([*keys], np.int64)).tolist(), keys.values())
        self._keys = {p: recoded_keys(old, recoded) for p, old in zip(*again, strict=True)}

    def predicates(self) -> list[int]:
        """The predicates that triples may have."""
        return [*{**self._made, **self._keys}]

    def keys_by_object(self, predicate: int) -> Int64s:
        """The triples with a predicate, ascending: the object's code before the subject's."""
        if predicate not in self._by_object:
            keys = self.keys(predicate)
            self._by_object[predicate] = np.sort((keys & _LOW) << _BITS | keys >> _BITS)
        return self._by_object[predicate]

    def keys(self, predicate: int) -> Int64s:
        """The triples with a predicate, ascending: the subject's code before the object's."""
        keys = self._keys.get(predicate)
        if keys is None:
            relation = self._made.get(predicate)
            if relation is None:
                return np.empty(0, np.int64)
            keys = (relation.s.astype(np.int64) << _BITS) | relation.o
            self._keys[predicate] = keys
        return keys

    def _set(self, predicate: int, keys: Int64s) -> None:
        self._keys[predicate] = keys
        self._by_object.pop(predicate, None)
        self._made.pop(predicate, None)

    def _with(self, predicate: int, keys: Int64s) -> int:
        """Add triples with a predicate."""
        known = self.keys(predicate)
        places = np.searchsorted(known, keys)
        new = ~stand_at(known, places, keys)
        if new.any():
            self._set(predicate, np.insert(known, places[new], keys[new]))
        return int(np.count_nonzero(new))

    def _without(self, predicate: int, keys: Int64s) -> int:
        """Remove triples with a predicate."""
        known = self.keys(predicate)
        places = np.searchsorted(known, keys)
        is_there = stand_at(known, places, keys)
        if is_there.any():
            self._set(predicate, np.delete(known, places[is_there]))
        return int(np.count_nonzero(is_there))

    def _remove(self, pattern: Triple) -> int:
        if looks_inside(pattern[2]):
            fitting = [triple for triple in self._having(pattern) if fits(pattern, triple, {})]
            return sum(map(self._remove, fitting))
        s, p, o = (None if is_wildcard(t) else self._terms.code(t) for t in pattern)
        if ABSENT in (s, p, o):
            return 0
        predicates = self.predicates() if p is None else [p]
        return sum(self._remove_of(predicate, s, o, pattern) for predicate in predicates)

    def _having(self, pattern: Triple) -> Iterator[Triple]:
        """The triples with the predicate of a pattern that have a triple term as their object."""
        wanted = None if is_wildcard(pattern[1]) else self._terms.code(pattern[1])
        for predicate in self.relations():
            if wanted in (None, predicate):
                yield from (t for t in self._texts(predicate) if is_triple_term(t[2]))

    def _remove_of(self, predicate: int, s: int | None, o: int | None, pattern: Triple) -> int:
        """Remove the triples with a predicate that match the pattern."""
        keys = self.keys(predicate)
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


def without_unused(
    terms: ExtendedTerms, used: Callable[[], Iterable[Int64s]]
) -> tuple[ExtendedTerms, Recoded] | None:
    """A table without the terms that are not used, and how codes change; None if these are few.

    It is looked through when as many texts were appended as it has had then.
    """
    if terms.added <= 2 * terms.looked_through + thresholds.current.unused_terms:
        return None
    first, none = len(terms.base), np.empty(0, np.int64)
    codes = distinct(np.concatenate([none, *(some[some >= first] for some in used())]))
    terms.looked_through = terms.added
    if 2 * len(codes) > terms.added:
        return None
    places = np.zeros(terms.added, np.int64)
    places[codes - first] = first + np.arange(len(codes))

    def recoded(codes: Int64s) -> Int64s:
        ours, again = codes >= first, codes.copy()
        again[ours] = places[codes[ours] - first]
        return again

    return terms.with_only(codes.astype(np.int32)), recoded


def recoded_keys(keys: Int64s, recoded: Recoded) -> Int64s:
    """Triples with a predicate, ascending, with the codes of another table."""
    again = (recoded(keys >> _BITS) << _BITS) | recoded(keys & _LOW)
    return np.sort(again)


def recoded_graph(graph: KbGraph, recoded: Recoded) -> KbGraph:
    """A graph with the codes of another table."""
    relations = {}
    for predicate, relation in graph.items():
        s, o = relation.s.astype(np.int64), relation.o.astype(np.int64)
        code = int(recoded(np.array([predicate]))[0])
        if code == predicate and (recoded(s) == s).all() and (recoded(o) == o).all():
            relations[code] = relation
        else:
            keys = recoded_keys(s << _BITS | o, recoded)
            relations[code] = _relation(keys)
    return KbGraph(relations)


def graph_codes(graph: KbGraph) -> Iterator[Int64s]:
    """The codes of a graph's terms; one may stand several times."""
    yield np.array([*graph], np.int64)
    for relation in graph.values():
        yield relation.s.astype(np.int64)
        yield relation.o.astype(np.int64)


def _relation(keys: Int64s) -> KbRelation:
    return KbRelation((keys >> _BITS).astype(np.int32), (keys & _LOW).astype(np.int32))


def _is_triple(pattern: Triple) -> bool:
    """Whether a pattern has no wildcard."""
    return not (any(map(is_wildcard, pattern)) or looks_inside(pattern[2]))


def _by_predicate(s: Int64s, p: Int64s, o: Int64s) -> Iterator[tuple[int, Int64s]]:
    """The predicates of triples, and the triples that each has, ascending."""
    keys = (s << _BITS) | o
    for predicate in distinct(p).tolist():
        yield predicate, distinct(keys[p == predicate])


def stand_at(known: Int64s, places: Int64s, keys: Int64s) -> Bools:
    """Which of some keys stand at their places in `known`."""
    is_there: Bools = places < len(known)
    is_there[is_there] = known[places[is_there]] == keys[is_there]
    return is_there


def _equal_places(pattern: Triple) -> list[tuple[int, int]]:
    """The places of a pattern in which one wildcard stands."""
    pairs = ((0, 1), (0, 2), (1, 2))
    return [(i, j) for i, j in pairs if is_wildcard(pattern[i]) and pattern[i] == pattern[j]]


def _place(keys: Int64s, position: int, predicate: int) -> Int64s:
    """The codes of the subjects, predicates or objects of triples."""
    if position == 1:
        return np.full(len(keys), predicate, np.int64)
    return keys >> _BITS if position == 0 else keys & _LOW
