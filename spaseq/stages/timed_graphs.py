"""Many changes of graphs at once: triples that hold between positions among the rows of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow.compute as pc

from spaseq.algebra.graph_changes import INSERTED, looks_inside, wildcard
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.kb.changing_graph import ChangingGraph
from spaseq.kb.kernels.timed_triples import (
    FOR_EVER,
    crowded,
    holding,
    intervals,
    numbered,
    stable_order,
)
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    TermColumn,
    TextArray,
    distinct,
    take_texts,
)
from spaseq.rdf.columns.term_tables import ABSENT, ExtendedTerms
from spaseq.records import record

_BITS = 32
_LOW = 2**_BITS - 1


ANY = -1
"""The code of a wildcard."""


def _starts(texts: TextArray, mark: str) -> Bools:
    starts: Bools = pc.starts_with(texts, mark).to_numpy(zero_copy_only=False)
    return starts


@record
class CodedRows:
    """The terms of m rows of changes, and of n solutions beside them.

    Attributes:
        codes: by variable, int64, of the lexicon; ANY for wildcards and unbound variables. The
            columns of HANDED_ON belong to the changes [m], others to the solutions [n].
        inside: bool [m], whether the object of a change is a triple term with a wildcard inside.
        lexicon: the graphs' terms, and others that only solutions have.
    """

    codes: dict[str, Int64s]
    inside: Bools
    lexicon: ExtendedTerms

    @classmethod
    def of(
        cls,
        changes: SolutionBatch,
        terms: ExtendedTerms,
        solutions: Mapping[str, TermColumn] = MappingProxyType({}),
    ) -> CodedRows:
        """The codes of changes, whose terms join the graphs' terms, and of columns of solutions."""
        subject, predicate, object_ = (changes.values[name].compact() for name in HANDED_ON)
        marked = predicate.used()
        predicates = pc.utf8_slice_codeunits(marked.terms, 1)
        p = terms.encode(predicates.to_pylist())
        p[_starts(predicates, wildcard(""))] = ANY
        known = _of_table(subject.terms, terms)
        codes = {HANDED_ON[0]: _codes(subject, known, terms)}
        if object_.terms is not subject.terms:
            known = _of_table(object_.terms, terms)
        codes[HANDED_ON[2]] = _codes(object_, known, terms)
        codes[HANDED_ON[1]] = np.append(p, ANY).astype(np.int64)[marked.codes]
        lexicon = ExtendedTerms(terms)
        for name, column in solutions.items():
            compact = column.compact()
            codes[name] = _codes(compact, terms.find_strings(compact.terms), lexicon)
        return cls(codes, _looks_inside(object_), lexicon)


def _of_table(texts: TextArray, terms: ExtendedTerms) -> Int32s:
    """The codes of texts in the terms of graphs; ANY for wildcards, ABSENT for unknown ones."""
    codes = terms.find_strings(texts)
    codes[_starts(texts, wildcard(""))] = ANY
    return codes


def _codes(column: TermColumn, code: Int32s, more: ExtendedTerms) -> Int64s:
    """[n] the codes of a column's terms, ANY for no term.

    `code` has a code for each term of the column's table. Where it is ABSENT and a row has the
    term, `more` gets the term, and `code` its new code.
    """
    if code.min(initial=0) < 0:
        used = distinct(column.codes)
        new = used[(used >= 0) & (code[used] == ABSENT)]
        code[new] = more.encode(take_texts(column.terms, new).to_pylist())
    return np.append(code, ANY).astype(np.int64)[column.codes]  # the last is UNBOUND's


def _looks_inside(objects: TermColumn) -> Bools:
    """[n] whether a term is a triple term with a wildcard inside."""
    looks = np.zeros(len(objects.terms) + 1, np.bool_)
    for number in np.flatnonzero(_starts(objects.terms, "<<")).tolist():
        looks[number] = looks_inside(objects.terms[number].as_py())
    inside: Bools = looks[objects.codes]
    return inside


