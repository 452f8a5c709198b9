"""Basic graph patterns unified with the template of a lift, and evaluated without its triples.

A pattern of n triple patterns has a *way* for each choice of n triples of the template that it
unifies with. A row has at most one solution in each way. If a pattern has several ways, two of them
may give the same solution, as a graph is a set: then solutions are made distinct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.lang import ast
from spaseq.lift.lifted_graphs import LiftedEvents, LiftedGraphs, Triple

MOST_WAYS = 16
"""A pattern with more ways is evaluated on triples."""


@dataclass(frozen=True, slots=True)
class Way:
    """One choice of triples of the template, by number, for the triple patterns of a pattern.

    `columns` has the term of the template that binds each variable; `equal` are terms that must be
    the same in a row, the first of them a variable of the lift.
    """

    triples: tuple[int, ...]
    columns: Mapping[str, PatternTerm]
    equal: tuple[tuple[ast.Var, PatternTerm], ...]


def unified(triples: Sequence[TriplePattern], template: Sequence[Triple]) -> list[Way] | None:
    """The ways of a basic graph pattern; None if there are too many.

    >>> from spaseq.lang.ast import Var
    >>> template = [(Var("e"), "<http://e/speed>", Var("v")), (Var("e"), "<http://e/unit>", '"km"')]
    >>> pattern = TriplePattern(Var("x"), "<http://e/speed>", Var("speed"))
    >>> unified([pattern], template)[0].columns
    {'x': Var(name='e'), 'speed': Var(name='v')}
    """
    choices = [
        [number for number, own in enumerate(template) if _may_match(triple, own)]
        for triple in triples
    ]
    if prod(map(len, choices)) > MOST_WAYS:
        return None
    ways = (_way(triples, template, chosen) for chosen in product(*choices))
    return [way for way in ways if way is not None]


def _may_match(triple: TriplePattern, own: Triple) -> bool:
    return all(
        isinstance(term, ast.Var) or isinstance(made, ast.Var) or term == made
        for term, made in zip(triple.terms, own, strict=True)
    )


def _way(
    triples: Sequence[TriplePattern], template: Sequence[Triple], chosen: tuple[int, ...]
) -> Way | None:
    """The way of one choice; None if no row can have a solution."""
    columns: dict[str, PatternTerm] = {}
    equal: dict[tuple[ast.Var, PatternTerm], None] = {}
    for triple, number in zip(triples, chosen, strict=True):
        for term, made in zip(triple.terms, template[number], strict=True):
            other = columns.setdefault(term.name, made) if isinstance(term, ast.Var) else term
            if made == other:
                continue
            if isinstance(made, ast.Var):
                equal[made, other] = None
            elif isinstance(other, ast.Var):
                equal[other, made] = None
            else:
                return None
    return Way(tuple(sorted({*chosen})), columns, tuple(equal))


def way_rows(way: Way, events: LiftedEvents) -> Int64s:
    """The events with a solution, ascending."""
    mask = events.graphs.remembered((way.triples, way.equal), lambda: _mask(way, events.graphs))
    if mask is None:
        return np.arange(len(events), dtype=np.int64)
    return np.flatnonzero(mask if events.rows is None else mask[events.rows])


def _mask(way: Way, graphs: LiftedGraphs) -> Bools | None:
    """The rows with a solution; None if all have one."""
    mask = graphs.rows_of(way.triples)
    for own in _equal_rows(way, graphs):
        if own is not None:
            mask = own if mask is None else mask & own
    return mask


def _equal_rows(way: Way, graphs: LiftedGraphs) -> Iterator[Bools | None]:
    for one, other in way.equal:
        if isinstance(other, str):
            yield graphs.rows_with(one, other)
        else:
            yield graphs.codes(one) == graphs.codes(other)
