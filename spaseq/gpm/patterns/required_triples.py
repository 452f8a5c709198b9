"""What an event must have, so that a graph pattern can have a solution on it.

A run of many queries looks up the events that have the rarest of these triples, in one index for
all queries. A pattern is evaluated on these events only, and not at all if there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.triple_terms import is_part
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.records import record

Marks: TypeAlias = "frozenset[tuple[str, str]]"
"""Pairs of a predicate and an object (N-Triples texts)."""

_NONE: Marks = frozenset()


def required_marks(pattern: n.Pattern) -> Marks:
    """Predicates and objects of triples that each event with a solution has.

    >>> from spaseq.lang import ast
    >>> kind = n.TriplePattern(ast.Var("s"), "<kind>", "<k1>")
    >>> speed = n.TriplePattern(ast.Var("s"), "<speed>", ast.Var("v"))
    >>> [*required_marks(n.LeftJoin(n.BGP((kind, speed)), n.BGP()))]
    [('<kind>', '<k1>')]
    """
    match pattern:
        case n.BGP(triples):
            pairs = ((triple.predicate, triple.object) for triple in triples if not is_part(triple))
            return frozenset((p, o) for p, o in pairs if isinstance(p, str) and isinstance(o, str))
        case n.Join(left, right):
            return required_marks(left) | required_marks(right)
        case n.Union(left, right):
            return required_marks(left) & required_marks(right)
        case n.LeftJoin(left) | n.Minus(left):
            return required_marks(left)
        case (
            n.Filter(pattern=inner)
            | n.Extend(inner)
            | n.Project(inner)
            | n.Distinct(inner)
            | n.OrderBy(inner)
            | n.Slice(inner)
        ):
            return required_marks(inner)
        case n.Group(inner, keys) if keys:
            return required_marks(inner)
        case _:
            return _NONE


_EVERYWHERE = 2**62
"""The number of triples with a mark that is not required."""


@record
class MarkedTriples:
    """The triples of a batch by mark, and the rarest mark of each of p patterns.

    `fewest` int64 [p] is the number of triples with the pattern's rarest mark; a pattern without
    marks has a large number. Patterns with 0 have no solution.
    """

    fewest: Int64s
    rarest: Int64s
    first: Int64s
    end: Int64s
    events: Sequence[Int64s]

    def events_of(self, patterns: Indices, size: int) -> Bools:
        """Which of all `size` events some patterns may have solutions on."""
        found = np.zeros(size, np.bool_)
        for mark in np.unique(self.rarest[patterns]).tolist():
            if mark == len(self.events):
                found[:] = True
                break
            found[self.events[mark][self.first[mark] : self.end[mark]]] = True
        return found


class MarkTable:
    """The marks (`required_marks`) of p patterns."""

    def __init__(self, marks: Sequence[Marks]) -> None:
        numbers: dict[tuple[str, str], int] = {}
        for own in marks:
            for mark in own:
                numbers.setdefault(mark, len(numbers))
        most = max((len(own) for own in marks), default=0)
        self._of = np.full((len(marks), most + 1), len(numbers), np.int64)
        for row, own in enumerate(marks):
            for place, mark in enumerate(own):
                self._of[row, place] = numbers[mark]
        texts: dict[str, int] = {}
        self._text_of = np.array([texts.setdefault(o, len(texts)) for _, o in numbers], np.int64)
        self._texts = [*texts]
        self._predicates = [predicate for predicate, _ in numbers]
        self._by_predicate: dict[str, list[int]] = {}
        for (predicate, _), number in numbers.items():
            self._by_predicate.setdefault(predicate, []).append(number)

    def triples(self, index: VerticalPartition) -> MarkedTriples:
        """The marked triples of a batch."""
        codes = index.lexicon.find(self._texts)[self._text_of]
        first = np.zeros(len(codes) + 1, np.int64)
        end = np.full(len(codes) + 1, _EVERYWHERE)
        for predicate, numbers in self._by_predicate.items():
            objects, _ = index.by_object(predicate)
            own = codes[numbers]
            first[numbers] = np.searchsorted(objects, own)
            end[numbers] = np.searchsorted(objects, own, "right")
        counts = (end - first)[self._of]
        place = counts.argmin(axis=1)
        rows = np.arange(len(self._of))
        events = [index.by_object(predicate)[1] for predicate in self._predicates]
        return MarkedTriples(counts[rows, place], self._of[rows, place], first, end, events)
