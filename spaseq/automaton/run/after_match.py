"""AFTER MATCH: a kept answer may forbid or mute later ones (docs/meaning.md#mute)."""

from __future__ import annotations

from dataclasses import dataclass, field

from spaseq.algebra.answers import Answer, Instant
from spaseq.automaton.run.matches import SequenceMatch

_NEVER: Instant = (-(2**63), 0)


@dataclass(slots=True)
class AfterMatchFilter:
    """One pass over the answers of a partition, in their order.

    Answers that begin at or before `barrier` are forbidden; for TO FIRST and TO LAST, only answers
    that begin before it. `gpm` is the index of the GPM that TO FIRST and TO LAST name.
    """

    kind: str
    horizon: int
    gpm: int | None = None
    barrier: Instant = _NEVER
    end: Instant = _NEVER  # of the answers being decided, for CONSUME
    coming: Instant = _NEVER  # the barrier after that end, for CONSUME
    firsts: dict[Instant, int] = field(default_factory=dict)  # kept firsts -> their measure

    def forbids(self, answer: Answer) -> bool:
        """Whether a kept answer forbids the next one."""
        match self.kind:
            case "NO SKIP":
                return False
            case "TO NEXT EVENT":
                return answer.first in self.firsts
            case "CONSUME":
                if answer.end > self.end:
                    self.barrier, self.end = max(self.barrier, self.coming), answer.end
                return answer.first <= self.barrier
            case "PAST LAST EVENT":
                return answer.first <= self.barrier
        return answer.first < self.barrier

    def mutes(self, answer: Answer) -> bool:
        """Whether a kept answer mutes the next one, which none forbids."""
        return False

    def keep(self, matched: SequenceMatch, answer: Answer) -> None:
        """Let an answer, given with its match, forbid later ones."""
        match self.kind:
            case "NO SKIP":
                return
            case "TO NEXT EVENT":
                self._keep_first(answer.first, matched.origin)
            case "CONSUME":
                self.coming = max(self.coming, answer.last)
            case "PAST LAST EVENT":
                self.barrier = max(self.barrier, answer.last)
            case _:
                times = [(s.item.time, s.item.k) for s in matched.solutions if s.gpm == self.gpm]
                if times:
                    goal = min(times) if self.kind == "TO FIRST" else max(times)
                    self.barrier = max(self.barrier, goal)

    def may_be_forgotten(self, since: int | None, end: int) -> bool:
        """Whether it can leave out no further answer.

        Args:
            since: no answer begins before this time (ms). None: it may begin at any time.
            end: no answer ends before this time (ms).
        """
        last = max([self.barrier, self.coming, *self.firsts])
        return last == _NEVER or (since is not None and last[0] < since)

    def _keep_first(self, first: Instant, origin: int) -> None:
        self.firsts[first] = origin
        if len(self.firsts) > 1024:
            # No answer begins there a window later; two windows, as a match may wait for its close.
            oldest = origin - 2 * self.horizon
            self.firsts = {f: m for f, m in self.firsts.items() if m >= oldest}


@dataclass(slots=True)
class MutingFilter(AfterMatchFilter):
    """The filter of AFTER MATCH with MUTE.

    Answers that end before `audible`, which is `mute` after the end of the last one that was kept,
    are muted. They forbid nothing.
    """

    mute: int = 0  # ms
    audible: int = _NEVER[0]  # ms

    def mutes(self, answer: Answer) -> bool:
        """Whether less than `mute` has passed since an answer that was kept."""
        return answer.end[0] < self.audible

    def keep(self, matched: SequenceMatch, answer: Answer) -> None:
        """Let an answer, which is given with its match, forbid and mute later ones."""
        AfterMatchFilter.keep(self, matched, answer)
        self.audible = answer.end[0] + self.mute

    def may_be_forgotten(self, since: int | None, end: int) -> bool:
        """Whether it leaves out no answer from now on."""
        return self.audible <= end and AfterMatchFilter.may_be_forgotten(self, since, end)
