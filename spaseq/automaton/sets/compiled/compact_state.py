"""The state of the compact kernel, and the moves of its automaton, found on the fly."""

from __future__ import annotations

from typing import cast

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.sets.compiled.set_nodes import SetNodes
from spaseq.automaton.sets.kernels import compact as kernel
from spaseq.automaton.sets.kernels import set_arrays
from spaseq.automaton.sets.python.determinise import DeterministicAutomaton, DeterministicState
from spaseq.automaton.sets.python.expand import WaitName, expand
from spaseq.compiled.arrays import Bools, Indices, Int64s

_FEW = 16
"""Spare entries."""
_WIDTH = 8
"""Columns of a union-list of four nodes, each with its maximum start."""


class MoveTables:
    """States, sets of GPMs and moves by number, made when the kernel first needs them.

    The arrays are arguments of `advance_compact`, which describes them.
    """

    __slots__ = (
        "_automaton",
        "_numbers",
        "_states",
        "changing",
        "gpms",
        "marks",
        "move",
        "moves",
        "sets",
    )

    def __init__(self, automaton: DeterministicAutomaton, gpms: int) -> None:
        self._automaton, self.gpms = automaton, gpms
        self.sets = np.array([*(1 << g for g in range(gpms)), 0], np.int64)
        self.move = np.empty((0, len(self.sets)), np.int32)
        self.moves = np.empty((0, 3), np.int32)
        self.marks = np.empty((0, 3), np.int32)
        self.changing = np.empty((len(self.sets), 0), np.int64)
        self._states: list[DeterministicState] = []
        self._numbers: dict[DeterministicState, int] = {}
        self._number(automaton.initial)

    @property
    def words(self) -> int:
        """How many 64-bit words hold one bit per state."""
        return self.changing.shape[1]

    def _number(self, state: DeterministicState | None) -> int:
        if state is None:
            return set_arrays.NIL
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            row = np.full((1, len(self.sets)), kernel.UNKNOWN, np.int32)
            self.move = np.concatenate([self.move, row])
            self._may_change(number)
        return number

    def _may_change(self, state: int) -> None:
        """A new state may change at any set of GPMs, until its moves are known."""
        word, bit = divmod(state, kernel.WORD)
        if word == self.words:
            self.changing = np.pad(self.changing, ((0, 0), (0, 1)))
        self.changing[:, word] |= _bits(bit)

    def add_set(self, gpms: int) -> None:
        """Add a set of GPMs, as bits, that have solutions at one instant."""
        self.sets = np.append(self.sets, np.int64(gpms))
        column = np.full((len(self.move), 1), kernel.UNKNOWN, np.int32)
        self.move = np.concatenate([self.move, column], axis=1)
        everything = np.full((1, self.words), -1, np.int64)
        self.changing = np.concatenate([self.changing, everything])

    def add_move(self, state: int, seen: int) -> None:
        """Add the move of a state at a set of GPMs, given by number."""
        move = self._states[state].move(int(self.sets[seen]))
        marks = [(m.gpm, self._number(m.target), m.accepts) for m in move.marks]
        first = len(self.marks)
        self.marks = np.concatenate([self.marks, np.array(marks, np.int32).reshape(-1, 3)])
        row = [[self._number(move.stay), first, first + len(marks)]]
        self.move[state, seen] = len(self.moves)
        self.moves = np.concatenate([self.moves, np.array(row, np.int32)])
        self._find_changing(seen)

    def _find_changing(self, seen: int) -> None:
        """Find the states that the kernel must visit at a set of GPMs.

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

    def snapshot(self) -> object:
        """The state for a snapshot: the automaton's states by their waits."""
        return [state.waits for state in self._states]

    def restore(self, state: object) -> None:
        """Continue from what `snapshot` returned."""
        for waits in cast(list[frozenset[WaitName]], state):
            self._number(self._automaton.state(waits))


def _bits(bit: int) -> np.int64:
    """A 64-bit word with one bit set."""
    return np.uint64(1 << bit).astype(np.int64)


