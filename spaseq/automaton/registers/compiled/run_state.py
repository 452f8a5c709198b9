"""The state of the register kernel: runs and waits in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.match_builder import PIECE, EnumeratedMatches
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.compiled.threshold_sequence import plain_steps
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.kernels import run_collection, waits
from spaseq.automaton.registers.kernels.register_runs import advance
from spaseq.automaton.registers.kernels.threshold_runs import advance_plain
from spaseq.automaton.registers.kernels.waits import NO_NUMBER
from spaseq.compiled.arrays import Array, Arrays, Bools, Bytes, Float64s, Indices, Int64s
from spaseq.rdf.columns.term_columns import distinct

_RUNS, _POOL, _SLOTS = 4096, 4096, 16
_TOGETHER = 1024
"""So many rows are left to the general kernel where an instant has several."""


@dataclass(frozen=True, slots=True)
class WaitingPath:
    """A wait: where it is, and what its run has taken: edges and numbers of solutions, in order."""

    slot: int
    edge: int
    origin: int  # measure of its first event
    path: list[tuple[int, int]]


class RunState:
    """All runs of a sequence, of all slots.

    `counted` is n of WITHIN n EVENTS, -1 for windows of time.
    """

    __slots__ = (
        "_arrived",
        "_counted",
        "_cursor",
        "_ends",
        "_found",
        "_look",
        "_passed",
        "_plain",
        "_runs",
        "_tables",
        "_waits",
    )

    def __init__(self, tables: RunTables, counted: int = -1) -> None:
        self._tables, self._counted = tables, counted
        self._runs: Arrays = (
            np.empty((_RUNS, kernel.TIME + tables.timed), np.int64),
            np.empty((_RUNS, len(tables.registers))),
        )
        self._waits: Arrays = (
            np.zeros((0, kernel.BLOCK_COLUMNS), np.int32),
            np.empty(0, np.int64),
            np.full(_POOL, NO_NUMBER),
            np.empty(_POOL, np.int32),
        )
        self._cursor = np.zeros(kernel.CURSOR, np.int64)
        self._cursor[kernel.TOP] = 1
        self._passed = np.zeros((0, 2), np.int64)
        self._arrived = _arrived(64)
        self._found, self._ends = np.empty(64, np.int64), np.empty((16, 2), np.int64)
        timed = tables.timed or tables.strict or counted >= 0
        self._plain = None if timed else plain_steps(tables.program, len(tables.registers))
        self._look: Arrays = np.empty(kernel.AHEAD, np.int64), np.empty(kernel.AHEAD)
        self.grow(_SLOTS)

    def grow(self, slots: int) -> None:
        """Make room for slots below a number."""
        before = len(self._passed)
        if slots <= before:
            return
        slots = max(slots, 2 * before)
        blocks, made, key, run = self._waits
        size = slots * len(self._tables.edges)
        more = np.zeros((size, kernel.BLOCK_COLUMNS), np.int32)
        more[:, kernel.PLACE] = 1  # behind the first key of the pool
        more[: len(blocks)] = blocks
        more_made = np.full(size, -2, np.int64)
        more_made[: len(made)] = made
        self._waits = more, more_made, key, run
        passed = np.zeros((slots, 2), np.int64)
        passed[:before] = self._passed
        self._passed = passed

    def advance(
        self, rows: OrderedRows, own: Float64s, taken: Bytes
    ) -> Iterator[EnumeratedMatches]:
        """Work off some solutions; `own` [numbers, n] are those of `RunTables.own`.

        Gives the matches that end there, in pieces, each valid until the next one: there may be any
        number of them. Behind the last, `taken` [n] is 1 for those of the solutions that waiting
        runs have taken.
        """
        cursor = self._cursor
        cursor[kernel.FOUND :] = 0
        until = len(rows) if self._plain is None else 0  # rows for the general kernel
        full = kernel.FOUND_FULL
        while full != kernel.DONE:
            full = self._moved_on(rows, own, until, taken)
            need, matches = int(cursor[kernel.NEED]), int(cursor[kernel.MATCHES])
            if full == kernel.TOGETHER:
                until = min(int(cursor[kernel.ROW]) + _TOGETHER, len(rows))
            elif full == kernel.ARRIVED_FULL:
                self._arrived = _arrived(2 * need)
            elif full == kernel.RUNS_FULL:
                row = int(cursor[kernel.ROW])
                self._make_room_for_runs(need, len(rows) - row, int(rows.lowest[row]))
            elif full == kernel.POOL_FULL:
                self.make_room_for_waits(need)
            elif full != kernel.DONE and (len(self._found) < PIECE or not matches):
                self._found = _resized(self._found, 2 * (len(self._found) + need))
                self._ends = _resized(self._ends, 2 * len(self._ends))
            elif matches:
                yield EnumeratedMatches(self._found[: cursor[kernel.FOUND]], self._ends[:matches])
                cursor[kernel.FOUND] = cursor[kernel.MATCHES] = 0

    def _moved_on(self, rows: OrderedRows, own: Float64s, until: int, taken: Bytes) -> int:
        """Go on, up to the row `until` by the general kernel: DONE, or what is in the way."""
        scratch, full = (taken, self._found, self._ends), kernel.DONE
        if self._cursor[kernel.ROW] < until:
            full = self._advance(rows, own, until, scratch)
        if full == kernel.DONE and self._cursor[kernel.ROW] < len(rows):
            full = self._advance_plain(rows, own, scratch)
        return full

    def _advance(self, rows: OrderedRows, own: Float64s, until: int, scratch: Arrays) -> int:
        return advance(
            *rows.columns,
            own,
            rows.number,
            until,
            self._plain is not None,
            self._counted,
            self._tables.program,
            self._runs,
            self._waits,
            self._passed,
            (*self._arrived, *scratch),
            self._cursor,
        )

    def _advance_plain(self, rows: OrderedRows, own: Float64s, scratch: Arrays) -> int:
        plain = self._plain
        assert plain is not None
        return advance_plain(
            *rows.columns,
            own,
            rows.number,
            plain.edges,
            plain.step,
            plain.source,
            plain.threshold,
            self._runs,
            self._waits,
            (*scratch, *self._look),
            self._cursor,
        )

    def _make_room_for_runs(self, need: int, rows: int, lowest: int) -> None:
        """Room for runs that arrive now, and for as many as so many rows usually begin."""
        self._collect(lowest)
        used, size = int(self._cursor[kernel.USED]), len(self._runs[0])
        # `collect` goes through all runs and blocks: next time when a third has been added.
        enough = used + need + max((used + need + len(self._waits[0])) // 3, rows, _RUNS)
        if enough > size:
            self._runs = tuple(_resized(a, enough) for a in self._runs)

    def make_room_for_waits(self, need: int) -> None:
        """Move the waits together, with room for a quarter as many again and `need` more."""
        blocks, made, key, run = self._waits
        size = waits.pool_size(blocks)
        room = size + need + max(size // 4, _POOL)
        new_key, new_run = np.empty(room), np.empty(room, np.int32)
        self._cursor[kernel.TOP] = waits.moved_together(blocks, key, run, new_key, new_run)
        self._waits = blocks, made, new_key, new_run

    def _collect(self, lowest: int) -> None:
        run_collection.collect(
            self._tables.program[2],
            self._runs,
            self._waits,
            self._passed,
            self._arrived[0],
            self._cursor,
            self._counted,
            lowest,
            np.zeros(self._cursor[kernel.USED], np.uint8),
            np.empty(self._cursor[kernel.USED], np.int32),
        )

    def collect(self, lowest: int) -> Int64s:
        """Drop what no match can use that ends at the measure whose window begins at `lowest`.

        Returns the numbers of the solutions that are still in use, ascending.
        """
        self._collect(lowest)
        return distinct(self._runs[0][: self._cursor[kernel.USED], kernel.SOLUTION])

    def idle(self) -> Bools:
        """By slot: whether nothing waits there."""
        counts = self._waits[0][:, kernel.COUNT].reshape(len(self._passed), -1)
        free: Bools = np.equal(counts.max(axis=1), 0)
        return free

    def release(self, slots: Indices) -> None:
        """Slots at which nothing waits will stand for other keys."""
        self._passed[slots] = 0

    def waiting(self) -> int:
        """How many waits there are, those included whose windows are over."""
        return int(self._waits[0][:, kernel.COUNT].sum())

    def live(self) -> int:
        """How many runs there are, those included that wait no more."""
        return int(self._cursor[kernel.USED])

    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for a in (*self._runs, *self._waits, self._passed))

    def registers(self, register: int) -> Float64s:
        """The numbers that runs have in a register, each once."""
        numbers: Float64s = self._runs[-1][: self._cursor[kernel.USED], register]
        return np.unique(numbers[~np.isnan(numbers)])

    def events(self, slot: int) -> int:
        """How many events a slot has had, where they are counted."""
        return int(self._passed[slot, kernel.EVENTS])

    def waits(self) -> Iterator[WaitingPath]:
        """Every wait that the next instant of its slot does not end."""
        nodes, which = self._runs[0].tolist(), (1 << kernel.EDGE_BITS) - 1
        blocks, made, _, run = self._waits
        kind, edges = self._tables.program[2][:, kernel.KIND], len(self._tables.edges)
        latest = np.repeat(self._passed[:, kernel.ORDINAL], edges)
        over = (np.tile(kind[:edges], len(self._passed)) == kernel.STRICT) & (made != latest)
        for block, (place, count, *_) in enumerate(blocks.tolist()):
            if over[block]:
                continue
            for node in run[place : place + count].tolist():
                path, begin = [], nodes[node][kernel.ORIGIN]
                while node >= 0:
                    path.append((nodes[node][kernel.PATH] & which, nodes[node][kernel.SOLUTION]))
                    node = nodes[node][kernel.BEFORE]
                yield WaitingPath(block // edges, block % edges, begin, path[::-1])

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        used = self._cursor[kernel.USED]
        runs = tuple(a[:used] for a in self._runs)
        return runs, self._waits, self._cursor, self._passed

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        self._runs, self._waits, self._cursor, self._passed = state
        # In what earlier versions have kept, waits are in no order.
        self.make_room_for_waits(0)


def _resized(values: Array, size: int) -> Array:
    larger = np.empty((size, *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger


def _arrived(size: int) -> Arrays:
    """Room for runs that arrive at one instant: run before, row, edge; and a stack for heaps."""
    return tuple(np.empty(size, np.int32) for _ in range(4))
