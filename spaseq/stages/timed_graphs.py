"""Many changes of graphs at once: a pattern is evaluated over all triples that hold at some time.

Each triple that comes or goes has intervals of places among the rows of a batch. Of the solutions
over the union of all triples those stay whose triples all hold at the place of their event. That is
right if a solution says which triples it used, and no other triple could take it away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.graph_changes import GraphChange, is_wildcard, looks_inside
from spaseq.algebra.nodes import mapped
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.triple_terms import PARTS
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.solutions.lexicon import Lexicon
from spaseq.gpm.solutions.solutions import taken
from spaseq.kb.changing_graph import ChangingGraph
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.terms.term import Triple

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


@dataclass(slots=True)
class TimedGraph:
    """A graph whose triples come and go at the places of some rows.

    Attributes:
        graph: as it was before the first of these rows; it does not change.
        come: triples that come at some place, or come again.
        turns: (place, triple, whether it comes), in order.
    """

    graph: ChangingGraph
    come: set[Triple] = field(default_factory=set)
    turns: list[tuple[int, Triple, bool]] = field(default_factory=list)
    _now: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # objects
    _made: dict[tuple[str, str], int] = field(default_factory=dict)  # how many have come

    def prepare(self, changes: Iterable[GraphChange]) -> None:
        """Look up at once what some changes need to know."""
        triples = (triple for own in changes for triple in (*own.deleted, *own.inserted))
        pairs = {(s, p) for s, p, _ in triples if not (is_wildcard(s) or is_wildcard(p))}
        self._now = self.graph.objects(pairs)

    def take(self, place: int, change: GraphChange) -> bool:
        """Take a change at a place; False if it has to be made by itself."""
        if not all(map(_is_simple, change.deleted)):
            return False
        most = thresholds.current.graph_values
        if any(self._made.get((s, p), 0) >= most for s, p, _ in change.inserted):
            return False
        for s, p, o in change.deleted:
            objects = self._objects(s, p)
            gone = [*objects] if is_wildcard(o) else [o] if o in objects else []
            objects.difference_update(gone)
            self.turns += ((place, (s, p, each), False) for each in gone)
        for triple in change.inserted:
            s, p, o = triple
            objects = self._objects(s, p)
            if o not in objects:
                objects.add(o)
                self.come.add(triple)
                self._made[s, p] = self._made.get((s, p), 0) + 1
                self.turns.append((place, triple, True))
        return True

    def _objects(self, s: str, p: str) -> set[str]:
        return self._now[s, p]

    def net(self) -> GraphChange:
        """What all these changes make together."""
        last = {triple: comes for _, triple, comes in self.turns}
        gone = tuple(triple for triple, comes in last.items() if not comes)
        return GraphChange(gone, tuple(triple for triple, comes in last.items() if comes))

    def intervals(self, lexicon: Lexicon) -> Intervals:
        """When each triple that comes or goes holds, with the codes of a lexicon."""
        since: dict[Triple, int] = {}
        found: list[tuple[Triple, int, int]] = []
        for place, triple, comes in self.turns:
            if comes:
                since[triple] = place
            else:
                found.append((triple, since.pop(triple, -1), place))
        found += ((triple, place, _FOR_EVER) for triple, place in since.items())
        texts = [text for triple, _, _ in found for text in triple]
        codes = lexicon.encode(texts).reshape(-1, 3)
        spans = np.array([(low, high) for _, low, high in found], np.int64).reshape(-1, 2)
        return Intervals(codes, spans)


def _is_simple(pattern: Triple) -> bool:
    s, p, o = pattern
    return not (is_wildcard(s) or is_wildcard(p) or looks_inside(o))


class Intervals:
    """When triples hold: each from a place on, and before another one.

    Args:
        codes: int32 [m, 3], subject, predicate and object.
        spans: int64 [m, 2], the two places.
    """

    def __init__(self, codes: Int32s, spans: Int64s) -> None:
        self._of: dict[int, tuple[Int64s, Int64s, Int64s]] = {}
        for p in np.unique(codes[:, 1]).tolist():
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
            distinct, rank = np.unique(known, return_inverse=True)
            number = np.searchsorted(distinct, keys)
            there = number < len(distinct)
            there[there] = distinct[number[there]] == keys[there]
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
        graphs: by IRI.
        places: int64 [n], of the n events of the batch.
    """

    used: Used
    graphs: dict[str, TimedGraph]
    places: Int64s

    def __call__(self, gpm: int, found: EventSolutions, lexicon: Lexicon) -> EventSolutions:
        """The solutions of a GPM that count."""
        at = self.places[found.event]
        kept: Bools = np.ones(len(at), np.bool_)
        known = {iri: graph.intervals(lexicon) for iri, graph in self.graphs.items() if graph.turns}
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
