"""Splitting GRAPH blocks into components that share no variable.

`GRAPH <kb> { ?a :name ?x . ?b :name ?y }` over n names has n * n solutions. Joining the components
with the event one by one avoids this product.
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.algebra import nodes as n
from spaseq.algebra.folding import folded
from spaseq.algebra.scope import possible

Names = frozenset[str]


def components(parts: Sequence[n.Pattern]) -> list[tuple[list[n.Pattern], Names]]:
    """The parts in groups that share no variable, each with its variables."""
    groups: list[tuple[list[n.Pattern], Names]] = []
    for part in parts:
        names = possible(part)
        apart = [g for g in groups if not g[1] & names]
        touching = [g for g in groups if g[1] & names]
        members = [p for g in touching for p in g[0]] + [part]
        groups = [*apart, (members, names.union(*(g[1] for g in touching)))]
    return groups


def joined(parts: Sequence[n.Pattern]) -> n.Pattern:
    """The join of at least one pattern; the triple patterns of all BGPs become one BGP."""
    triples = tuple(t for part in parts if isinstance(part, n.BGP) for t in part.triples)
    operands: list[n.Pattern] = [n.BGP(triples)] if triples else []
    operands.extend(part for part in parts if not isinstance(part, n.BGP))
    return folded(n.Join, operands)
