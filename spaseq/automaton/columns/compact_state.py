"""The state of the compact kernel, and the automaton as it is determinised on the way."""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from spaseq.automaton.columns.frame import Rows
from spaseq.automaton.columns.set_nodes import SetNodes
from spaseq.automaton.evaluators.determinise import Determinised, State
from spaseq.automaton.evaluators.expand import expand
from spaseq.automaton.kernels import compact as kernel
from spaseq.automaton.kernels import sets
from spaseq.automaton.nfa import Program

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]


class MoveTables:
    """States, sets of GPMs and moves by number, made when the kernel first asks for them.

    `sets` holds each GPM alone, none, and what else has been seen, as bits. `move` [states, sets]
    is the number of a move or UNKNOWN; `moves` and `marks` are those of the kernel.
    """

    __slots__ = ("_automaton", "_numbers", "_states", "gpms", "marks", "move", "moves", "sets")

    def __init__(self, automaton: Determinised, gpms: int) -> None:
        self._automaton, self.gpms = automaton, gpms
        self.sets = np.array([*(1 << g for g in range(gpms)), 0], np.int64)
        self.move = np.empty((0, len(self.sets)), np.int32)
        self.moves = np.empty((0, 3), np.int32)
        self.marks = np.empty((0, 3), np.int32)
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._number(automaton.initial)

    def _number(self, state: State | None) -> int:
        if state is None:
            return sets.NIL
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            row = np.full((1, len(self.sets)), kernel.UNKNOWN, np.int32)
            self.move = np.concatenate([self.move, row])
        return number

    def add_set(self, gpms: int) -> None:
        """GPMs, as bits, that have solutions at one instant."""
        self.sets = np.append(self.sets, np.int64(gpms))
        column = np.full((len(self.move), 1), kernel.UNKNOWN, np.int32)
        self.move = np.concatenate([self.move, column], axis=1)

    def add_move(self, state: int, seen: int) -> None:
        """What a set of GPMs, by number, does in a state."""
        found = self._states[state].move(int(self.sets[seen]))
        marks = [(m.gpm, self._number(m.target), m.accepts) for m in found.marks]
        first = len(self.marks)
        self.marks = np.concatenate([self.marks, np.array(marks, np.int32).reshape(-1, 3)])
        move = [[self._number(found.stay), first, first + len(marks)]]
        self.move[state, seen] = len(self.moves)
        self.moves = np.concatenate([self.moves, np.array(move, np.int32)])

    def state(self) -> object:
        """What a snapshot keeps: the states by their waits."""
        return [state.waits for state in self._states]

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        for waits in cast(list[frozenset[int]], state):
            self._number(self._automaton.state(waits))


class CompactState:
    """The partial matches of all slots; `contiguous` is SELECT STRICT."""

    __slots__ = ("_latest", "_lists", "_pool", "_table", "_tables", "nodes", "strict")

    def __init__(self, program: Program, gpms: int, contiguous: bool) -> None:
        automaton = Determinised(expand(program), contiguous)
        self.strict = automaton.strict
        self._tables = MoveTables(automaton, gpms)
        self.nodes = SetNodes()
        self._table = np.zeros((0, 3), np.int64)
        self._pool = np.empty(256, np.int64)
        self._latest = np.empty(0, np.int64)
        self._lists = np.empty((16, 16), np.int64)

    def grow(self, slots: int) -> None:
        """Make room for slots below a number."""
        before = len(self._table)
        if slots > before:
            table, latest = np.zeros((2 * slots, 3), np.int64), np.zeros(2 * slots, np.int64)
            table[:before], latest[:before] = self._table, self._latest
            self._table, self._latest = table, latest

    def advance(self, rows: Rows) -> Int64s:
        """Work off some solutions; the roots [R, 2] of the matches that end, with their rows."""
        nodes, cursor, tables = self.nodes, self.nodes.cursor, self._tables
        cursor[sets.ROOTS :] = 0
        while True:
            full = kernel.advance_compact(
                rows.slot,
                rows.gpm,
                rows.time,
                rows.k,
                rows.start,
                rows.lowest,
                rows.ordinal,
                rows.number,
                tables.gpms,
                tables.sets,
                tables.move,
                tables.moves,
                tables.marks,
                self._table,
                self._pool,
                self._latest,
                nodes.array,
                nodes.roots,
                self._lists,
                np.zeros((len(tables.move), 2), np.int64),
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
        elif missing == sets.SET_UNKNOWN:
            self._tables.add_set(int(cursor[sets.SEEN]))
        elif missing == sets.LISTS_FULL:
            rows, columns = self._lists.shape
            self._lists = np.empty((2 * rows, 2 * columns), np.int64)
        elif missing == sets.POOL_FULL:
            self.make_room(int(cursor[sets.NEED]))
        else:
            self.nodes.make_room(missing)

    def make_room(self, need: int) -> None:
        """Move the blocks of the pool together, with room for as much again and `need` more."""
        size = int(self._table[:, kernel.LENGTH].sum()) + need
        pool = np.empty(2 * size + 256, np.int64)
        self.nodes.cursor[sets.TOP] = kernel.moved_blocks(self._table, self._pool, pool)
        self._pool = pool

    def _living(self, floor: int) -> Int64s:
        alive = np.empty(len(self._table), np.int64)
        nodes = self.nodes
        kernel.living(self._table, self._pool, nodes.array, nodes.base, floor, alive)
        return alive

    def idle(self, floor: int) -> npt.NDArray[np.bool_]:
        """By slot: whether no partial match there lies in the window that begins at `floor`."""
        return np.equal(self._living(floor), 0)

    def release(self, slots: npt.NDArray[np.intp]) -> None:
        """Slots that are idle will stand for other keys."""
        self._table[slots, kernel.LENGTH], self._latest[slots] = 0, 0

    def waiting(self) -> int:
        """How many sets of partial matches wait."""
        return int(self._living(sets.EVER).sum())

    def state(self) -> object:
        """What a snapshot keeps."""
        nodes, tables = self.nodes.state(), self._tables.state()
        return self._table, self._pool, self._latest, nodes, tables

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        assert isinstance(state, tuple)
        self._table, self._pool, self._latest, nodes, tables = state
        self.nodes.take_up(nodes)
        self._tables.take_up(tables)
