"""SELECT MAX without enumerating matches that are contained in greater ones.

It is the automaton of "Foundations of CEP", section 7.3. A state also has the waits of the matches
that took the *same* events so far, and of the matches that took *more* events. A match is selected
if no match that took more is complete at its end. A match that took more may begin earlier, even
outside the window. So the automaton runs over the whole window that ends now, from its begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from spaseq.automaton.sets.python.determinise import (
    DeterministicAutomaton,
    DeterministicState,
    MarkedTransition,
    Move,
)

Letter: TypeAlias = tuple[int, int]
"""(GPM, stream): letters of one instant with the same stream take the same event."""


@dataclass(frozen=True, slots=True, eq=False)
class MaximalState:
    """The states of the matches that took the same solutions (`own`), the same events, or more."""

    automaton: MaximalAutomaton
    own: DeterministicState
    same: DeterministicState | None
    more: DeterministicState | None

    def move(self, letters: frozenset[Letter]) -> Move[MaximalState]:
        """The move of this state at an instant with rows of these letters."""
        return self.automaton.move(self, letters)


class MaximalAutomaton:
    """Makes states and their moves when first needed, and keeps them."""

    def __init__(self, below: DeterministicAutomaton) -> None:
        self._below = below
        self._states: dict[
            tuple[DeterministicState, DeterministicState | None, DeterministicState | None],
            MaximalState,
        ] = {}
        self._moves: dict[tuple[MaximalState, frozenset[Letter]], Move[MaximalState]] = {}
        self.initial = self._state(below.initial, below.initial, None)

    def move(self, state: MaximalState, letters: frozenset[Letter]) -> Move[MaximalState]:
        """The move of a state at an instant with rows of these letters."""
        key = state, letters
        if key not in self._moves:
            marks = (self._mark(state, letter, letters) for letter in sorted(letters))
            stay = self._stay(state, letters)
            self._moves[key] = Move(stay, tuple(m for m in marks if m is not None))
        return self._moves[key]

    def _mark(
        self, state: MaximalState, letter: Letter, letters: frozenset[Letter]
    ) -> MarkedTransition[MaximalState] | None:
        gpm, stream = letter
        seen = _bits(letters)
        state_below, accepts = self._below.take(state.own, gpm, seen)
        if state_below is None and not accepts:
            return None
        here = sorted(g for g, s in letters if s == stream)
        same, _ = self._take_any(state.same, here, seen)
        more, exceeded = self._take_any(state.more, here, seen)
        target = self._state(state_below, same, more) if state_below else None
        return MarkedTransition(letter, gpm, target, accepts and not exceeded)

    def _stay(self, state: MaximalState, letters: frozenset[Letter]) -> MaximalState | None:
        gpms = sorted({gpm for gpm, _ in letters})
        mask = _bits(letters)
        below = self._below
        state_below = below.stay(state.own, mask)
        if state_below is None:
            return None
        more = below.stay(state.more, mask)
        for took_now in (state.more, state.same):
            more = below.either(more, self._take_any(took_now, gpms, mask)[0])
        return self._state(state_below, below.stay(state.same, mask), more)

    def _take_any(
        self, state: DeterministicState | None, gpms: Iterable[int], seen: int
    ) -> tuple[DeterministicState | None, bool]:
        """The state after a solution of any of some GPMs is taken.

        `seen` are all GPMs of that instant, as bits.
        """
        target: DeterministicState | None = None
        accepts = False
        for gpm in gpms:
            then, complete = self._below.take(state, gpm, seen)
            target = self._below.either(target, then)
            accepts |= complete
        return target, accepts

    def _state(
        self,
        own: DeterministicState,
        same: DeterministicState | None,
        more: DeterministicState | None,
    ) -> MaximalState:
        key = own, same, more
        if key not in self._states:
            self._states[key] = MaximalState(self, own, same, more)
        return self._states[key]


def _bits(letters: Iterable[Letter]) -> int:
    """The GPMs of some letters, as bits."""
    return sum(1 << gpm for gpm in {gpm for gpm, _ in letters})
