"""Evaluation of graph patterns on window events: EVENT, and aggregates that are exact."""

from __future__ import annotations

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Int64s
from spaseq.expr.exact_aggregates import EXACT
from spaseq.gpm.graphs.window_partition import (
    SolutionsPartition,
    WindowContent,
    WindowPartition,
    ranges,
)
from spaseq.gpm.patterns.active_graph import ActiveGraph
from spaseq.gpm.patterns.operators import PatternOperators
from spaseq.gpm.solutions import modifiers
from spaseq.gpm.solutions.solutions import Solutions

_PLACE = n.RESERVED + "@"
"""How the variables begin that hold the place of a block's event in the window."""

_ORDERED = ("SAMPLE", "GROUP_CONCAT")


class WindowOperators(PatternOperators):
    """Evaluates patterns on window events; the source is a `WindowPartition`.

    Aggregates do not depend on the order of their operands, or go by the order of the events.
    """

    _places = True

    def for_pattern(self, pattern: n.Pattern) -> None:
        """Note whether places of events matter to a pattern."""
        self._places = _needs_order(pattern)

    def _evaluate(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        if isinstance(active.source, SolutionsPartition) and pattern == active.source.pattern:
            return active.source.given
        match pattern:
            case n.EventBlock():
                assert isinstance(active.source, WindowPartition)
                return self._events(pattern, active.source)
            case n.Group(inner, keys, aggregates):
                found = self.solutions(inner, active.alone())
                if any(own.function in _ORDERED for _, own in aggregates):
                    found = _in_order(found)
                events, options = active.events, self._options
                return modifiers.grouped(found, keys, aggregates, events, options, EXACT)
        return super()._evaluate(pattern, active)

    def _events(self, pattern: n.EventBlock, window: WindowPartition) -> Solutions:
        """The solutions on the events of each window event, added up."""
        content = window.content
        found: Solutions = content.source.remembered(
            pattern, lambda: self._of_content(pattern, content)
        )
        assert found.event is not None
        first = np.searchsorted(found.event, window.member)
        sizes = np.searchsorted(found.event, window.member, "right") - first
        current_budget().spend(int(sizes.sum()))
        rows = ranges(first, sizes)
        taken = found.take(rows)
        owner: Int64s = np.repeat(window.owner, sizes)
        solutions = Solutions(len(rows), owner, taken.columns, found.lexicon)
        if not self._places:
            return solutions
        places = [f'"{place:012}"' for place in range(len(content.stream))]
        codes = found.lexicon.encode(places)[np.repeat(window.member, sizes)]
        return solutions.with_column(f"{_PLACE}{pattern.number:06}", codes)

    def _of_content(self, pattern: n.EventBlock, content: WindowContent) -> Solutions:
        source = content.source
        active = ActiveGraph(source, len(source.batch))
        found = active.spread(self.solutions(pattern.pattern, active))
        if pattern.stream is not None and found.event is not None:
            own = [i for i, name in enumerate(content.names) if name == pattern.stream]
            found = found.take(np.isin(content.stream[found.event], own))
        return found

    def _passing(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        apart = WindowOperators(
            self._knowledge, self._options, self._evaluation, self.services.apart()
        )
        return apart.solutions(pattern, active)


def _needs_order(pattern: n.Pattern) -> bool:
    if isinstance(pattern, n.Group) and any(a.function in _ORDERED for _, a in pattern.aggregates):
        return True
    return any(map(_needs_order, n.children(pattern)))


def _in_order(found: Solutions) -> Solutions:
    """The solutions in the order of SAMPLE and GROUP_CONCAT: by places, then by terms."""
    places = sorted(v for v in found.columns if v.startswith(_PLACE))
    shown = sorted(v for v in found.columns if not n.is_reserved(v))
    keys = [_text_ranks(found, v) for v in (*places, *shown)]
    if found.event is not None:
        keys.insert(0, found.event)
    return found.take(np.lexsort(keys[::-1])) if keys else found


def _text_ranks(found: Solutions, variable: str) -> Int64s:
    """The rank of each solution's term by its N-Triples text; unbound comes first."""
    codes, which = np.unique(found.columns[variable], return_inverse=True)
    texts = ["" if code < 0 else found.lexicon[code] for code in codes.tolist()]
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[which.reshape(-1)]
