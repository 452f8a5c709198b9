"""Window events as a triple source: the union graph of each, and the events that it consists of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.records import record


class ScopedTerms(ListedTerms):
    """Terms whose blank nodes have their labels of answers already."""

    @property
    def has_blank(self) -> bool:
        return False


@record
class WindowContent:
    """The events in some windows, in the order of their streams (docs/windows.md).

    `stream` int32 [n] has the number of each event's stream in `names`.
    """

    source: VerticalPartition
    stream: Int32s
    names: Sequence[str]


class WindowPartition(VerticalPartition):
    """A batch of window events.

    The event `member[i]` of `content` is in the window event `owner[i]`; owners ascend, and so do
    the members of one owner.
    """

    def __init__(
        self,
        batch: EventBatch,
        lexicon: Lexicon,
        content: WindowContent,
        owner: Int64s,
        member: Int64s,
    ) -> None:
        super().__init__(batch, lexicon)
        self.content, self.owner, self.member = content, owner, member

    def part(self, events: Int64s) -> WindowPartition:
        """Some of the window events, numbered from 0."""
        first = np.searchsorted(self.owner, events)
        sizes = np.searchsorted(self.owner, events, "right") - first
        rows = ranges(first, sizes)
        owner = np.repeat(np.arange(len(events), dtype=np.int64), sizes)
        batch = self.batch.take(events)
        return WindowPartition(batch, self.lexicon, self.content, owner, self.member[rows])


class SolutionsPartition(VerticalPartition):
    """Solutions of a pattern as events without triples: each has one of them."""

    def __init__(
        self, batch: EventBatch, lexicon: Lexicon, pattern: n.Pattern, solutions: Solutions
    ) -> None:
        super().__init__(batch, lexicon)
        self.pattern, self.given = pattern, solutions

    def part(self, events: Int64s) -> SolutionsPartition:
        """Some of the solutions, numbered from 0."""
        some = self.given.take(events)
        numbered = Solutions(some.size, np.arange(some.size), some.columns, some.lexicon)
        return SolutionsPartition(self.batch.take(events), self.lexicon, self.pattern, numbered)


def ranges(first: Indices, sizes: Indices) -> Indices:
    """The numbers from `first[i]` on, `sizes[i]` of them, for each i.

    >>> ranges(np.array([5, 2]), np.array([2, 3])).tolist()
    [5, 6, 2, 3, 4]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first - ends + sizes, sizes)