class CompactState:
    """The partial matches of all slots; `contiguous` is SELECT STRICT."""

    __slots__ = (
        "_active",
        "_entries",
        "_entry_of",
        "_free",
        "_latest",
        "_lists",
        "_order",
        "_place_of",
        "_tables",
        "nodes",
        "strict",
    )

    def __init__(self, program: Program, gpms: int, contiguous: bool) -> None:
        automaton = DeterministicAutomaton(expand(program), contiguous)
        self.strict = automaton.strict
        self._tables = MoveTables(automaton, gpms)
        self.nodes = SetNodes()
        self._active = np.zeros((0, self._tables.words), np.int64)
        self._entry_of = np.empty((0, 0), np.int32)
        self._entries = np.empty((0, kernel.LIST + _WIDTH), np.int64)
        self._free = np.empty(0, np.int32)
        self._latest = np.empty(0, np.int64)
        self._make_room_for_states()

    def grow(self, slots: int) -> None:
        """Make room for the slots below `slots`."""
        before = len(self._latest)
        if slots > before:
            more = ((0, 2 * slots - before), (0, 0))
            self._active, self._entry_of = np.pad(self._active, more), np.pad(self._entry_of, more)
            self._latest = np.pad(self._latest, more[0])

    def advance(self, rows: OrderedRows) -> Int64s:
        """Process rows; returns the roots [R, 2] of the matches that end, as (node, row)."""
        nodes, tables = self.nodes, self._tables
        return nodes.roots_of(
            lambda: kernel.advance_compact(
                *rows.columns,
                rows.number,
                tables.gpms,
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
                nodes.array,
                nodes.roots,
                self._lists,
                self._place_of,
                self._order,
                nodes.cursor,
            ),
            self._provide,
        )

    def _provide(self, missing: int) -> None:
        """Provide what the kernel has reported missing."""
        cursor = self.nodes.cursor
        if missing == set_arrays.MOVE_UNKNOWN:
            self._tables.add_move(int(cursor[set_arrays.STATE]), int(cursor[set_arrays.SEEN]))
            self._make_room_for_states()
        elif missing == set_arrays.SET_UNKNOWN:
            self._tables.add_set(int(cursor[set_arrays.SEEN]))
        elif missing == set_arrays.LISTS_FULL:
            self._entries = np.pad(self._entries, ((0, 0), (0, self._entries.shape[1])))
            self._make_scratch()
        elif missing == set_arrays.ENTRIES_FULL:
            self._make_room_for_entries(int(cursor[set_arrays.NEED]))
        else:
            self.nodes.make_room(missing)

    def _make_room_for_states(self) -> None:
        """Make room for every state known so far."""
        states, words = len(self._tables.move), self._tables.words
        before = self._entry_of.shape[1]
        if states > before:
            size = 2 * states
            self._entry_of = np.pad(self._entry_of, ((0, 0), (0, size - before)))
            self._make_scratch()
        if words > self._active.shape[1]:
            self._active = np.pad(self._active, ((0, 0), (0, words - self._active.shape[1])))

    def _make_room_for_entries(self, need: int) -> None:
        before, free = len(self._entries), int(self.nodes.cursor[set_arrays.FREE])
        more = before + need + _FEW
        self._entries = np.pad(self._entries, ((0, more), (0, 0)))
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
        """Clear idle slots, which will stand for other keys."""
        cursor = self.nodes.cursor
        cursor[set_arrays.FREE] = kernel.vacate(
            slots, self._active, self._entry_of, self._free, cursor[set_arrays.FREE]
        )
        self._latest[slots] = 0

    def waiting(self) -> int:
        """How many sets of partial matches wait."""
        return int(self._living(set_arrays.EVER).sum())

    def snapshot(self) -> object:
        """The state for a snapshot."""
        own = self._active, self._entry_of, self._entries, self._free, self._latest
        return own, self.nodes.snapshot(), self._tables.snapshot()

    def restore(self, state: object) -> None:
        """Continue from what `snapshot` returned."""
        assert isinstance(state, tuple)
        own, nodes, tables = state
        self._tables.restore(tables)
        self._active, self._entry_of, self._entries, self._free, self._latest = own
        self.nodes.restore(nodes)
        self._make_scratch()

    def _make_scratch(self) -> None:
        """Make the scratch arrays of the kernel."""
        size = self._entry_of.shape[1]
        self._lists = np.empty((size, self._entries.shape[1]), np.int64)
        self._place_of = np.zeros((size, 2), np.int64)
        self._order = np.empty((size, 3), np.int64)
