"""The moves of a deterministic automaton for the compact kernel, found on the fly."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from spaseq.automaton.sets.kernels import compact as kernel
from spaseq.automaton.sets.kernels import set_arrays

S = TypeVar("S", bound=Hashable)

Marks: TypeAlias = Sequence[tuple[int, S | None, bool, int]]
"""The marking transitions of a move: (letter, target or None, whether a match is complete, depth).
"""

MoveOf: TypeAlias = Callable[[S, int], tuple[S | None, Marks[S]]]
"""Where a state stays at an instant with some letters (as bits), and its marking transitions."""


class MoveTables(Generic[S]):
    """States, sets of letters and moves by number, made when the kernel first needs them.

    The arrays are arguments of `advance_compact`, which describes them, as it does `same_time`. A
    letter is a GPM, or a GPM and a stream. `takes_several`: some transition has a depth above 0.
    """

    __slots__ = (
        "_move_of",
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
        self.move = np.empty((0, len(self.sets)), np.int32)
        self.moves = np.empty((0, 3), np.int32)
        self.marks = np.empty((0, kernel.MARK_COLUMNS), np.int32)
        self.changing = np.empty((len(self.sets), 0), np.int64)
        self.states: list[S] = []
        self._numbers: dict[S, int] = {}
        self.number(initial)

    @property
    def words(self) -> int:
        """How many 64-bit words hold one bit per state."""
        return self.changing.shape[1]

    def number(self, state: S | None) -> int:
        """The number of a state, which is new or not; NIL for None."""
        if state is None:
            return set_arrays.NIL
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
            row = np.full((1, len(self.sets)), kernel.UNKNOWN, np.int32)
            self.move = np.concatenate([self.move, row])
            self._may_change(number)
        return number

    def _may_change(self, state: int) -> None:
        """A new state may change at any set of letters, until its moves are known."""
        word, bit = divmod(state, kernel.WORD)
        if word == self.words:
            self.changing = np.pad(self.changing, ((0, 0), (0, 1)))
        self.changing[:, word] |= _bits(bit)

    def add_set(self, letters: int) -> None:
        """Add a set of letters, as bits, that have solutions at one instant."""
        self.sets = np.append(self.sets, np.int64(letters))
        column = np.full((len(self.move), 1), kernel.UNKNOWN, np.int32)
        self.move = np.concatenate([self.move, column], axis=1)
        everything = np.full((1, self.words), -1, np.int64)
        self.changing = np.concatenate([self.changing, everything])

    def add_move(self, state: int, seen: int) -> None:
        """Add the move of a state at a set of letters, given by number."""
        stay, marked = self._move_of(self.states[state], int(self.sets[seen]))
        marks = [(letter, self.number(target), *rest) for letter, target, *rest in marked]
        first = len(self.marks)
        more = np.array(marks, np.int32).reshape(-1, kernel.MARK_COLUMNS)
        self.marks = np.concatenate([self.marks, more])
        row = [[self.number(stay), first, first + len(marks)]]
        self.move[state, seen] = len(self.moves)
        self.moves = np.concatenate([self.moves, np.array(row, np.int32)])
        self._find_changing(seen)

    def _find_changing(self, seen: int) -> None:
        """Find the states that the kernel must visit at a set of letters.

        It may skip a state that stays as it is, takes no row, and is no target of another state.
        """
        changing = set[int]()
        for state, number in enumerate(self.move[:, seen].tolist()):
            if number == kernel.UNKNOWN:
                changing.add(state)
                continue
            stay, first, end = self.moves[number].tolist()
            if first < end or stay != state:
                changing.update([state, stay, *self.marks[first:end, kernel.TARGET].tolist()])
        self.changing[seen] = 0
        for state in changing - {set_arrays.NIL}:
            self.changing[seen, state // kernel.WORD] |= _bits(state % kernel.WORD)


def _bits(bit: int) -> np.int64:
    """A 64-bit word with one bit set."""
    return np.uint64(1 << bit).astype(np.int64)
