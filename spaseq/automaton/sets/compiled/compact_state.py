"""The state of the compact kernel: the union-lists of the active states of all slots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.sets.compiled.move_tables import MoveTables, S, widened
from spaseq.automaton.sets.compiled.set_nodes import SetNodes, whole
from spaseq.automaton.sets.kernels import compact as kernel
from spaseq.automaton.sets.kernels import set_arrays
from spaseq.automaton.sets.python.determinise import DeterministicAutomaton, DeterministicState
from spaseq.automaton.sets.python.expand import WaitName, Waits
from spaseq.compiled.arrays import Bools, Indices, Int64s, grown
from spaseq.stateful import Stateful

_FEW = 16
"""Spare entries."""
_WIDTH = 8
"""Columns of a union-list of four nodes, each with its maximum start."""


def _move(state: DeterministicState, letters: int) -> tuple[DeterministicState | None, Any]:
    """A move, as `MoveTables` takes it."""
    move = state.move(letters)
    return move.stay, [(m.letter, m.target, m.accepts, m.depth) for m in move.marks]


class ActiveLists(Stateful, Generic[S]):
    """The partial matches of all slots, as union-lists of the active states."""

    __slots__ = (
        "_active",
        "_begins",
        "_consumes",
        "_entries",
        "_entry_of",
        "_free",
        "_inner",
        "_latest",
        "_lists",
        "_order",
        "_place_of",
        "_tables",
        "_when",
        "nodes",
    )

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

    __slots__ = ("_automaton", "strict")

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
