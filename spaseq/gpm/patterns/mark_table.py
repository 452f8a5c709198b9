"""The required marks of many graph patterns, looked up in a batch of events all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.patterns.required_triples import Marks
from spaseq.records import record

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
