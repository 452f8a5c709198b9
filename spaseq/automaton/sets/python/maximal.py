"""SELECT MAX without enumerating what is contained in something greater.

The automaton of "Foundations of CEP", section 7.3: a state also knows the waits of the matches that
took the *same* events so far, and those of the matches that took *more* events. A match is
selected if, at its end, none that took more is complete. As one that took more may begin earlier
and so lie outside of the window, the window that ends now is run through from its begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from spaseq.automaton.run.partition_evaluator import RowsByGpm
from spaseq.automaton.run.runs import Row
from spaseq.automaton.sets.python.active_states import ActiveStates
from spaseq.automaton.sets.python.compact_set import CompactSet
from spaseq.automaton.sets.python.determinise import (
    Determinised,
    DeterminisedState,
    MarkedTransition,
    Move,
)

Letter: TypeAlias = tuple[int, int]
"""(GPM, stream): two matches take the same event where their letters have the same stream."""


@dataclass(frozen=True, slots=True, eq=False)
class MaximalState:
    """Where the matches stand that took the same solutions (`own`), the same events, or more."""

    automaton: MaximalAutomaton
    own: DeterminisedState
    same: DeterminisedState | None
    more: DeterminisedState | None

    def move(self, letters: frozenset[Letter]) -> Move[MaximalState]:
        """What an instant with solutions of these letters does here."""
        return self.automaton.move(self, letters)


class MaximalAutomaton:
    """States are made when first needed, and kept with their moves."""

    def __init__(self, below: Determinised) -> None:
        self._below = below
        self._states: dict[
            tuple[DeterminisedState, DeterminisedState | None, DeterminisedState | None],
            MaximalState,
        ] = {}
        self._moves: dict[tuple[MaximalState, frozenset[Letter]], Move[MaximalState]] = {}
        self.initial = self._state(below.initial, below.initial, None)

    def matches(self, instants: Iterable[tuple[int, RowsByGpm]]) -> tuple[CompactSet, list[int]]:
        """The maximal matches that end at the last of some instants, the whole of a window.

        `instants` are measures and solutions by GPM. The result is a compact set and its roots.
        """
        found, roots = CompactSet(), list[int]()
        table = ActiveStates(self.initial)
        for start, rows in instants:
            lettered: dict[Letter, list[Row]] = {}
            for gpm, solutions in rows.items():
                for row in solutions:
                    lettered.setdefault((gpm, row[0]), []).append(row)
            roots = table.advance(found, start, lettered, frozenset(lettered))
        return found, roots

    def move(self, state: MaximalState, letters: frozenset[Letter]) -> Move[MaximalState]:
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
        own, accepts = self._below.taken(state.own, gpm)
        if own is None and not accepts:
            return None
        here = sorted(g for g, s in letters if s == stream)
        same, _ = self._taken(state.same, here)
        more, exceeded = self._taken(state.more, here)
        target = self._state(own, same, more) if own else None
        return MarkedTransition(letter, gpm, target, accepts and not exceeded)

    def _stay(self, state: MaximalState, letters: frozenset[Letter]) -> MaximalState | None:
        gpms = sorted({gpm for gpm, _ in letters})
        mask = sum(1 << gpm for gpm in gpms)
        below = self._below
        own = below.stay(state.own, mask)
        if own is None:
            return None
        more = below.stay(state.more, mask)
        for took_now in (state.more, state.same):
            more = below.either(more, self._taken(took_now, gpms)[0])
        return self._state(own, below.stay(state.same, mask), more)

    def _taken(
        self, state: DeterminisedState | None, gpms: Iterable[int]
    ) -> tuple[DeterminisedState | None, bool]:
        """The state after taking a solution of any of some GPMs."""
        target: DeterminisedState | None = None
        accepts = False
        for gpm in gpms:
            then, complete = self._below.taken(state, gpm)
            target = self._below.either(target, then)
            accepts |= complete
        return target, accepts

    def _state(
        self, own: DeterminisedState, same: DeterminisedState | None, more: DeterminisedState | None
    ) -> MaximalState:
        key = own, same, more
        if key not in self._states:
            self._states[key] = MaximalState(self, own, same, more)
        return self._states[key]
