"""Counters of repetitions, and the loop memory of waiting runs.

A *counted* repetition has one copy of its body, whatever its bounds. Each partial match counts its
repetitions, and the bounds say which edges it may follow. So an automaton needs no state for every
number of repetitions. (Compare the counting automata of Turoňová et al., *Regex Matching with
Counting-Set Automata*, OOPSLA 2020.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from spaseq.records import record

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of an open repeated step (its id) and its repetitions so far, sorted."""

Stops: TypeAlias = tuple[tuple[int, bool], ...]
"""Pairs of an open loop with UNTIL, and whether its GPM has been seen; sorted."""


@record
class Action:
    """The effect of an edge on a repeated step.

    `opens`: the step is the first on a way through a bracket.
    """

    kind: Literal["start", "again", "exit"]
    repeat: int
    opens: bool = False


@record
class CountTest:
    """A comparison of the number of repetitions of a counted step, before the edge counts."""

    repeat: int
    operator: Literal["<", "="]
    number: int


@record
class RepeatBounds:
    """The bounds of a repeated step (`maximum` None: no upper bound)."""

    minimum: int
    maximum: int | None

    @property
    def top(self) -> int:
        """The count at which counting stops: further repetitions have no effect."""
        return max(self.minimum, 1) if self.maximum is None else self.maximum

    def allows_more(self, done: int) -> bool:
        """Whether another repetition may follow."""
        return self.maximum is None or done < self.maximum

    def counted(self, done: int) -> int:
        """The count after one more repetition."""
        return min(done + 1, self.top)


def counts_after(
    bounds: Mapping[int, RepeatBounds], counts: Counts, actions: Iterable[Action]
) -> Counts | None:
    """The counts after the actions of an edge; None if the bounds forbid the edge.

    `bounds` has the counted repetitions.

    >>> again = [Action("again", 0)]
    >>> counts_after({0: RepeatBounds(1, 2)}, ((0, 1),), again)
    ((0, 2),)
    >>> counts_after({0: RepeatBounds(1, 2)}, ((0, 2),), again) is None
    True

    A step that starts counts from 0, whatever an earlier loop around it has left:

    >>> counts_after({0: RepeatBounds(2, 2)}, ((0, 2),), [Action("start", 0)])
    ((0, 1),)
    """
    if not bounds or not actions:
        return counts
    after = dict(counts)
    for action in actions:
        bound = bounds.get(action.repeat)
        if bound is None:
            continue
        done = after.pop(action.repeat, 0)
        if action.kind == "start":
            done = 0
        if action.kind == "exit":
            if done < bound.minimum:
                return None
        elif bound.allows_more(done):
            after[action.repeat] = bound.counted(done)
        else:
            return None
    return tuple(sorted(after.items()))


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
