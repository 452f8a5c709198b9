"""Evaluation of graph patterns on window events: EVENT, and aggregates that are exact."""

from __future__ import annotations

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Int64s
from spaseq.expr.exact_aggregates import EXACT
from spaseq.gpm.graphs.triple_source import ActiveGraph
from spaseq.gpm.graphs.vertical_partition import (
    SolutionsPartition,
    WindowContent,
    WindowPartition,
    ranges,
)
from spaseq.gpm.patterns.operators import PatternOperators
from spaseq.gpm.solutions import modifiers
from spaseq.gpm.solutions.solutions import Solutions

_PLACE = n.RESERVED + "@"
"""Prefix of the variables that hold the position of a block's event in the window."""

_ORDERED = ("SAMPLE", "GROUP_CONCAT")


class WindowOperators(PatternOperators):
    """Evaluates patterns on window events; the source is a `WindowPartition`.

    Aggregates do not depend on the order of their operands, or use the order of the events.
    """

    _places = True

    def for_pattern(self, pattern: n.Pattern) -> None:
        """Record whether positions of events matter to a pattern."""
        self._places = _needs_order(pattern)

    def _evaluate(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        if isinstance(active.source, SolutionsPartition) and pattern == active.source.pattern:
            return active.source.given
        match pattern:
            case n.EventBlock():
                assert isinstance(active.source, WindowPartition)
                return self._events(pattern, active.source)
            case n.Group(inner, keys, aggregates):
                solutions = self.solutions(inner, active.alone())
                if any(aggregate.function in _ORDERED for _, aggregate in aggregates):
                    solutions = _in_order(solutions)
                events, options = active.events, self._options
                return modifiers.grouped(solutions, keys, aggregates, events, options, EXACT)
        return super()._evaluate(pattern, active)

    def _events(self, pattern: n.EventBlock, window: WindowPartition) -> Solutions:
        """The solutions on the events of each window event, added up."""
        content = window.content
        inner: Solutions = content.source.remembered(
            pattern, lambda: self._of_content(pattern, content), _size
        )
        assert inner.event is not None
        first = np.searchsorted(inner.event, window.member)
        sizes = np.searchsorted(inner.event, window.member, "right") - first
        current_budget().spend(int(sizes.sum()))
        rows = ranges(first, sizes)
        taken = inner.take(rows)
        owner: Int64s = np.repeat(window.owner, sizes)
        solutions = Solutions(len(rows), owner, taken.columns, inner.lexicon)
        if not self._places:
            return solutions
        places = [f'"{number:012}"' for number in range(len(content.stream))]
        codes = inner.lexicon.encode(places)[np.repeat(window.member, sizes)]
        return solutions.with_column(f"{_PLACE}{pattern.number:06}", codes)

    def _of_content(self, pattern: n.EventBlock, content: WindowContent) -> Solutions:
        source = content.source
        active = ActiveGraph(source, len(source.batch))
        solutions = active.spread(self.solutions(pattern.pattern, active))
        if pattern.stream is not None and solutions.event is not None:
            streams = [i for i, name in enumerate(content.names) if name == pattern.stream]
            solutions = solutions.take(np.isin(content.stream[solutions.event], streams))
        return solutions


def _size(solutions: Solutions) -> int:
    """The bytes of solutions."""
    return solutions.size * (8 + 4 * len(solutions.columns))


def _needs_order(pattern: n.Pattern) -> bool:
    if isinstance(pattern, n.Group) and any(a.function in _ORDERED for _, a in pattern.aggregates):
        return True
    return any(map(_needs_order, n.children(pattern)))


def _in_order(solutions: Solutions) -> Solutions:
    """The solutions in the order of SAMPLE and GROUP_CONCAT: by positions, then by terms."""
    places = sorted(v for v in solutions.columns if v.startswith(_PLACE))
    shown = sorted(v for v in solutions.columns if not n.is_reserved(v))
    keys = [_text_ranks(solutions, v) for v in (*places, *shown)]
    if solutions.event is not None:
        keys.insert(0, solutions.event)
    return solutions.take(np.lexsort(keys[::-1])) if keys else solutions


def _text_ranks(solutions: Solutions, variable: str) -> Int64s:
    """The rank of each solution's term by its N-Triples text; unbound comes first."""
    codes, which = np.unique(solutions.columns[variable], return_inverse=True)
    texts = ["" if code < 0 else solutions.lexicon[code] for code in codes.tolist()]
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[which.reshape(-1)]
