"""Edges of events that no path can use are dropped before a search."""

from __future__ import annotations

import numpy as np
import pytest

from spaseq.gpm.graphs.path_automaton import PathAutomaton
from spaseq.gpm.graphs.path_graph import useful_edges
from spaseq.gpm.graphs.triple_source import TripleTable
from spaseq.lang import ast

P, Q = ast.Iri("http://e/p"), ast.Iri("http://e/q")


def table(*edges: tuple[int, int, int]) -> TripleTable:
    """Edges (event, first node, last node), by event."""
    event, s, o = np.array(edges, np.int64).reshape(-1, 3).T
    return TripleTable(event, s.astype(np.int32), None, o.astype(np.int32))


EDGES = {
    P: table((0, 1, 2), (0, 3, 9), (1, 5, 6)),
    Q: table((0, 2, 3), (0, 8, 9), (1, 7, 5)),
}
ALL_P, ALL_Q = [(1, 2), (3, 9), (5, 6)], [(2, 3), (8, 9), (7, 5)]
Pairs = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("path", "p", "q"),
    [
        (ast.PathRepeat(ast.PathSequence((P, Q)), "+"), [(1, 2)], [(2, 3)]),
        (ast.PathRepeat(ast.PathSequence((P, Q)), "*"), [(1, 2)], [(2, 3)]),
        (ast.PathRepeat(ast.PathSequence((Q, P)), "+"), [(3, 9), (5, 6)], [(2, 3), (7, 5)]),
        (ast.PathRepeat(ast.PathSequence((P, ast.PathRepeat(Q, "*"))), "+"), ALL_P, ALL_Q),
        (ast.PathRepeat(ast.PathAlternative((P, ast.PathSequence((P, Q)))), "+"), ALL_P, [(2, 3)]),
    ],
)
def test_an_edge_needs_a_neighbour_in_its_event(path: ast.PathRepeat, p: Pairs, q: Pairs) -> None:
    automaton = PathAutomaton.of(path)
    predicates = [leaf[0].path for leaf in automaton.leaves]
    tables = useful_edges([EDGES[each] for each in predicates], automaton)
    found = {
        each: list(zip(kept.s.tolist(), kept.o.tolist(), strict=True))
        for each, kept in zip(predicates, tables, strict=True)
    }
    assert found == {P: p, Q: q}
