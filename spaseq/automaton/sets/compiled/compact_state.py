"""The state of the compact kernel: the union-lists of the active states of all slots; and the moves
of its deterministic automaton, found on the fly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.sets.compiled.set_nodes import SetNodes, whole
from spaseq.automaton.sets.kernels import compact as kernel
from spaseq.automaton.sets.kernels import set_arrays
from spaseq.automaton.sets.python.determinise import DeterministicAutomaton, DeterministicState
from spaseq.automaton.sets.python.expand import WaitName, Waits
from spaseq.compiled.arrays import Array, Bools, Indices, Int64s, grown
from spaseq.stateful import Stateful

S = TypeVar("S", bound=Hashable)

_FEW = 16
"""Spare entries, and the first room for moves."""
_WIDTH = 8
"""Columns of a union-list of four nodes, each with its maximum start."""


def _move(state: DeterministicState, letters: int) -> tuple[DeterministicState | None, Any]:
    """A move, as `MoveTables` takes it."""
    move = state.move(letters)
    return move.stay, [(m.letter, m.target, m.accepts, m.depth) for m in move.marks]


class ActiveLists(Stateful, Generic[S]):
    """The partial matches of all slots, as union-lists of the active states."""

    def __init__(self, tables: MoveTables[S], consumes: bool = False) -> None:
        self._tables, self._consumes = tables, int(consumes)
        self.nodes = SetNodes()
        self._active = np.zeros((0, self._tables.words), np.int64)
        self._entry_of = np.empty((0, 0), np.int32)
        self._entries = np.empty((0, kernel.LIST + _WIDTH), np.int64)
        self._free = np.empty(0, np.int32)
        self._latest, self._begins = np.empty(0, np.int64), np.empty(0, np.int64)
        self._when = np.empty(0, np.int64)
        self._inner = np.empty(tables.letters if tables.takes_several else 0, np.int64)
        self._make_scratch()
        self._make_room_for_states()

    def grow(self, slots: int) -> None:
        """Make room for the slots below `slots`."""
        before = len(self._latest)
        if slots > before:
            size = 2 * slots
            self._active, self._entry_of = grown(self._active, size), grown(self._entry_of, size)
            self._latest, self._begins = grown(self._latest, size), grown(self._begins, size)
            self._when = grown(self._when, size, set_arrays.EVER)

    @property
    def most_made(self) -> int:
        """Known maximum number of sets of partial matches that begin to wait at a row."""
        return len(self._tables.states)

    def advance(self, rows: OrderedRows, pace: Pace | None = None) -> Int64s:
        """Process rows; returns the roots [R, 2] of the matches that end, as (node, row)."""
        nodes, tables = self.nodes, self._tables
        return nodes.roots_of(
            rows,
            lambda rows: kernel.advance_compact(
                *rows.columns,
                rows.number,
                tables.letters,
                tables.same_time,
                self._consumes,
                tables.sets,
                tables.move,
                tables.moves,
                tables.marks,
                tables.changing,
                self._active,
                self._entry_of,
                self._entries,
                self._free,
                self._latest,
                self._begins,
                self._when,
                nodes.array,
                nodes.roots,
                self._lists,
                self._place_of,
                self._order,
                self._inner,
                nodes.cursor,
            ),
            self._provide,
            pace,
            lambda: self.most_made,
        )

    def _provide(self, missing: int) -> None:
        """Provide the resource that the kernel has reported missing."""
        cursor = self.nodes.cursor
        if missing == set_arrays.MOVE_UNKNOWN:
            self._tables.add_move(int(cursor[set_arrays.STATE]), int(cursor[set_arrays.SEEN]))
            self._make_room_for_states()
        elif missing == set_arrays.SET_UNKNOWN:
            self._tables.add_set(int(cursor[set_arrays.SEEN]))
        elif missing == set_arrays.LISTS_FULL:
            self._entries = widened(self._entries, 2 * self._entries.shape[1])
            self._make_scratch()
        elif missing == set_arrays.ENTRIES_FULL:
            self._make_room_for_entries(int(cursor[set_arrays.NEED]))
        else:
            self.nodes.make_room(missing)

    def _make_room_for_states(self) -> None:
        """Make room for every state known so far."""
        states, words = len(self._tables.states), self._tables.words
        before = self._entry_of.shape[1]
        if states > before:
            size = 2 * states
            self._entry_of = widened(self._entry_of, size)
            self._make_scratch()
        if words > self._active.shape[1]:
            self._active = widened(self._active, words)

    def _make_room_for_entries(self, need: int) -> None:
        before, free = len(self._entries), int(self.nodes.cursor[set_arrays.FREE])
        more = before + need + _FEW
        self._entries = grown(self._entries, before + more)
        added = np.arange(before, before + more, dtype=np.int32)
        self._free = np.concatenate([self._free[:free], added, np.empty(before, np.int32)])
        self.nodes.cursor[set_arrays.FREE] = free + more

    def _living(self, floor: int) -> Int64s:
        alive = np.empty(len(self._active), np.int64)
        kernel.living(self._active, self._entry_of, self._entries, floor, alive)
        return alive

    def idle(self, floor: int) -> Bools:
        """By slot: whether it has no partial match in the window that begins at `floor`."""
        return np.equal(self._living(floor), 0)

    def release(self, slots: Indices) -> None:
        """Clear idle slots, for other keys."""
        cursor = self.nodes.cursor
        cursor[set_arrays.FREE] = kernel.vacate(
            slots, self._active, self._entry_of, self._free, cursor[set_arrays.FREE]
        )
        self._latest[slots] = 0
        self._when[slots] = set_arrays.EVER

    def alive(self, floor: int) -> Int64s:
        """By slot: number of sets of partial matches that wait in the window that begins at
        `floor`.
        """
        return self._living(floor)

    def _make_scratch(self) -> None:
        """Make the scratch arrays of the kernel."""
        size = self._entry_of.shape[1]
        self._lists = np.empty((size + 1, self._entries.shape[1]), np.int64)
        self._place_of = np.zeros((size, 2), np.int64)
        self._order = np.empty((size, 3), np.int64)


class CompactState(ActiveLists[DeterministicState]):
    """The partial matches of all slots, by an automaton with this number of letters.

    With `consumes`, the matches of an instant consume the partial matches of their slot.
    """

    STATE = ("_active", "_entry_of", "_entries", "_free", "_latest", "_when", "nodes", "_states")

    def __init__(
        self, automaton: DeterministicAutomaton, letters: int, consumes: bool = False
    ) -> None:
        self._automaton, self.strict = automaton, automaton.strict
        several, same_time = automaton.takes_several, automaton.same_time
        tables = MoveTables(automaton.initial, letters, _move, same_time, several)
        super().__init__(tables, consumes)

    @property
    def waits(self) -> Waits:
        """The waits of the automaton."""
        return self._automaton.waits

    def live(self, floor: int, slots: Int64s | None = None) -> list[tuple[Iterable[WaitName], int]]:
        """The waits of partial matches in the window that begins at `floor`, and their number."""
        parts = []
        active = self._active if slots is None else self._active[slots]
        entry_of = self._entry_of if slots is None else self._entry_of[slots]
        for number, state in enumerate(self._tables.states):
            word, bit = divmod(number, kernel.WORD)
            active_slots = np.flatnonzero(active[:, word] >> bit & 1)
            entries = self._entries[entry_of[active_slots, number]]
            listed = np.arange(kernel.LIST, entries.shape[1], 2)
            used = listed < kernel.LIST + 2 * entries[:, kernel.COUNT, None]
            roots = np.where(used, entries[:, listed], set_arrays.NIL)
            parts.append((state.waits, roots))
        sizes = np.cumsum([0, *(roots.size for _, roots in parts)])
        live = self.nodes.live(np.concatenate([roots.ravel() for _, roots in parts]), floor)
        return [
            (waits, whole(float(live[begin:end].sum())))
            for (waits, _), begin, end in zip(parts, sizes, sizes[1:], strict=False)
        ]

    @property
    def _states(self) -> list[frozenset[WaitName]]:
        """The automaton's states by number, given by their waits."""
        return [state.waits for state in self._tables.states]

    @_states.setter
    def _states(self, states: list[frozenset[WaitName]]) -> None:
        for waits in states:
            self._tables.number(self._automaton.state(waits))

    def _after_restore(self) -> None:
        self._begins = np.zeros(len(self._latest), np.int64)  # the initial state never changes
        self._make_scratch()


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
