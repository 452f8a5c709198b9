"""The automaton determinised on the fly: states are sets of waits (CORE, PVLDB 15:9, section 3).

All partial matches that took the same solutions at the same instants are one: they stand in one
state, the set of all waits that some way through the sequence has led to. From a state, an instant
leads to at most one state for each solution that may be taken, and to at most one without taking
any. So no match is found twice. States and moves are made when they are first needed, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spaseq.automaton.sets.python.expand import WaitingPlaces

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class MarkedTransition(Generic[S]):
    """Taking a solution: of which rows (`letter`) and GPM, the state reached (None: no waits), and
    whether the match is complete."""

    letter: object
    gpm: int
    target: S | None
    accepts: bool


@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """What an instant does to the matches of a state: `stay` is the state without taking anything
    (None: they end)."""

    stay: S | None
    marks: tuple[MarkedTransition[S], ...]


class DeterminisedState:
    """A set of waits; compared by identity, as the automaton makes each set once."""

    __slots__ = ("_automaton", "_moves", "_relevant", "waits")

    def __init__(self, automaton: Determinised, waits: frozenset[int]) -> None:
        self.waits = waits
        self._automaton = automaton
        self._moves: dict[int, Move[DeterminisedState]] = {}
        all_waits = automaton.waits.waits
        self._relevant = 0  # GPMs that make a difference here, as bits
        for number in waits:
            self._relevant |= all_waits[number].ends | 1 << all_waits[number].gpm

    def move(self, gpms: int) -> Move[DeterminisedState]:
        """What an instant with solutions of some GPMs (as bits) does here."""
        seen = gpms & self._relevant
        move = self._moves.get(seen)
        if move is None:
            move = self._moves[seen] = self._automaton.move(self, seen)
        return move


class Determinised:
    """The deterministic automaton of some waits.

    `contiguous`: a match must take a solution at every instant (SELECT STRICT).
    """

    def __init__(self, waits: WaitingPlaces, contiguous: bool = False) -> None:
        self.waits = waits
        self._contiguous = contiguous
        self._states: dict[frozenset[int], DeterminisedState] = {}
        initial = self.state(waits.initial)
        assert initial is not None
        self.initial = initial
        self.strict = contiguous or any(w.strict for w in waits.waits)
        self.letters = {1 << w.gpm: w.gpm for w in waits.waits}

    def state(self, waits: Iterable[int]) -> DeterminisedState | None:
        """The one state of a set of waits; None for no waits."""
        key = frozenset(waits)
        if not key:
            return None
        if key not in self._states:
            self._states[key] = DeterminisedState(self, key)
        return self._states[key]

    def move(self, state: DeterminisedState, gpms: int) -> Move[DeterminisedState]:
        """What an instant with solutions of some GPMs (as bits) does to a state."""
        marks = []
        for bit, gpm in sorted(self.letters.items()):
            if gpms & bit:
                target, accepts = self.taken(state, gpm)
                if target is not None or accepts:
                    marks.append(MarkedTransition(gpm, gpm, target, accepts))
        return Move(self.stay(state, gpms), tuple(marks))

    def taken(
        self, state: DeterminisedState | None, gpm: int
    ) -> tuple[DeterminisedState | None, bool]:
        """The state after taking a solution of a GPM, and whether that completes a match."""
        then: set[int] = set()
        accepts = False
        for number in state.waits if state else ():
            wait = self.waits.waits[number]
            if wait.gpm == gpm:
                then.update(wait.then)
                accepts |= wait.accepts
        return self.state(then), accepts

    def stay(self, state: DeterminisedState | None, gpms: int) -> DeterminisedState | None:
        """The state after an instant of which nothing is taken."""
        if state is None or state is self.initial:
            return state
        if self._contiguous:
            return None
        waits = self.waits.waits
        return self.state(
            n for n in state.waits if not waits[n].strict and not waits[n].ends & gpms
        )

    def either(
        self, one: DeterminisedState | None, other: DeterminisedState | None
    ) -> DeterminisedState | None:
        """The state of all waits of two."""
        if one is None or other is None:
            return one or other
        return self.state(one.waits | other.waits)
