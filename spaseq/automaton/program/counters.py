"""Counters of repetitions: an automaton need not have a state for every number of repetitions.

A *counted* repetition has one copy of its body, whatever its bounds. Each partial match counts its
own repetitions, and the bounds say which edges it may follow. So states are made by events, not by
bounds. (Compare the counting automata of Turoňová et al., *Regex Matching with Counting-Set
Automata*, OOPSLA 2020.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from spaseq.records import record

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of an open repeated step (its id) and its repetitions so far, sorted."""


@record
class Action:
    """The effect of an edge on a repeated step.

    `opens`: the step begins a way through a bracket, so that nothing stands before it there.
    """

    kind: Literal["start", "again", "exit"]
    repeat: int
    opens: bool = False


@record
class CountTest:
    """A comparison of the repetitions of a counted step so far, before those of an edge."""

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
        """The count at which counting stops: one more repetition changes nothing that matters."""
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
