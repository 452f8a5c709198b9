"""SELECT MAX on compact sets, without enumerating matches that are contained in greater ones.

Few matches of one end are compared with each other. Where there are more, the automaton of
"Foundations of CEP", section 7.3, runs in the compact kernel over the window that ends there. A
state also has the waits of the matches that took the *same* events so far, and of the matches that
took *more* events. A match is selected if no match that took more is complete at its end. A match
that took more may begin earlier, even outside the window. So the automaton runs over the whole
window that ends now, from its begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.run.event_rows import GpmRow
from spaseq.automaton.sets.compiled.compact_state import ActiveLists, MoveTables
from spaseq.automaton.sets.compiled.set_nodes import SetNodes
from spaseq.automaton.sets.kernels import set_arrays
from spaseq.automaton.sets.python.determinise import (
    DeterministicAutomaton,
    DeterministicState,
    MarkedTransition,
    Move,
)
from spaseq.automaton.sets.python.expand import expand
from spaseq.compiled.arrays import Array, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stateful import Stateful

Ranks = Callable[[Int64s], Int64s]
"""The ranks of rows, given by ascending number, in the order of positions."""

# Columns of the window: the number of a row, its slot, its letter (-1: no solution), time, k, and
# the measure of a match that begins with it.
_NUMBER, _SLOT, _LETTER, _TIME, _K, _START = range(6)


class MaximalMatches(Stateful):
    """The maximal matches of one query.

    It keeps the solutions of the window. A *letter* is a GPM and a stream: solutions of one instant
    whose letters have the same stream are of one event.
    """

    STATE = ("_window", "_most")

    def __init__(self, program: Program, gpms: int, streams: int) -> None:
        self._streams = streams
        automaton = MaximalAutomaton(DeterministicAutomaton(expand(program)))
        self._tables = MoveTables(automaton.initial, gpms * streams, self._moved)
        self._window, self._most = np.empty((0, 6), np.int64), 0  # twice what was left last

    def _moved(
        self, state: MaximalState, letters: int
    ) -> tuple[MaximalState | None, list[tuple[int, MaximalState | None, bool, int]]]:
        pairs = [divmod(i, self._streams) for i in range(letters.bit_length()) if letters >> i & 1]
        numbers: dict[object, int] = {(gpm, s): gpm * self._streams + s for gpm, s in pairs}
        move = state.move(frozenset(pairs))
        return move.stay, [(numbers[m.letter], m.target, m.accepts, m.depth) for m in move.marks]

    # --- the window -------------------------------------------------------------------------------

    def add(self, solutions: SolutionBatch | list[GpmRow], rows: OrderedRows) -> None:
        """Add a batch; at times, drop data that no window needs any more."""
        if isinstance(solutions, SolutionBatch):
            stream: Array = solutions.stream
        else:
            stream = np.array([row[0] for _, row in solutions], np.int64)
        new = np.empty((len(rows), 6), np.int64)
        new[:, _NUMBER] = rows.number + np.arange(len(rows))
        new[:, _SLOT], new[:, _TIME], new[:, _K] = rows.slot, rows.time, rows.k
        new[:, _LETTER] = np.where(rows.gpm < 0, -1, rows.gpm * self._streams + stream)
        new[:, _START] = rows.start
        self._window = np.concatenate([self._window, new])
        if len(self._window) - self._most > thresholds.current.window_rows:
            self._window = self._window[self._window[:, _START] >= rows.lowest[0]]
            self._most = 2 * len(self._window)

    # --- one end ----------------------------------------------------------------------------------

    def few(
        self, nodes: SetNodes, roots: Int64s, lowest: Int64s, ranks: Ranks
    ) -> EnumeratedMatches | None:
        """The maximal matches of the roots of one end; None if there are too many to compare."""
        matches: list[tuple[Int64s, int]] = []
        for piece in nodes.matches(roots, lowest, thresholds.current.few_matches + 1):
            begin = 0
            for end, origin, _ in piece.ends.tolist():
                matches.append((piece.rows[begin:end].copy(), origin))
                begin = end
            if len(matches) > thresholds.current.few_matches:
                return None
        kept = _uncontained([rows for rows, _ in matches], ranks)
        chosen = [match for match, is_kept in zip(matches, kept, strict=True) if is_kept]
        rows = np.concatenate([rows for rows, _ in chosen] or [np.empty(0, np.int64)])
        lengths = np.array([len(rows) for rows, _ in chosen], np.int64)
        origins = np.array([origin for _, origin in chosen], np.int64)
        return EnumeratedMatches(rows, np.stack([np.cumsum(lengths), origins], axis=1))

    def many(self, rows: OrderedRows, row: int) -> tuple[SetNodes, Int64s, Int64s]:
        """The maximal matches that end at the instant of a row, given by its place in the batch.

        Returns new nodes, their roots [R, 2] and the begin of the window for the rows that the
        roots name.
        """
        window, floor = self._window, int(rows.lowest[row])
        index = int(np.searchsorted(window[:, _NUMBER], rows.number + row))
        last = window[index]
        mine = window[: int(np.searchsorted(window[:, _TIME], last[_TIME], "right"))]
        mine = mine[(mine[:, _SLOT] == last[_SLOT]) & (mine[:, _START] >= floor)]
        mine = mine[(mine[:, _TIME] < last[_TIME]) | (mine[:, _K] <= last[_K])]
        lists = ActiveLists(self._tables)
        lists.grow(1)
        roots = lists.advance(_framed(mine, floor))
        ends = (mine[:, _TIME] == last[_TIME]) & (mine[:, _K] == last[_K])
        roots = roots[ends[roots[:, 1]]]
        number = lists.nodes.array[:, set_arrays.ROW]
        used = np.arange(lists.nodes.base, lists.nodes.next) & (len(number) - 1)
        is_row = used[number[used] != set_arrays.UNION]
        number[is_row] = mine[number[is_row], _NUMBER]
        return lists.nodes, roots, np.full(len(mine), floor)


def _framed(rows: Int64s, floor: int) -> OrderedRows:
    """Rows of one slot as the kernel takes them, numbered from 0."""
    return OrderedRows(
        np.zeros(len(rows), np.int32),
        rows[:, _LETTER].astype(np.int32),
        rows[:, _TIME].copy(),
        rows[:, _K].astype(np.int32),
        rows[:, _START].copy(),
        np.full(len(rows), floor),
        np.empty(0, np.int64),
    )


def _uncontained(matches: list[Int64s], ranks: Ranks) -> Iterator[bool]:
    """For each match, whether no other one contains its positions."""
    if not matches:
        return
    numbers = np.unique(np.concatenate(matches))
    rank = ranks(numbers)
    sets = [frozenset(rank[np.searchsorted(numbers, rows)].tolist()) for rows in matches]
    distinct = {*sets}
    yield from (not any(others < other for other in distinct) for others in sets)


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