@record
class PlacedChanges:
    """Changes of some graphs, in order, as m patterns to remove and triples to add.

    Attributes:
        place: int64 [m], the position of the change among the rows of a batch; ascends.
        graph: int64 [m], the number of the graph.
        comes: bool [m], whether a triple is added.
        s, p, o: int64 [m], codes of terms, or ANY.
        by_object: bool [m], whether the changes of the graph's predicate all give the object, and
            some leave out the subject.
        pair: int64 [m], the number of each predicate of a graph and subject, or object.
        alone: bool [m], whether the change must be applied by itself.
    """

    place: Int64s
    graph: Int64s
    comes: Bools
    s: Int64s
    p: Int64s
    o: Int64s
    by_object: Bools
    pair: Int64s
    alone: Bools

    @classmethod
    def of(
        cls, rows: SolutionBatch, coded: CodedRows, places: Int64s, graphs: Int64s
    ) -> PlacedChanges:
        """The changes of n rows, at some positions [n], each of a graph [n].

        The rows of a change stand at one position. An answer without changes is a row, too.
        """
        marked = rows.values[HANDED_ON[1]].compact()
        chosen: Indices | slice = slice(None)
        if marked.codes.min(initial=0) == UNBOUND:
            chosen = np.flatnonzero(marked.codes != UNBOUND)
        comes = _starts(marked.terms, INSERTED)[marked.codes[chosen]]
        places, graphs = places[chosen], graphs[chosen]
        s, p, o = (coded.codes[name][chosen] for name in HANDED_ON)
        alone = (p == ANY) | coded.inside[chosen]
        predicate = numbered(graphs << _BITS | p)
        open_s, open_o = (_of_predicates(predicate, end == ANY) for end in (s, o))
        by_object = open_s & ~open_o
        pair = numbered(predicate << _BITS | np.where(by_object, o, s))
        return cls(places, graphs, comes, s, p, o, by_object, pair, alone | (s == ANY) & ~by_object)

    def cuts(self, most: int) -> list[int]:
        """The positions of changes that are applied by themselves, so that few values come between.

        Args:
            most: the maximum number of values of a subject's predicate between two of these.
        """
        places: list[int] = crowded(self.place, self.pair, self.comes, self.alone, most).tolist()
        return places

    def between(self, first: int, end: int) -> PlacedChanges:
        """The changes from one position to another, which is excluded."""
        return self._some(slice(*np.searchsorted(self.place, [first, end]).tolist()))

    def of_graph(self, number: int) -> PlacedChanges:
        """The changes of one graph."""
        return self._some(self.graph == number)

    def by_predicate(self) -> Iterator[tuple[int, PlacedChanges]]:
        """The changes of each predicate."""
        for predicate in distinct(self.p).tolist():
            yield predicate, self._some(self.p == predicate)

    def _some(self, rows: Bools | slice) -> PlacedChanges:
        if not isinstance(rows, slice) and rows.all():
            return self
        ints = (self.place, self.graph, self.s, self.p, self.o, self.pair)
        at, graph, s, p, o, pair = (column[rows] for column in ints)
        comes, by_object, alone = self.comes[rows], self.by_object[rows], self.alone[rows]
        return PlacedChanges(at, graph, comes, s, p, o, by_object, pair, alone)


def _of_predicates(predicate: Int64s, some: Bools) -> Bools:
    """[m] whether the condition holds for some change of the predicate (a number)."""
    is_so: Bools = np.zeros(int(predicate.max(initial=-1)) + 1, np.bool_)
    is_so[predicate[some]] = True
    return is_so[predicate]


