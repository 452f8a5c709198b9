"""The deterministic automaton, made on the fly: states are sets of waits (CORE, PVLDB 15:9, 4.4).

Several ways through the sequence may reach one match. Determinising gives it one run, in the set of
all waits of these ways. From a state, an instant leads to at most one state for each solution taken
(a marking transition), and to at most one state if none is taken. So no match is found twice.
States and moves are made when first needed, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from spaseq.automaton.sets.python.expand import WaitName, Waits
from spaseq.records import record

S = TypeVar("S")


@record
class MarkedTransition(Generic[S]):
    """A marking transition takes a row with a `letter` of a GPM.

    `target` is the state reached, None if no wait is left. `accepts`: the match is complete. With a
    `depth` above 0, the row is taken besides the rows of the last transition of a lower depth. A
    transition without target that does not accept is there for deeper ones only.
    """

    letter: object
    gpm: int
    target: S | None
    accepts: bool
    depth: int = 0


@record
class Move(Generic[S]):
    """The transitions of a state at an instant.

    `stay` is the target of the non-marking transition, None if the partial matches end.
    """

    stay: S | None
    marks: tuple[MarkedTransition[S], ...]


class DeterministicState:
    """A set of waits. The automaton makes each set once, so states compare by identity."""

    __slots__ = ("_automaton", "_moves", "_relevant", "waits")

    def __init__(self, automaton: DeterministicAutomaton, waits: frozenset[WaitName]) -> None:
        self.waits = waits
        self._automaton = automaton
        self._moves: dict[int, Move[DeterministicState]] = {}
        self._relevant = 0  # GPMs that change this state, as bits
        for name in waits:
            self._relevant |= automaton.relevant(name)

    def move(self, gpms: int) -> Move[DeterministicState]:
        """The move of this state at an instant with solutions of some GPMs (as bits)."""
        seen = gpms & self._relevant
        move = self._moves.get(seen)
        if move is None:
            move = self._moves[seen] = self._automaton.move(self, seen)
        return move


class DeterministicAutomaton:
    """The deterministic automaton of the waits of a sequence.

    `contiguous`: a match must take a solution at every instant (SELECT STRICT). `same_time` is a
    bit beside the bits of GPMs: the instant has the time of the previous one; 0 if no state needs
    it. `takes_several`: a match may take several rows of one instant.
    """

    same_time = 0
    takes_several = False

    def __init__(self, waits: Waits, contiguous: bool = False) -> None:
        self.waits = waits
        self.is_contiguous = contiguous
        self._states: dict[frozenset[WaitName], DeterministicState] = {}
        initial = self.state(waits.initial)
        assert initial is not None
        self.initial = initial
        self.strict = contiguous or waits.strict
        self._gpm_of = {1 << gpm: gpm for gpm in waits.gpms}

    def relevant(self, name: WaitName) -> int:
        """The GPMs, as bits, that change a wait."""
        return self.waits.relevant(name)

    def state(self, waits: Iterable[WaitName]) -> DeterministicState | None:
        """The state of a set of waits; None for no waits."""
        key = frozenset(waits)
        if not key:
            return None
        if key not in self._states:
            self._states[key] = DeterministicState(self, key)
        return self._states[key]

    def move(self, state: DeterministicState, gpms: int) -> Move[DeterministicState]:
        """The move of a state at an instant with solutions of some GPMs (as bits)."""
        marks = []
        for bit, gpm in sorted(self._gpm_of.items()):
            if gpms & bit:
                target, accepts = self.take(state, gpm, gpms)
                if target is not None or accepts:
                    marks.append(MarkedTransition(gpm, gpm, target, accepts))
        return Move(self.stay(state, gpms), tuple(marks))

    def take(
        self, state: DeterministicState | None, gpm: int, gpms: int
    ) -> tuple[DeterministicState | None, bool]:
        """The state after a solution of a GPM is taken, and whether a match is complete.

        `gpms` are all GPMs with solutions at that instant, as bits.
        """
        then = set[WaitName]()
        accepts = False
        for name in state.waits if state else ():
            if self.waits.waits[name].gpm == gpm:
                after, complete = self.waits.take(name, gpms)
                then.update(after)
                accepts |= complete
        return self.state(then), accepts

    def stay(self, state: DeterministicState | None, gpms: int) -> DeterministicState | None:
        """The state after an instant without a solution taken."""
        if state is None or state is self.initial:
            return state
        if self.is_contiguous:
            return None
        return self.state(n for name in state.waits for n in self.waits.stay(name, gpms))

    def either(
        self, one: DeterministicState | None, other: DeterministicState | None
    ) -> DeterministicState | None:
        """The state with the waits of both."""
        if one is None or other is None:
            return one or other
        return self.state(one.waits | other.waits)
