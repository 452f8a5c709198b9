"""Many changes of graphs at once: a pattern is evaluated over all triples that hold at some time.

Each triple that comes or goes has intervals of places among the rows of a batch. Of the solutions
over the union of all triples those stay whose triples all hold at the place of their event. That is
right if a solution says which triples it used, and no other triple could take it away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra import nodes as n
from spaseq.algebra.graph_changes import INSERTED, looks_inside, wildcard
from spaseq.algebra.nodes import mapped
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.triple_terms import PARTS
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.solutions.lexicon import Lexicon, translated
from spaseq.gpm.solutions.solutions import taken
from spaseq.kb.changing_graph import ChangingGraph
from spaseq.kb.knowledge import KbGraph
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.plan.query_plan import QueryPlan
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
_FOR_EVER = 2**62


# --- which patterns -------------------------------------------------------------------------------


def used_patterns(plan: QueryPlan, graphs: Collection[str]) -> Used | None:
    """The triple patterns over changing graphs of each GPM; None if changes come one by one."""
    if plan.patterns.memberships or any(gpm.correlation for gpm in plan.patterns.gpms):
        return None
    found = []
    for gpm in plan.patterns.gpms:
        if not _is_sure(gpm.pattern, graphs):
            return None
        own = [*_used(gpm.pattern, graphs)]
        names = {t.name for _, p in own for t in p.terms if isinstance(t, ast.Var)}
        if not names <= visible(possible(gpm.pattern)):
            return None
        found.append(own)
    return found


Used = list[list[tuple[str, n.TriplePattern]]]
"""(graph, triple pattern) of each GPM."""


def _reads(pattern: n.Pattern, graphs: Collection[str]) -> bool:
    """Whether a pattern may look into a graph that changes."""
    found = False

    def look(part: n.Pattern) -> n.Pattern:
        nonlocal found
        if isinstance(part, n.Graph):
            found |= not isinstance(part.name, str) or part.name[1:-1] in graphs
        return mapped(part, look)

    look(pattern)
    return found


def _is_sure(pattern: n.Pattern, graphs: Collection[str]) -> bool:
    """Whether solutions over more triples can be told from those over fewer."""
    expr = getattr(pattern, "expr", None)
    if expr is not None and any(isinstance(node, ast.Exists) for node in walk(expr)):
        return False
    if not _reads(pattern, graphs):
        return True
    match pattern:
        case n.Join(left, right):
            return _is_sure(left, graphs) and _is_sure(right, graphs)
        case n.LeftJoin(left, right) | n.Minus(left, right):
            return _is_sure(left, graphs) and not _reads(right, graphs)
        case n.Filter() | n.Extend():
            return _is_sure(pattern.pattern, graphs)
        case n.Graph(name, inner):
            return isinstance(name, str) and _is_conjunction(inner)
    return False


def _is_conjunction(pattern: n.Pattern) -> bool:
    match pattern:
        case n.BGP(triples):
            return not any(triple.predicate in PARTS for triple in triples)
        case n.Join(left, right):
            return _is_conjunction(left) and _is_conjunction(right)
        case n.Filter(expr, inner):
            exists = any(isinstance(node, ast.Exists) for node in walk(expr))
            return not exists and _is_conjunction(inner)
    return False


def _used(
    pattern: n.Pattern, graphs: Collection[str], graph: str | None = None
) -> Iterator[tuple[str, n.TriplePattern]]:
    """The triple patterns over changing graphs, each with its graph."""
    match pattern:
        case n.BGP(triples):
            yield from ((graph, triple) for triple in triples if graph is not None)
        case n.Graph(name, inner):
            iri = name[1:-1] if isinstance(name, str) else ""
            yield from _used(inner, graphs, iri if iri in graphs else None)
        case n.Join(left, right):
            yield from _used(left, graphs, graph)
            yield from _used(right, graphs, graph)
        case n.LeftJoin(left, _) | n.Minus(left, _):
            yield from _used(left, graphs, graph)
        case n.Filter() | n.Extend():
            yield from _used(pattern.pattern, graphs, graph)


# --- which triples, and when ----------------------------------------------------------------------


def _starts(texts: TextArray, mark: str) -> Bools:
    found: Bools = pc.starts_with(texts, mark).to_numpy(zero_copy_only=False)
    return found


ANY = -1
"""Stands for a wildcard among codes."""


def _wanted(column: TermColumn, terms: ExtendedTerms) -> tuple[Int64s, Bools]:
    """The terms of n changes: codes [n], or ANY; which look inside a triple term [n]."""
    column = column.compact()
    texts = column.terms
    is_any = _starts(texts, wildcard(""))
    inside = np.zeros(len(texts), np.bool_)
    for number in np.flatnonzero(_starts(texts, "<<")).tolist():
        inside[number] = looks_inside(texts[number].as_py())
    code = np.full(len(texts), ANY, np.int64)
    code[~is_any] = terms.encode(texts.filter(pa.array(~is_any)).to_pylist())
    return code[column.codes], inside[column.codes]


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
        cls, rows: SolutionBatch, places: Int64s, graphs: Int64s, terms: ExtendedTerms
    ) -> PlacedChanges:
        """The changes of n rows at some places [n], each of a graph [n]; terms are added.

        The rows of a change stand at one place.
        """
        bound = rows.values[HANDED_ON[0]].codes != UNBOUND
        rows, places, graphs = rows.take(np.flatnonzero(bound)), places[bound], graphs[bound]
        (s, _), (o, inside) = (_wanted(rows.values[HANDED_ON[i]], terms) for i in (0, 2))
        marked = rows.values[HANDED_ON[1]].compact()
        comes = _starts(marked.terms, INSERTED)[marked.codes]
        p, _ = _wanted(TermColumn(marked.codes, pc.utf8_slice_codeunits(marked.terms, 1)), terms)
        alone = distinct(places[(s == ANY) | (p == ANY) | inside])
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
        self.codes = np.column_stack([s[pair], p[pair], o])[holds].astype(np.int32)
        self.spans = np.column_stack([since, until])[holds]
        was, now = np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.bool_)
        was[triple[len(whole) :]] = True
        now[triple[holds & (until == _FOR_EVER)]] = True
        at = keys >> _BITS
        self._s, self._p, self._o = s[at], p[at], keys & (2**_BITS - 1)
        self._gone, self._come = was & ~now, now & ~was

    def union(self) -> KbGraph:
        """The graph with all triples that come at some place."""
        return self._graph.with_more(*self.codes.T.astype(np.int64))

    def finish(self) -> bool:
        """Make all changes; whether the graph is another one then."""
        gone, come = self._gone, self._come
        self._graph.remove(self._s[gone], self._p[gone], self._o[gone])
        self._graph.add(self._s[come], self._p[come], self._o[come])
        return bool(gone.any() or come.any())

    def intervals(self, terms: Lexicon, lexicon: Lexicon) -> Intervals:
        """When each triple that comes or goes holds, with the codes of a lexicon."""
        codes = translated(self.codes.reshape(-1), terms, lexicon, add=True)
        return Intervals(codes.reshape(-1, 3), self.spans)


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


class Intervals:
    """When triples hold: each from a place on, and before another one.

    Args:
        codes: int32 [m, 3], subject, predicate and object.
        spans: int64 [m, 2], the two places.
    """

    def __init__(self, codes: Int32s, spans: Int64s) -> None:
        self._of: dict[int, tuple[Int64s, Int64s, Int64s]] = {}
        for p in distinct(codes[:, 1]).tolist():
            own = codes[:, 1] == p
            keys = _keys(codes[own, 0], codes[own, 2])
            order = np.lexsort((spans[own, 0], keys))
            self._of[p] = keys[order], spans[own, 0][order], spans[own, 1][order]

    def hold(self, s: Int32s, p: Int32s, o: Int32s, places: Int64s) -> Bools:
        """Which of n triples hold at their places [n]; what neither comes nor goes holds."""
        found: Bools = np.ones(len(places), np.bool_)
        for predicate, (known, since, until) in self._of.items():
            rows = np.flatnonzero(p == predicate)
            keys, at = _keys(s[rows], o[rows]), places[rows]
            own, rank = np.unique(known, return_inverse=True)
            number = np.searchsorted(own, keys)
            there = number < len(own)
            there[there] = own[number[there]] == keys[there]
            rows, number, at = rows[there], number[there], at[there]
            width = int(max(at.max(initial=0), since.max(initial=0))) + 2
            place = np.searchsorted(rank * width + since + 1, number * width + at + 1, "right") - 1
            right = np.maximum(place, 0)
            found[rows] = (place >= 0) & (rank[right] == number) & (until[right] > at)
        return found


def _keys(s: Int32s, o: Int32s) -> Int64s:
    keys: Int64s = (s.astype(np.int64) << _BITS) | o.astype(np.int64)
    return keys


@dataclass(frozen=True, slots=True)
class Holding:
    """Leaves those solutions whose triples hold at the places of their events.

    Attributes:
        used: the triple patterns of each GPM.
        graphs: by IRI, those that change.
        terms: the table of the graphs' codes.
        places: int64 [n], of the n events of the batch.
    """

    used: Used
    graphs: dict[str, TimedGraph]
    terms: ExtendedTerms
    places: Int64s

    def __call__(self, gpm: int, found: EventSolutions, lexicon: Lexicon) -> EventSolutions:
        """The solutions of a GPM that count."""
        at = self.places[found.event]
        kept: Bools = np.ones(len(at), np.bool_)
        read = {iri for iri, _ in self.used[gpm]} & self.graphs.keys()
        known = {iri: self.graphs[iri].intervals(self.terms, lexicon) for iri in read}
        for iri, pattern in self.used[gpm]:
            if iri in known:
                s, p, o = (_column(term, found, lexicon) for term in pattern.terms)
                kept &= known[iri].hold(s, p, o, at)
        if kept.all():
            return found
        return EventSolutions(found.event[kept], taken(found.columns, kept), found.terms)


def _column(term: n.PatternTerm, found: EventSolutions, lexicon: Lexicon) -> Int32s:
    if isinstance(term, ast.Var):
        return np.asarray(found.columns[term.name], np.int32)
    return np.full(len(found.event), lexicon.encode([str(term)])[0], np.int32)
