"""AFTER MATCH: an answer that was kept may forbid later ones (docs/language.md#after-match)."""

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

    def keeps(self, matched: SequenceMatch, answer: Answer) -> bool:
        """Whether to keep the next answer, which is given with its match.

        An answer that is kept forbids later answers from now on.
        """
        match self.kind:
            case "NO SKIP":
                return True
            case "TO NEXT EVENT":
                return self._keeps_first(answer.first, matched.origin)
            case "CONSUME":
                return self._keeps_unconsumed(answer)
            case "PAST LAST EVENT":
                if answer.first <= self.barrier:
                    return False
                self.barrier = max(self.barrier, answer.last)
                return True
        if answer.first < self.barrier:
            return False
        times = [(s.item.time, s.item.k) for s in matched.solutions if s.gpm == self.gpm]
        if times:
            goal = min(times) if self.kind == "TO FIRST" else max(times)
            self.barrier = max(self.barrier, goal)
        return True

    def _keeps_first(self, first: Instant, origin: int) -> bool:
        if first in self.firsts:
            return False
        self.firsts[first] = origin
        if len(self.firsts) > 1024:
            # No answer begins there a window later; two windows, as a match may wait for its close.
            oldest = origin - 2 * self.horizon
            self.firsts = {f: m for f, m in self.firsts.items() if m >= oldest}
        return True

    def _keeps_unconsumed(self, answer: Answer) -> bool:
        if answer.end > self.end:
            self.barrier, self.end = max(self.barrier, self.coming), answer.end
        if answer.first <= self.barrier:
            return False
        self.coming = max(self.coming, answer.last)
        return True
