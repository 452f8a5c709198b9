"""Many changes of graphs at once: triples that hold at some places among the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.graph_changes import INSERTED, looks_inside, wildcard
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.gpm.solutions.joins import expanded
from spaseq.kb.changing_graph import ChangingGraph, stand_at
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    RowSelection,
    TermColumn,
    TextArray,
    distinct,
)
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.records import record

_BITS = 32
_LOW = 2**_BITS - 1
_FOR_EVER = 2**62


ANY = -1
"""Stands for a wildcard among codes."""


def _starts(texts: TextArray, mark: str) -> Bools:
    found: Bools = pc.starts_with(texts, mark).to_numpy(zero_copy_only=False)
    return found


@record
class CodedRows:
    """The terms of n rows that are looked up in graphs.

    Attributes:
        codes: by variable, int64 [n], of the lexicon; ANY for wildcards and unbound variables.
        inside: bool [n], whether the object of a change is a triple term with a wildcard inside.
        lexicon: the graphs' terms, and others that only rows have.
    """

    codes: dict[str, Int64s]
    inside: Bools
    lexicon: ExtendedTerms

    @classmethod
    def of(cls, rows: SolutionBatch, variables: Sequence[str], terms: ExtendedTerms) -> CodedRows:
        """The changes among some rows, whose terms are added, and variables of the others."""
        subject, predicate, object_ = HANDED_ON
        names = subject, object_, *variables
        whole = TermColumn.concat([rows.values[name].used() for name in names])
        places, texts = whole.codes.reshape(len(names), -1), whole.terms
        code = terms.find_strings(texts).astype(np.int64)
        is_any, inside = _starts(texts, wildcard("")), np.zeros(len(texts) + 1, np.bool_)
        for number in np.flatnonzero(_starts(texts, "<<")).tolist():
            inside[number] = looks_inside(texts[number].as_py())
        of_changes = np.zeros(len(texts) + 1, np.bool_)
        of_changes[places[:2]] = True
        new = (code < 0) & ~is_any
        marked = rows.values[predicate].used()
        predicates = pc.utf8_slice_codeunits(marked.terms, 1)
        p = terms.encode(predicates.to_pylist())
        p[_starts(predicates, wildcard(""))] = ANY
        kept = new & of_changes[:-1]
        code[kept] = terms.encode(texts.filter(pa.array(kept)).to_pylist())
        lexicon, rest = ExtendedTerms(terms), new & ~kept
        code[rest] = lexicon.encode(texts.filter(pa.array(rest)).to_pylist())
        code = np.append(np.where(is_any, ANY, code), ANY)  # the last is UNBOUND's
        codes = {name: code[own] for name, own in zip(names, places, strict=True)}
        codes[predicate] = np.append(p, ANY).astype(np.int64)[marked.codes]
        return cls(codes, inside[places[1]], lexicon)


@record
class PlacedChanges:
    """Changes of some graphs, in order, as m patterns to remove and triples to add.

    Attributes:
        place: int64 [m], of the change among the rows of a batch; ascends.
        graph: int64 [m], the number of the graph.
        comes: bool [m], whether a triple is added.
        s, p, o: int64 [m], codes of terms, or ANY.
        pair: int64 [m], the number of each subject and predicate of a graph.
        alone: int64, the places of changes that have to be made by themselves; ascend.
    """

    place: Int64s
    graph: Int64s
    comes: Bools
    s: Int64s
    p: Int64s
    o: Int64s
    pair: Int64s
    alone: Int64s

    @classmethod
    def of(
        cls, rows: SolutionBatch, coded: CodedRows, places: Int64s, graphs: Int64s
    ) -> PlacedChanges:
        """The changes among n rows at some places [n], each of a graph [n].

        The rows of a change stand at one place.
        """
        marked = rows.values[HANDED_ON[1]].compact()
        own = np.flatnonzero(marked.codes != UNBOUND)
        comes = _starts(marked.terms, INSERTED)[marked.codes[own]]
        places, graphs = places[own], graphs[own]
        s, p, o = (coded.codes[name][own] for name in HANDED_ON)
        alone = distinct(places[(s == ANY) | (p == ANY) | coded.inside[own]])
        relation = np.unique(graphs << _BITS | p, return_inverse=True)[1]
        pair = np.unique(relation << _BITS | s, return_inverse=True)[1]
        return cls(places, graphs, comes, s, p, o, pair, alone)

    def cuts(self, most: int) -> list[int]:
        """The places of changes that are made by themselves, so that few values come between.

        Args:
            most: the most values that may come of a subject's predicate between two of these.
        """
        come = np.flatnonzero(self.comes)
        if np.bincount(self.pair[come], minlength=1).max() <= most:
            return [*self.alone.tolist()]
        found, alone, made = list[int](), {*self.alone.tolist()}, dict[int, int]()
        values = zip(self.place.tolist(), self.pair.tolist(), self.comes.tolist(), strict=True)
        for place, pair, comes in values:
            if found and place == found[-1]:
                continue
            if place in alone or (comes and made.get(pair, 0) >= most):
                found.append(place)
                made.clear()
            elif comes:
                made[pair] = made.get(pair, 0) + 1
        return found

    def between(self, first: int, end: int) -> PlacedChanges:
        """The changes from a place on, and before another one."""
        return self._some(slice(*np.searchsorted(self.place, [first, end]).tolist()))

    def of_graph(self, number: int) -> PlacedChanges:
        """The changes of one graph."""
        return self._some(np.flatnonzero(self.graph == number))

    def _some(self, rows: RowSelection) -> PlacedChanges:
        ints = (self.place, self.graph, self.s, self.p, self.o, self.pair)
        place, graph, s, p, o, pair = (column[rows] for column in ints)
        return PlacedChanges(place, graph, self.comes[rows], s, p, o, pair, self.alone[:0])


class TimedGraph:
    """A graph whose triples come and go at the places of some rows.

    A triple that is added holds until the next change that removes it. So equal triples may have
    intervals that overlap, of which the later ones end later.

    Args:
        graph: as it was before the first of these rows; it does not change.
        changes: of this graph, none of which is made by itself.
    """

    def __init__(self, graph: ChangingGraph, changes: PlacedChanges) -> None:
        own, self._graph = changes, graph
        _, first, own_pair = np.unique(own.pair, return_index=True, return_inverse=True)
        s, p = own.s[first], own.p[first]
        wild = ~own.comes & (own.o == ANY)
        whole = np.flatnonzero(~wild)
        is_wild = np.zeros(len(s), np.bool_)
        is_wild[own_pair[wild]] = True
        owners, objects = graph.objects(s, p, is_wild)
        asked_pair, asked = own_pair[whole], own.o[whole]
        known = np.flatnonzero(graph.has(s[asked_pair], p[asked_pair], asked))
        pair = np.concatenate([asked_pair, owners, asked_pair[known]])
        o = np.concatenate([asked, objects, asked[known]])
        keys, triple = np.unique(pair << _BITS | o, return_inverse=True)
        since = np.concatenate([own.place[whole], np.full(len(pair) - len(whole), -1)])
        holds = np.concatenate([own.comes[whole], np.ones(len(pair) - len(whole), np.bool_)])
        out = ~own.comes[whole]
        until = np.minimum(
            _next(pair, since, own_pair[wild], own.place[wild]),
            _next(triple, since, triple[: len(whole)][out], own.place[whole][out]),
        )
        self._codes = np.column_stack([s[pair], p[pair], o])[holds]
        self._spans = np.column_stack([since, until])[holds]
        self._known: dict[tuple[int, bool], TimedKeys] = {}
        was, now = np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.bool_)
        was[triple[len(whole) :]] = True
        now[triple[holds & (until == _FOR_EVER)]] = True
        at = keys >> _BITS
        self._s, self._p, self._o = s[at], p[at], keys & (2**_BITS - 1)
        self._gone, self._come = was & ~now, now & ~was

    def predicates(self) -> list[int]:
        """The predicates that triples may have."""
        return [*dict.fromkeys([*self._graph.predicates(), *distinct(self._p).tolist()])]

    def matches(
        self, predicate: int, s: Int64s | None, o: Int64s | None, at: Int64s
    ) -> tuple[Indices, Int64s, Int64s]:
        """The triples with a predicate that hold at the places of n rows.

        Args:
            s, o: int64 [n], the subject and object that each row asks for; None asks for any.
            at: int64 [n], the places.

        Returns:
            for each pair of a row and a triple: the row, the subject, the object.

        Raises:
            LimitExceeded: there are more pairs than the budget allows.
        """
        by_object = s is None and o is not None
        wanted = (o, None) if by_object else (s, o)
        keys = (self._graph.keys_by_object if by_object else self._graph.keys)(predicate)
        row, place = _ranges(keys, wanted, len(at))
        found = keys[place]
        timed = self._timed(predicate, by_object)
        if len(timed.keys):
            kept = ~stand_at(timed.touched, np.searchsorted(timed.touched, found), found)
            others, place = _ranges(timed.keys, wanted, len(at))
            holds = (timed.since[place] <= at[others]) & (at[others] < timed.until[place])
            row = np.concatenate([row[kept], others[holds]])
            found = np.concatenate([found[kept], timed.keys[place[holds]]])
        high, low = found >> _BITS, found & _LOW
        return (row, low, high) if by_object else (row, high, low)

    def _timed(self, predicate: int, by_object: bool) -> TimedKeys:
        """The triples with a predicate that come or go."""
        known = self._known.get((predicate, by_object))
        if known is None:
            own = self._codes[:, 1] == predicate
            first, second = self._codes[own, 0], self._codes[own, 2]
            if by_object:
                first, second = second, first
            made = TimedKeys.of(first << _BITS | second, *self._spans[own].T)
            known = self._known[predicate, by_object] = made
        return known

    def finish(self) -> None:
        """Make all changes."""
        other = self._gone | self._come
        s, p, o = self._s[other], self._p[other], self._o[other]
        self._graph.exchange(s, p, o, self._come[other])


@record
class TimedKeys:
    """When m triples hold, as pairs of codes that ascend, each from a place on until another.

    Attributes:
        keys: int64 [m], the first code before the second.
        since, until: int64 [m], places; the spans of one triple do not overlap.
        touched: int64, the triples that hold at first; ascend.
    """

    keys: Int64s
    since: Int64s
    until: Int64s
    touched: Int64s

    @classmethod
    def of(cls, keys: Int64s, since: Int64s, until: Int64s) -> TimedKeys:
        """The triples in order; where the times of one overlap, the later one goes on."""
        order = np.lexsort((since, keys))
        keys, since, until = keys[order], since[order], until[order]
        again = np.flatnonzero(keys[1:] == keys[:-1])
        until[again] = np.minimum(until[again], since[again + 1])
        return cls(keys, since, until, keys[since < 0])


def _ranges(
    keys: Int64s, wanted: tuple[Int64s | None, Int64s | None], rows: int
) -> tuple[Indices, Indices]:
    """(rows, places of keys that ascend) with the two codes that each row wants, if it does."""
    first, second = wanted
    if first is None:
        return expanded(np.zeros(rows, np.int64), np.full(rows, len(keys)))
    key, shift = (first, _BITS) if second is None else (first << _BITS | second, 0)
    low = np.searchsorted(keys, key << shift)
    high, more = low.copy(), np.arange(rows)
    for _ in range(2):  # most have one or two
        more = more[high[more] < len(keys)]
        more = more[keys[high[more]] >> shift == key[more]]
        high[more] += 1
    high[more] = np.searchsorted(keys, key[more] + 1 << shift)
    return expanded(low, high - low)


def _next(owner: Int64s, since: Int64s, owners: Int64s, places: Int64s) -> Int64s:
    """The first of an owner's places after a place, for [n] owners and places; else for ever.

    Args:
        owner, since: int64 [n]; a place is -1 or more.
        owners, places: int64 [m], the places of each owner.
    """
    width = int(max(since.max(initial=0), places.max(initial=0))) + 2
    known = np.sort(owners * width + places + 1)
    at = np.searchsorted(known, owner * width + since + 1, side="right")
    found = np.append(known, -1)[at]
    return np.where(found // width == owner, found % width - 1, _FOR_EVER)