class TimedGraph:
    """A graph whose triples come and go at the positions of some rows.

    Args:
        graph: its value before the first of these rows; immutable.
        changes: the changes of this graph that are applied together.
    """

    def __init__(self, graph: ChangingGraph, changes: PlacedChanges) -> None:
        self._graph, self._by_object = graph, dict[int, TimedKeys]()
        self._by_subject = dict[int, TimedKeys]()
        for p, changed in changes.by_predicate():
            if changed.by_object[0]:
                given = intervals(
                    graph.keys_by_object(p), changed.o, changed.s, changed.comes, changed.place
                )
                self._by_object[p] = TimedKeys.of(*given)
                self._by_subject[p] = self._by_object[p].turned()
            else:
                given = intervals(graph.keys(p), changed.s, changed.o, changed.comes, changed.place)
                self._by_subject[p] = TimedKeys.of(*given)

    def predicates(self) -> list[int]:
        """The possible predicates of its triples."""
        return [*dict.fromkeys([*self._graph.predicates(), *self._by_subject])]

    def matches(
        self, predicate: int, s: Int64s | None, o: Int64s | None, at: Int64s
    ) -> tuple[Indices, Int64s, Int64s]:
        """The triples with a predicate that hold at the positions of n rows.

        Args:
            s, o: int64 [n], the subject and object of each row's look-up; None for any.
            at: int64 [n], the positions.

        Returns:
            for each pair of a row and a triple: the row, the subject, the object.

        Raises:
            LimitExceeded: there are more pairs than the budget allows.
        """
        if s is None and o is not None:
            known, timed = self._graph.keys_by_object(predicate), self._timed_by_object(predicate)
            row, keys = _holding(known, timed, (o, None), at)
            return row, keys & _LOW, keys >> _BITS
        known, timed = self._graph.keys(predicate), self._by_subject.get(predicate, _NONE)
        row, keys = _holding(known, timed, (s, o), at)
        return row, keys >> _BITS, keys & _LOW

    def _timed_by_object(self, predicate: int) -> TimedKeys:
        if predicate not in self._by_object:
            self._by_object[predicate] = self._by_subject.get(predicate, _NONE).turned()
        return self._by_object[predicate]

    def finish(self) -> None:
        """Apply all changes."""
        for predicate, timed in self._by_subject.items():
            self._graph.exchange(predicate, *timed.change())


@record
class TimedKeys:
    """The intervals in which m triples hold, with the triples as pairs of codes that ascend.

    Attributes:
        keys: int64 [m], the first code before the second.
        since, until: int64 [m], positions, as `intervals` gives them; by key, they ascend.
    """

    keys: Int64s
    since: Int64s
    until: Int64s

    @classmethod
    def of(cls, keys: Int64s, since: Int64s, until: Int64s) -> TimedKeys:
        """Sort the triples, if the times of each one are sorted."""
        order = stable_order(keys)
        return cls(keys[order], since[order], until[order])

    def turned(self) -> TimedKeys:
        """The same triples with their codes swapped."""
        return TimedKeys.of(
            (self.keys & _LOW) << _BITS | self.keys >> _BITS, self.since, self.until
        )

    def change(self) -> tuple[Int64s, Int64s]:
        """The triples removed and the triples added at the end; ascend."""
        new = self.keys[1:] != self.keys[:-1]
        first, last = (np.ones(len(self.keys), np.bool_) for _ in range(2))
        first[1:], last[:-1] = new, new
        was, now = self.since[first] < 0, self.until[last] == FOR_EVER
        keys = self.keys[first]
        return keys[was & ~now], keys[now & ~was]


_NONE = TimedKeys(*np.empty((3, 0), np.int64))


def _holding(
    known: Int64s, timed: TimedKeys, wanted: tuple[Int64s | None, Int64s | None], at: Int64s
) -> tuple[Indices, Int64s]:
    """(rows, keys) of triples that have the two codes of each row and hold there."""
    first, second = wanted
    if first is None:
        lowest, width = np.zeros(len(at), np.int64), FOR_EVER
    else:
        lowest, width = first << _BITS, 1 << _BITS
        if second is not None:
            lowest, width = lowest | second, 1
    given = known, timed.keys, timed.since, timed.until, lowest, width, at
    budget, total, room = current_budget(), -1, len(at)
    while total < 0 or total > room:
        room = max(room, total)
        row, keys = np.empty((2, room), np.int64)
        total = holding(*given, budget.rows, row, keys)
        budget.spend(total)
    return row[:total], keys[:total]
