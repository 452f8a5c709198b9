"""The bindings from which a pattern over a graph of the knowledge base is searched."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.scope import possible
from spaseq.gpm.patterns.active_graph import ActiveGraph
from spaseq.gpm.solutions.lexicon import translated
from spaseq.gpm.solutions.solutions import Solutions


def is_bound(pattern: n.Pattern, active: ActiveGraph) -> bool:
    """Whether solutions that the pattern's will be joined with bind one of its variables."""
    names = possible(pattern)
    return any(not names.isdisjoint(given.columns) for given in active.known)


def seeds_of(active: ActiveGraph, stored: Collection[str]) -> list[Solutions]:
    """The distinct bindings of a pattern's variables in each known sequence of solutions.

    To join the pattern with them leaves out only solutions that are compatible with no known one,
    and repeats none. `stored` are variables that every solution of the pattern binds to a term of
    the graph. The sequences with most variables come first.
    """
    found = [_seed(given, active, stored) for given in active.known]
    return sorted(filter(None, found), key=lambda seed: -len(seed.columns))


def _seed(given: Solutions, active: ActiveGraph, stored: Collection[str]) -> Solutions | None:
    names = [v for v in given.columns if v in stored and not given.may_be_unbound(v)]
    if not names:
        return None
    lexicon = active.source.lexicon
    codes = [translated(given.columns[v], given.lexicon, lexicon, add=False) for v in names]
    table = np.stack(codes, axis=1)
    table = np.unique(table[(table >= 0).all(axis=1)], axis=0)
    columns = {v: np.ascontiguousarray(table[:, i]) for i, v in enumerate(names)}
    return Solutions(len(table), None, columns, lexicon)
