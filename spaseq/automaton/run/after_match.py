"""AFTER MATCH: which answers of a partition an earlier kept one forbids (LANGUAGE section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from spaseq.algebra.answers import Answer, Instant
from spaseq.automaton.run.matches import SequenceMatch

_NEVER: Instant = (-(2**63), 0)


@dataclass(slots=True)
class AfterMatchFilter:
    """The one pass over a partition's answers, in their order.

    `barrier`: answers that begin at or before it are forbidden (before it, for TO FIRST and TO
    LAST). `gpm` is the index of the GPM that TO FIRST and TO LAST name.
    """

    kind: str
    horizon: int
    gpm: int | None = None
    barrier: Instant = _NEVER
    end: Instant = _NEVER  # of the answers being decided, for CONSUME
    coming: Instant = _NEVER  # the barrier behind that end, for CONSUME
    firsts: dict[Instant, int] = field(default_factory=dict)  # kept firsts -> their measure

    def keeps(self, found: SequenceMatch, answer: Answer) -> bool:
        """Whether the next answer survives, given with its match; if so it forbids later ones from
        now on."""
        match self.kind:
            case "NO SKIP":
                return True
            case "TO NEXT EVENT":
                return self._keeps_first(answer.first, found.origin)
            case "CONSUME":
                return self._keeps_unconsumed(answer)
            case "PAST LAST EVENT":
                if answer.first <= self.barrier:
                    return False
                self.barrier = max(self.barrier, answer.last)
                return True
        if answer.first < self.barrier:
            return False
        times = [(p.item.time, p.item.k) for p in found.parts if p.gpm == self.gpm]
        if times:
            goal = min(times) if self.kind == "TO FIRST" else max(times)
            self.barrier = max(self.barrier, goal)
        return True

    def _keeps_first(self, first: Instant, origin: int) -> bool:
        if first in self.firsts:
            return False
        self.firsts[first] = origin
        if len(self.firsts) > 1024:
            # A window later no answer can begin there; doubled for windows that close in absence.
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
