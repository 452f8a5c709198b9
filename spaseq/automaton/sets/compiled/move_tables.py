"""The moves of a deterministic automaton for the compact kernel, found on the fly."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from spaseq.automaton.sets.kernels import compact as kernel
from spaseq.automaton.sets.kernels import set_arrays
from spaseq.compiled.arrays import Array

S = TypeVar("S", bound=Hashable)

_FEW = 16
"""Rows at the start."""

Marks: TypeAlias = Sequence[tuple[int, S | None, bool, int]]
"""The marking transitions of a move: (letter, target or None, whether a match is complete, depth).
"""

MoveOf: TypeAlias = Callable[[S, int], tuple[S | None, Marks[S]]]
"""The target of a state at an instant with some letters (as bits), and its marking transitions."""


class MoveTables(Generic[S]):
    """States, sets of letters and moves by number, made when the kernel first needs them.

    The arrays are arguments of `advance_compact`, which describes them, as it does `same_time`;
    all but `sets` have rows to spare. A letter is a GPM, or a GPM and a stream. `takes_several`:
    some transition has a depth above 0.
    """

    __slots__ = (
        "_concerned",
        "_marks_used",
        "_move_of",
        "_moves_used",
        "_numbers",
        "changing",
        "letters",
        "marks",
        "move",
        "moves",
        "same_time",
        "sets",
        "states",
        "takes_several",
    )

    def __init__(
        self,
        initial: S,
        letters: int,
        move_of: MoveOf[S],
        same_time: int = 0,
        takes_several: bool = False,
    ) -> None:
        self._move_of, self.letters = move_of, letters
        self.same_time, self.takes_several = same_time, takes_several
        # The last set: an instant without rows, which may have the time of the one before.
        self.sets = np.array([*(1 << letter for letter in range(letters)), same_time], np.int64)
        self.move = np.full((_FEW, len(self.sets)), kernel.UNKNOWN, np.int32)
        self.moves = np.empty((_FEW, 3), np.int32)
        self.marks = np.empty((_FEW, kernel.MARK_COLUMNS), np.int32)
        self.changing = np.empty((len(self.sets), 0), np.int64)
        self._moves_used = self._marks_used = 0
        # By set of letters: the states that known moves change, or to which they lead.
        self._concerned: list[set[int]] = [set() for _ in self.sets]
        self.states: list[S] = []
        self._numbers: dict[S, int] = {}
        self.number(initial)

    @property
    def words(self) -> int:
        """Number of 64-bit words that hold one bit per state."""
        return self.changing.shape[1]

    def number(self, state: S | None) -> int:
        """The number of a state, which is new or not; NIL for None."""
        if state is None:
            return set_arrays.NIL
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
            if number == len(self.move):
                more = np.full(self.move.shape, kernel.UNKNOWN, np.int32)
                self.move = np.concatenate([self.move, more])
            self._may_change(number)
        return number

    def _may_change(self, state: int) -> None:
        """A new state may change at any set of letters, until its moves are known."""
        word, bit = divmod(state, kernel.WORD)
        if word == self.words:
            self.changing = widened(self.changing, word + 1)
        self.changing[:, word] |= _bits(bit)

    def add_set(self, letters: int) -> None:
        """Add a set of letters, as bits, that have solutions at one instant."""
        self.sets = np.append(self.sets, np.int64(letters))
        column = np.full((len(self.move), 1), kernel.UNKNOWN, np.int32)
        self.move = np.concatenate([self.move, column], axis=1)
        everything = np.full((1, self.words), -1, np.int64)
        self.changing = np.concatenate([self.changing, everything])
        self._concerned.append(set())

    def add_move(self, state: int, seen: int) -> None:
        """Add the move of a state at a set of letters, given by number."""
        stay, marked = self._move_of(self.states[state], int(self.sets[seen]))
        marks = [(letter, self.number(target), *rest) for letter, target, *rest in marked]
        first, move = self._marks_used, self._moves_used
        self.marks = _with_room(self.marks, first + len(marks))
        self.moves = _with_room(self.moves, move + 1)
        self._marks_used, self._moves_used = first + len(marks), move + 1
        for i, mark in enumerate(marks):
            self.marks[first + i] = mark
        after = self.number(stay)
        self.moves[move] = after, first, self._marks_used
        self.move[state, seen] = move
        targets = {target for _, target, *_ in marks}
        self._find_changing(state, seen, {state, after, *targets} if marks else {state, after})

    def _find_changing(self, state: int, seen: int, concerned: set[int]) -> None:
        """Find the states that the kernel must visit at a set of letters, after one more move.

        It may skip a state that does not change, takes no row, and is no target of another state.
        """
        known = self._concerned[seen]
        first, end = self.moves[self.move[state, seen], kernel.FIRST_MARK :].tolist()
        if first < end or concerned != {state}:
            known |= concerned - {set_arrays.NIL}
        for other in concerned - {set_arrays.NIL}:
            if other in known:
                self.changing[seen, other // kernel.WORD] |= _bits(other % kernel.WORD)
        if state not in known:
            self.changing[seen, state // kernel.WORD] &= ~_bits(state % kernel.WORD)


def widened(rows: Array, columns: int) -> Array:
    """Rows with room for `columns` columns; the new ones are 0."""
    wider = np.zeros((len(rows), columns), rows.dtype)
    wider[:, : rows.shape[1]] = rows
    return wider


def _with_room(rows: Array, size: int) -> Array:
    """The rows, in an array with room for `size` of them."""
    if size <= len(rows):
        return rows
    more = np.empty((max(size, len(rows)), rows.shape[1]), rows.dtype)
    return np.concatenate([rows, more])


def _bits(bit: int) -> np.int64:
    """A 64-bit word with one bit set."""
    return np.uint64(1 << bit).astype(np.int64)
