"""What a wait remembers of loops: counted repetitions, and whether UNTIL forbids more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from spaseq.automaton.program.counters import Action, Counts, RepeatBounds, counts_after
from spaseq.records import record

Stops: TypeAlias = tuple[tuple[int, bool], ...]
"""Pairs of an open loop with UNTIL, and whether its GPM has been seen; sorted."""


@record
class LoopMemory:
    """The memory of a wait."""

    counts: Counts = ()
    stops: Stops = ()

    def after(
        self,
        actions: Iterable[Action],
        bounds: Mapping[int, RepeatBounds],
        untils: Collection[int],
    ) -> LoopMemory | None:
        """The memory after the actions of an edge; None if bounds or UNTIL forbid the edge.

        `untils` has the loops with UNTIL.

        >>> again = [Action("again", 0)]
        >>> LoopMemory(stops=((0, False),)).after(again, {}, {0})
        LoopMemory(counts=(), stops=((0, False),))
        >>> LoopMemory(stops=((0, True),)).after(again, {}, {0}) is None
        True
        """
        counts = counts_after(bounds, self.counts, actions)
        if counts is None:
            return None
        stops = dict(self.stops)
        for action in actions:
            if action.repeat in untils:
                stopped = stops.pop(action.repeat, False)
                if action.kind == "again" and stopped:
                    return None
                if action.kind != "exit":
                    stops[action.repeat] = False
        return LoopMemory(counts, tuple(sorted(stops.items())))

    def only(self, repeat: int) -> LoopMemory:
        """The memory of a single loop."""
        counts = tuple(pair for pair in self.counts if pair[0] == repeat)
        return LoopMemory(counts, tuple(pair for pair in self.stops if pair[0] == repeat))
