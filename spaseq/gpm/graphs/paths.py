"""Property paths over events and graphs, in columns (SPARQL 1.1 section 18.4).

The algebra has turned sequences, inverses and alternatives outside of repetitions into joins and
unions. This module evaluates repetitions and negated property sets.
"""

from __future__ import annotations

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.graphs.triple_source import TripleSource, TripleTable
from spaseq.gpm.solutions.key_index import KeyIndex, expanded
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.terms.term import iri_text, kind_of


def path_solutions(source: TripleSource, pattern: n.Path, events: int) -> Solutions:
    """The solutions of a path pattern over a source with `events` events (0 for a graph)."""
    constants = {
        place: int(source.lexicon.encode([term])[0])
        for place, term in (("s", pattern.subject), ("o", pattern.object))
        if isinstance(term, str)
    }
    found = _Paths(source, events, sorted(set(constants.values()))).ends(pattern.path)
    keep = np.ones(len(found), np.bool_)
    columns: dict[str, Int32s] = {}
    for term, place, codes in (
        (pattern.subject, "s", found.s),
        (pattern.object, "o", found.o),
    ):
        if not isinstance(term, ast.Var):
            keep &= codes == constants[place]
        elif term.name in columns:
            keep &= columns[term.name] == codes
        else:
            columns[term.name] = codes
    return Solutions(len(found), found.event, columns, source.lexicon).take(keep)


class _Paths:
    """Evaluates paths to pairs of nodes; `extra` are the codes of the pattern's constants."""

    def __init__(self, source: TripleSource, events: int, extra: list[int]) -> None:
        self._source, self._events, self._extra = source, events, extra

    def ends(self, path: ast.Path) -> TripleTable:
        """The pairs (first node, last node) that the path connects, in order of events."""
        match path:
            case ast.Iri(value):
                return self._source.select(iri_text(value), None, None)
            case ast.PathInverse(inner):
                return _inverse(self.ends(inner))
            case ast.PathFromNode(inner):
                return self._from_nodes(self.ends(inner))
            case ast.PathSequence(parts):
                first, *rest = map(self.ends, parts)
                for part in rest:
                    first = _composed(first, part)
                return first
            case ast.PathAlternative(parts):
                return _together([self.ends(part) for part in parts])
            case ast.PathNegated(forward, inverse):
                return self._negated(forward, inverse)
            case ast.PathRepeat(inner, modifier):
                steps = self.ends(inner)
                if modifier != "?":
                    steps = _closure(steps)
                if modifier != "+":
                    steps = _together([steps, self._nodes()])
                return _distinct(steps)

    def _from_nodes(self, table: TripleTable) -> TripleTable:
        """The pairs that start at an IRI or blank node: no other term can be a subject."""
        starts, which = np.unique(table.s, return_inverse=True)
        nodes = [kind_of(t) in ("iri", "bnode") for t in self._source.lexicon.take(starts)]
        return table.take(np.array(nodes, np.bool_)[which])

    def _negated(self, forward: tuple[ast.Iri, ...], inverse: tuple[ast.Iri, ...]) -> TripleTable:
        every = self._source.select(None, None, None)
        found = []
        if forward or not inverse:
            found.append(self._without(every, forward))
        if inverse:
            found.append(_inverse(self._without(every, inverse)))
        return _together(found)

    def _without(self, every: TripleTable, predicates: tuple[ast.Iri, ...]) -> TripleTable:
        assert every.p is not None
        codes = [self._source.lexicon.code(iri_text(p.value)) for p in predicates]
        rest = every.take(~np.isin(every.p, codes))
        return TripleTable(rest.event, rest.s, None, rest.o)

    def _nodes(self) -> TripleTable:
        """Paths of length zero: each node of a graph and each constant, paired with itself."""
        every = self._source.select(None, None, None)
        extra = np.array(self._extra, np.int32)
        event = None
        if every.event is not None:
            added = np.repeat(np.arange(self._events, dtype=np.int64), len(extra))
            event = np.concatenate([every.event, every.event, added])
            extra = np.tile(extra, self._events)
        codes = np.concatenate([every.s, every.o, extra])
        table = TripleTable(event, codes, None, codes)
        return table if event is None else table.take(np.argsort(event, kind="stable"))


def _inverse(table: TripleTable) -> TripleTable:
    return TripleTable(table.event, table.o, None, table.s)


def _together(tables: list[TripleTable]) -> TripleTable:
    s = np.concatenate([t.s for t in tables])
    o = np.concatenate([t.o for t in tables])
    if tables[0].event is None:
        return TripleTable(None, s, None, o)
    event = np.concatenate([t.event for t in tables if t.event is not None])
    return TripleTable(event, s, None, o).take(np.argsort(event, kind="stable"))


def _composed(first: TripleTable, second: TripleTable) -> TripleTable:
    """The relational composition of two tables of pairs."""
    if first.event is None or second.event is None:
        rows, others = KeyIndex([second.s], len(second)).match([first.o], len(first))
        return TripleTable(None, first.s[rows], None, second.o[others])
    index = KeyIndex([second.event, second.s], len(second))
    rows, others = index.match([first.event, first.o], len(first))
    return TripleTable(first.event[rows], first.s[rows], None, second.o[others])


def _distinct(table: TripleTable) -> TripleTable:
    nodes, s, o = _numbered(table)
    return _pairs(distinct(s * len(nodes) + o), nodes, table)


def _closure(table: TripleTable) -> TripleTable:
    """The transitive closure of the pairs, by semi-naive iteration."""
    nodes, s, o = _numbered(table)
    edges: Int64s = distinct(s * len(nodes) + o)
    reached = new = edges
    if not len(edges):
        return table
    starts, targets = edges // len(nodes), edges % len(nodes)
    while len(new):
        ends = new % len(nodes)
        low = np.searchsorted(starts, ends, "left")
        rows, steps = expanded(low, np.searchsorted(starts, ends, "right") - low)
        further = distinct(new[rows] // len(nodes) * len(nodes) + targets[steps])
        new = np.setdiff1d(further, reached, assume_unique=True)
        reached = distinct(np.concatenate((reached, new)))
    return _pairs(reached, nodes, table)


def _numbered(table: TripleTable) -> tuple[Int64s, Int64s, Int64s]:
    """(distinct (event, node) keys, number of each first node, number of each last node)."""
    event = np.zeros(len(table), np.int64) if table.event is None else table.event
    keys = np.concatenate([event << 32 | table.s, event << 32 | table.o])
    nodes, numbers = np.unique(keys, return_inverse=True)
    numbers = numbers.astype(np.int64)
    return nodes, numbers[: len(table)], numbers[len(table) :]


def _pairs(keys: Int64s, nodes: Int64s, like: TripleTable) -> TripleTable:
    """The inverse of `_numbered`: pairs of node numbers as a table."""
    first, last = (
        (nodes[keys // len(nodes)], nodes[keys % len(nodes)]) if len(keys) else (keys, keys)
    )
    event = None if like.event is None else first >> 32
    s, o = (first & 0xFFFFFFFF).astype(np.int32), (last & 0xFFFFFFFF).astype(np.int32)
    return TripleTable(event, s, None, o)
