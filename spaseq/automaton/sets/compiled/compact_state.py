"""The state of the compact kernel, and the automaton as it is determinised on the way."""

from __future__ import annotations

from typing import cast

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.sets.compiled.set_nodes import SetNodes
from spaseq.automaton.sets.kernels import compact as kernel
from spaseq.automaton.sets.kernels import sets
from spaseq.automaton.sets.python.determinise import Determinised, DeterminisedState
from spaseq.automaton.sets.python.expand import expand
from spaseq.compiled.arrays import Bools, Indices, Int64s

_FEW = 16
_WIDTH = 8
"""A list of four nodes with their maximum starts."""


class MoveTables:
    """States, sets of GPMs and moves by number, made when the kernel first asks for them.

    `sets` holds each GPM alone, none, and what else has been seen, as bits. `move` [states, sets]
    is the number of a move or UNKNOWN; `moves`, `marks` and `changing` are those of the kernel.
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

    def __init__(self, automaton: Determinised, gpms: int) -> None:
        self._automaton, self.gpms = automaton, gpms
        self.sets = np.array([*(1 << g for g in range(gpms)), 0], np.int64)
        self.move = np.empty((0, len(self.sets)), np.int32)
        self.moves = np.empty((0, 3), np.int32)
        self.marks = np.empty((0, 3), np.int32)
        self.changing = np.empty((len(self.sets), 0), np.int64)
        self._states: list[DeterminisedState] = []
        self._numbers: dict[DeterminisedState, int] = {}
        self._number(automaton.initial)

    @property
    def words(self) -> int:
        """How many words of bits the states need."""
        return self.changing.shape[1]

    def _number(self, state: DeterminisedState | None) -> int:
        if state is None:
            return sets.NIL
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            row = np.full((1, len(self.sets)), kernel.UNKNOWN, np.int32)
            self.move = np.concatenate([self.move, row])
            self._may_change(number)
        return number

    def _may_change(self, state: int) -> None:
        """Nothing is known of a new state."""
        word, bit = divmod(state, kernel.WORD)
        if word == self.words:
            self.changing = np.pad(self.changing, ((0, 0), (0, 1)))
        self.changing[:, word] |= _bits(bit)

    def add_set(self, gpms: int) -> None:
        """GPMs, as bits, that have solutions at one instant."""
        self.sets = np.append(self.sets, np.int64(gpms))
        column = np.full((len(self.move), 1), kernel.UNKNOWN, np.int32)
        self.move = np.concatenate([self.move, column], axis=1)
        everything = np.full((1, self.words), -1, np.int64)
        self.changing = np.concatenate([self.changing, everything])

    def add_move(self, state: int, seen: int) -> None:
        """What a set of GPMs, by number, does in a state."""
        found = self._states[state].move(int(self.sets[seen]))
        marks = [(m.gpm, self._number(m.target), m.accepts) for m in found.marks]
        first = len(self.marks)
        self.marks = np.concatenate([self.marks, np.array(marks, np.int32).reshape(-1, 3)])
        move = [[self._number(found.stay), first, first + len(marks)]]
        self.move[state, seen] = len(self.moves)
        self.moves = np.concatenate([self.moves, np.array(move, np.int32)])
        self._find_changing(seen)

    def _find_changing(self, seen: int) -> None:
        """States that a set of GPMs leaves as they are need not be looked at: they stay, nothing is
        taken from them, and no other one is known to lead to them."""
        changing = set[int]()
        for state, number in enumerate(self.move[:, seen].tolist()):
            if number == kernel.UNKNOWN:
                changing.add(state)
                continue
            stay, first, end = self.moves[number].tolist()
            if first < end or stay != state:
                changing.update([state, stay, *self.marks[first:end, kernel.TARGET].tolist()])
        self.changing[seen] = 0
        for state in changing - {sets.NIL}:
            self.changing[seen, state // kernel.WORD] |= _bits(state % kernel.WORD)

    def snapshot(self) -> object:
        """What a snapshot keeps: the states by their waits."""
        return [state.waits for state in self._states]

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        for waits in cast(list[frozenset[int]], state):
            self._number(self._automaton.state(waits))


def _bits(bit: int) -> np.int64:
    """A word in which one bit is set."""
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
        automaton = Determinised(expand(program), contiguous)
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
        """Make room for slots below a number."""
        before = len(self._latest)
        if slots > before:
            more = ((0, 2 * slots - before), (0, 0))
            self._active, self._entry_of = np.pad(self._active, more), np.pad(self._entry_of, more)
            self._latest = np.pad(self._latest, more[0])

    def advance(self, rows: OrderedRows) -> Int64s:
        """Work off some solutions; the roots [R, 2] of the matches that end, with their rows."""
        nodes, cursor, tables = self.nodes, self.nodes.cursor, self._tables
        cursor[sets.ROOTS :] = 0
        while True:
            full = kernel.advance_compact(
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
                cursor,
            )
            if full == sets.DONE:
                return nodes.roots[: cursor[sets.ROOTS]].copy()
            self._provide(full)

    def _provide(self, missing: int) -> None:
        """Make what the kernel has found missing."""
        cursor = self.nodes.cursor
        if missing == sets.MOVE_UNKNOWN:
            self._tables.add_move(int(cursor[sets.STATE]), int(cursor[sets.SEEN]))
            self._make_room_for_states()
        elif missing == sets.SET_UNKNOWN:
            self._tables.add_set(int(cursor[sets.SEEN]))
        elif missing == sets.LISTS_FULL:
            self._entries = np.pad(self._entries, ((0, 0), (0, self._entries.shape[1])))
            self._make_scratch()
        elif missing == sets.ENTRIES_FULL:
            self._make_room_for_entries(int(cursor[sets.NEED]))
        else:
            self.nodes.make_room(missing)

    def _make_room_for_states(self) -> None:
        """Let the arrays have a place for each state that is known now."""
        states, words = len(self._tables.move), self._tables.words
        before = self._entry_of.shape[1]
        if states > before:
            size = 2 * states
            self._entry_of = np.pad(self._entry_of, ((0, 0), (0, size - before)))
            self._make_scratch()
        if words > self._active.shape[1]:
            self._active = np.pad(self._active, ((0, 0), (0, words - self._active.shape[1])))

    def _make_room_for_entries(self, need: int) -> None:
        before, free = len(self._entries), int(self.nodes.cursor[sets.FREE])
        more = before + need + _FEW
        self._entries = np.pad(self._entries, ((0, more), (0, 0)))
        added = np.arange(before, before + more, dtype=np.int32)
        self._free = np.concatenate([self._free[:free], added, np.empty(before, np.int32)])
        self.nodes.cursor[sets.FREE] = free + more

    def _living(self, floor: int) -> Int64s:
        alive = np.empty(len(self._active), np.int64)
        kernel.living(self._active, self._entry_of, self._entries, floor, alive)
        return alive

    def idle(self, floor: int) -> Bools:
        """By slot: whether no partial match there lies in the window that begins at `floor`."""
        return np.equal(self._living(floor), 0)

    def release(self, slots: Indices) -> None:
        """Slots that are idle will stand for other keys."""
        cursor = self.nodes.cursor
        cursor[sets.FREE] = kernel.vacate(
            slots, self._active, self._entry_of, self._free, cursor[sets.FREE]
        )
        self._latest[slots] = 0

    def waiting(self) -> int:
        """How many sets of partial matches wait."""
        return int(self._living(sets.EVER).sum())

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        own = self._active, self._entry_of, self._entries, self._free, self._latest
        return own, self.nodes.snapshot(), self._tables.snapshot()

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        own, nodes, tables = state
        self._tables.restore(tables)
        self._active, self._entry_of, self._entries, self._free, self._latest = own
        self.nodes.restore(nodes)
        self._make_scratch()

    def _make_scratch(self) -> None:
        """What the kernel writes to while it works an instant off."""
        size = self._entry_of.shape[1]
        self._lists = np.empty((size, self._entries.shape[1]), np.int64)
        self._place_of = np.zeros((size, 2), np.int64)
        self._order = np.empty((size, 3), np.int64)
