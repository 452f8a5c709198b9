"""The state of the register kernel: runs and waiting runs in flat arrays that grow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.registers.compiled.answers import AskedAnswers
from spaseq.automaton.registers.compiled.edge_tests import SLOT
from spaseq.automaton.registers.compiled.layout import edge_of, threshold_steps
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.compiled.waiting_candidates import (
    WaitingCandidate,
    are_forestalled,
    waiting_candidate,
)
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.kernels.register_runs import advance
from spaseq.automaton.registers.kernels.run_arrays import RunArrays, WaitingArrays
from spaseq.automaton.registers.kernels.run_collection import close_windows, collect
from spaseq.automaton.registers.kernels.threshold_runs import advance_threshold_sequence
from spaseq.automaton.registers.kernels.waiting_blocks import (
    NO_THRESHOLD,
    compact_pool,
    pool_size,
)
from spaseq.automaton.run.waiting_limit import Member
from spaseq.compiled.arrays import Array, Arrays, Bools, Bytes, Float64s, Indices, Int32s, Int64s
from spaseq.rdf.columns.term_columns import distinct
from spaseq.records import record
from spaseq.stateful import Stateful

_RUNS, _POOL, _SLOTS = 4096, 4096, 16
"""Room at the start."""


@record
class WaitingPath:
    """A waiting run: its edge, and the edges and ids of its solutions."""

    slot: int
    edge: int
    origin: int
    """The measure of its first event."""
    path: list[tuple[int, int]]
    nodes: list[int]
    """The runs of these solutions, the waiting one last."""

    @property
    def node(self) -> int:
        """The run."""
        return self.nodes[-1]


class RunState(Stateful):
    """All runs of a sequence, of all slots.

    `answers` are the answers to the asked tests; `counted` is n of WITHIN n EVENTS, -1 for windows
    of time.
    """

    STATE = (("_runs", "_used_runs"), "_waiting", "_cursor", "_progress")

    __slots__ = (
        "_ahead",
        "_answers",
        "_arrivals",
        "_counted",
        "_cursor",
        "_ends",
        "_few",
        "_matched",
        "_path",
        "_program",
        "_progress",
        "_runs",
        "_tables",
        "_thresholds",
        "_waiting",
    )

    def __init__(self, tables: RunTables, answers: AskedAnswers, counted: int = -1) -> None:
        self._tables, self._answers, self._counted = tables, answers, counted
        self._program: Arrays = tuple(tables.program)
        # The fields of `RunArrays`, `WaitingArrays` (all but `few`) and `ArrivalArrays`.
        self._runs: Arrays = (
            np.empty((_RUNS, kernel.TIME + tables.timed), np.int64),
            np.empty((_RUNS, len(tables.registers))),
        )
        self._waiting: Arrays = (
            np.zeros((0, kernel.BLOCK_COLUMNS), np.int32),
            np.empty(0, np.int64),
            np.full(_POOL, NO_THRESHOLD),
            np.empty(_POOL, np.int32),
        )
        self._few = np.array([thresholds.current.heap_runs], np.int64)
        self._arrivals: Arrays = tuple(np.empty(64, np.int32) for _ in range(4))
        self._cursor = np.zeros(kernel.CURSOR, np.int64)
        self._cursor[kernel.TOP] = 1
        self._progress = np.zeros((0, 2), np.int64)
        self._matched, self._ends = np.empty(64, np.int64), np.empty((16, 2), np.int64)
        self._path = np.empty(64 if tables.judged else 0, np.uint8)
        self._thresholds = None
        if tables.is_threshold_sequence:
            self._thresholds = threshold_steps(tables.program, len(tables.registers))
        ahead = int(thresholds.current.prepared_rows)
        self._ahead: Arrays = np.empty(ahead, np.int64), np.empty(ahead), np.empty(ahead, np.int32)
        self.grow(_SLOTS)

    # --- a batch ----------------------------------------------------------------------------------

    def advance(
        self, rows: OrderedRows, number: Float64s, taken: Bytes, pace: Pace | None = None
    ) -> Iterator[EnumeratedMatches]:
        """Process n solutions; yield the matches that end there, in pieces.

        There may be any number of matches, so each piece is valid only until the next one.

        Args:
            rows: the solutions.
            number: [numbers, n] the numbers of `RunTables.numbers` for each.
            taken: [n] all zero; 1 at the end for the solutions that waiting runs have taken.
            pace: limits the kernels' progress, if partial matches are limited.
        """
        cursor = self._cursor
        cursor[kernel.MATCHED :] = 0
        self._answers.begin()
        until = len(rows) if self._thresholds is None else 0  # rows for the register kernel
        full = kernel.MATCHED_FULL
        while full != kernel.DONE or (pace is not None and pace.goes_on):
            used = 0 if pace is None else int(cursor[kernel.USED])
            full = self._go_on(rows, number, until, taken, None if pace is None else pace.room)
            need, matches = int(cursor[kernel.NEED]), int(cursor[kernel.MATCHES])
            if pace is not None:
                pace.made(int(cursor[kernel.USED]) - used)
                if full == kernel.RUNS_FULL and cursor[kernel.USED] < len(self._runs[0]):
                    rows = pace.look(int(cursor[kernel.ROW]))
                    continue
            if full == kernel.TIED:
                until = min(int(cursor[kernel.ROW]) + thresholds.current.tied_rows, len(rows))
            elif full == kernel.ARRIVALS_FULL:
                self._arrivals = tuple(_resized(a, 2 * need) for a in self._arrivals)
            elif full == kernel.RUNS_FULL:
                row = int(cursor[kernel.ROW])
                self._make_room_for_runs(need, len(rows) - row, int(rows.lowest[row]))
            elif full == kernel.UNANSWERED:
                self._answers.answer(int(cursor[kernel.ROW]), self._node)
            elif full == kernel.POOL_FULL:
                self.make_room_for_waiting(need)
            elif full != kernel.DONE and (
                len(self._matched) < thresholds.current.enumerated_rows or not matches
            ):
                self._make_room_for_matches(need)
            elif matches:
                yield self._enumerated()
                cursor[kernel.MATCHED] = cursor[kernel.MATCHES] = 0
            if full == kernel.DONE and pace is not None:
                self._drop(pace, pace.reached())
                rows = pace.rows

    def _go_on(
        self, rows: OrderedRows, number: Float64s, until: int, taken: Bytes, room: int | None
    ) -> int:
        """Continue, with the register kernel up to row `until`: DONE, or the array that is full.

        There may be `room` new runs, any number if it is None.
        """
        outputs, full = (taken, self._matched, self._ends, self._path), kernel.DONE
        until = min(until, len(rows))
        most = None if room is None else int(self._cursor[kernel.USED]) + room
        if self._cursor[kernel.ROW] < until:
            full = self._advance(rows, number, until, self._first_runs(most), outputs)
        if full == kernel.DONE and self._cursor[kernel.ROW] < len(rows):
            full = self._advance_thresholds(rows, number, self._first_runs(most), outputs)
        return full

    def _first_runs(self, most: int | None) -> Arrays:
        """The arrays of the runs, with room for `most` of them."""
        if most is None or most >= len(self._runs[0]):
            return self._runs
        return tuple(array[:most] for array in self._runs)

    def _advance(
        self, rows: OrderedRows, number: Float64s, until: int, runs: Arrays, outputs: Arrays
    ) -> int:
        return advance(
            rows.columns,
            number,
            rows.number,
            until,
            self._thresholds is not None,
            self._counted,
            self._program,
            runs,
            self._waiting_arrays,
            self._progress,
            self._arrivals,
            self._answers.arrays,
            outputs,
            self._cursor,
        )

    def _advance_thresholds(
        self, rows: OrderedRows, number: Float64s, runs: Arrays, outputs: Arrays
    ) -> int:
        steps = self._thresholds
        assert steps is not None
        return advance_threshold_sequence(
            rows.columns,
            number,
            rows.number,
            steps.edges,
            steps.step,
            steps.source,
            steps.threshold_register,
            runs,
            self._waiting_arrays,
            self._ahead,
            outputs[:3],
            self._cursor,
        )

    def _enumerated(self) -> EnumeratedMatches:
        """The matches since the kernel's last call."""
        size, matches = self._cursor[kernel.MATCHED], self._cursor[kernel.MATCHES]
        path = self._path[:size] if self._tables.judged else None
        return EnumeratedMatches(self._matched[:size], self._ends[:matches], edges=path)

    # --- room -------------------------------------------------------------------------------------

    def grow(self, slots: int) -> None:
        """Make room for the slots below a number."""
        before = len(self._progress)
        if slots <= before:
            return
        slots = max(slots, 2 * before)
        block, made, threshold, run = self._waiting
        size = slots * self._edges
        more = np.zeros((size, kernel.BLOCK_COLUMNS), np.int32)
        more[:, kernel.PLACE] = 1  # behind the NaN with which the pool begins
        more[: len(block)] = block
        more_made = np.full(size, -2, np.int64)
        more_made[: len(made)] = made
        self._waiting = more, more_made, threshold, run
        progress = np.zeros((slots, 2), np.int64)
        progress[:before] = self._progress
        self._progress = progress

    def _make_room_for_runs(self, need: int, rows: int, lowest: int) -> None:
        """Make room for `need` runs now, and for one run for each of the next rows."""
        self._collect(lowest)
        used, size = int(self._cursor[kernel.USED]), len(self._runs[0])
        # `collect` visits all runs and blocks, so the next time comes when a third is added.
        blocks = len(WaitingArrays(*self._waiting_arrays).block)
        enough = used + need + max((used + need + blocks) // 3, rows, _RUNS)
        if enough > size:
            self._runs = tuple(_resized(a, enough) for a in self._runs)

    def _make_room_for_matches(self, need: int) -> None:
        self._matched = _resized(self._matched, 2 * (len(self._matched) + need))
        self._ends = _resized(self._ends, 2 * len(self._ends))
        if self._tables.judged:
            self._path = _resized(self._path, len(self._matched))

    def make_room_for_waiting(self, need: int) -> None:
        """Close the gaps in the pool; leave room for `need` runs and a quarter of the present."""
        block, made, threshold, run = self._waiting
        size = pool_size(block)
        room = size + need + max(size // 4, _POOL)
        new_threshold, new_run = np.empty(room), np.empty(room, np.int32)
        self._cursor[kernel.TOP] = compact_pool(block, threshold, run, new_threshold, new_run)
        self._waiting = block, made, new_threshold, new_run

    def _collect(self, lowest: int) -> None:
        previous, *_ = self._arrivals
        collect(
            self._tables.program.edge,
            self._runs,
            self._waiting_arrays,
            self._progress,
            previous,
            self._cursor,
            self._counted,
            lowest,
            np.zeros(self._cursor[kernel.USED], np.uint8),
            np.empty(self._cursor[kernel.USED], np.int32),
        )
        self._answers.forget_runs()

    def collect(self, lowest: int) -> Int64s:
        """Drop the runs that no match can use that begins at the measure `lowest` or later.

        Returns the ids of the solutions that are still in use, ascending.
        """
        self._collect(lowest)
        return distinct(self._node[:, kernel.SOLUTION])

    def closed(self, lowest: int) -> Iterator[EnumeratedMatches]:
        """The matches whose windows have closed: they began before the measure `lowest`.

        They come in pieces, each valid until the next one.
        """
        cursor, full = self._cursor, kernel.MATCHED_FULL
        while full != kernel.DONE:
            cursor[kernel.MATCHED] = cursor[kernel.MATCHES] = 0
            outputs = self._matched, self._ends, cursor
            edge = self._tables.program.edge
            full = close_windows(edge, self._runs, self._waiting_arrays, lowest, *outputs)
            if cursor[kernel.MATCHES]:
                yield self._enumerated()
            if full != kernel.DONE:
                self._make_room_for_matches(int(cursor[kernel.NEED]))

    def first_closing(self) -> int | None:
        """The measure at which the first run began that waits for the close of its window."""
        block, _, _, run = self._waiting
        is_closing = self._tables.program.edge[:-1, kernel.KIND] == kernel.CLOSING
        own = block.reshape(len(self._progress), -1, kernel.BLOCK_COLUMNS)[:, is_closing]
        own = own[own[:, :, kernel.COUNT] > 0].astype(np.int64)
        if not len(own):
            return None
        place, count = own[:, kernel.PLACE], own[:, kernel.COUNT]
        at = np.repeat(place - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        return int(self._node[run[at], kernel.ORIGIN].min())

    # --- contents ---------------------------------------------------------------------------------

    @property
    def _edges(self) -> int:
        """Number of kernel edges at which runs may wait."""
        return len(self._tables.program.edge) - 1

    @property
    def _node(self) -> Int64s:
        """The nodes of the runs in use."""
        node: Int64s = RunArrays(*self._runs).node[: self._cursor[kernel.USED]]
        return node

    @property
    def _waiting_arrays(self) -> Arrays:
        """The fields of `WaitingArrays`."""
        return (*self._waiting, self._few)

    @property
    def _counts(self) -> Array:
        """Number of waiting runs in each block."""
        counts: Array = WaitingArrays(*self._waiting_arrays).block[:, kernel.COUNT]
        return counts

    @property
    def _joined(self) -> bool:
        """Whether runs wait by ids, so that the number of a block says nothing about the slot."""
        return any(self._tables.joins)

    def idle(self) -> Bools:
        """[slots] whether no run waits there."""
        if self._joined:
            slots = self._slots_of(*self._blocks_and_runs(self._counts))
            return np.equal(np.bincount(slots, minlength=len(self._progress)), 0)
        most = self._counts.reshape(len(self._progress), -1).max(axis=1, initial=0)
        idle: Bools = np.equal(most, 0)
        return idle

    def release(self, slots: Indices) -> None:
        """Release slots without waiting runs for other keys."""
        self._progress[slots] = 0

    def alive(self, lowest: int) -> Int64s:
        """[slots] number of runs that wait for a solution that may still become part of a match.

        In windows of time they began at the measure `lowest` or later.
        """
        slot, _ = self._alive_runs(lowest)
        return np.bincount(slot, minlength=len(self._progress)).astype(np.int64)

    def waiting(self, lowest: int) -> Int64s:
        """The runs that `alive` counts."""
        return self._alive_runs(lowest)[1]

    def _alive_runs(self, lowest: int) -> tuple[Int64s, Int64s]:
        """(the slot, the run) of each run that `alive` counts."""
        count = self._waiting_counts()
        count[:, self._kinds == kernel.CLOSING] = 0
        block, run = self._standing(count)
        run, first = np.unique(run, return_index=True)
        slot, floor = self._slots_of(block[first], run), np.int64(lowest)
        if self._counted >= 0:
            floor = self._progress[slot, kernel.EVENTS] + 1 - self._counted
        is_alive = self._node[run, kernel.ORIGIN] >= floor
        return slot[is_alive], run[is_alive]

    def _slots_of(self, block: Int64s, run: Int64s) -> Int64s:
        """The slots of runs that wait in some blocks."""
        if not self._joined:
            return block // self._edges
        if SLOT not in self._tables.registers:  # there is no key
            return np.zeros_like(block)
        register = self._tables.registers.index(SLOT)
        slots: Int64s = RunArrays(*self._runs).register[run, register].astype(np.int64)
        return slots

    def _blocks_and_runs(self, count: Int64s) -> tuple[Int64s, Int64s]:
        """(block, run) of the counted runs [slots, edges]."""
        run = self._waiting[3][self._places(count)].astype(np.int64)
        return np.repeat(np.arange(count.size), count.ravel()), run

    def _standing(self, count: Int64s) -> tuple[Int64s, Int64s]:
        """`_blocks_and_runs` without forestalled candidates."""
        block, run = self._blocks_and_runs(count)
        edge, runs = self._tables.program.edge, RunArrays(*self._runs)
        kept = ~are_forestalled(edge, runs, block % self._edges, run)
        return block[kept], run[kept]

    def first_rows(self) -> Int64s:
        """[runs] the number of the first solution of each run."""
        before = self._node[:, kernel.PREVIOUS]
        first = np.arange(len(before))
        while (follows := before[first] >= 0).any():
            first[follows] = before[first[follows]]
        rows: Int64s = self._node[first, kernel.SOLUTION]
        return rows

    @property
    def _kinds(self) -> Int32s:
        """[edges] the kinds of the edges."""
        kinds: Int32s = self._tables.program.edge[:-1, kernel.KIND]
        return kinds

    def _waiting_counts(self) -> Int64s:
        """[slots, edges] number of waiting runs; none behind `,` once its instant is over."""
        block, made, _, _ = self._waiting
        shape = len(self._progress), self._edges
        count = block[:, kernel.COUNT].astype(np.int64).reshape(shape)
        is_over = made.reshape(shape) != self._progress[:, kernel.ORDINAL, None]
        count[is_over & (self._kinds == kernel.STRICT)] = 0
        return count

    def _places(self, count: Int64s) -> Int64s:
        """The positions of the counted runs [slots, edges] among the waiting ones."""
        place, some = self._waiting[0][:, kernel.PLACE].astype(np.int64), count.ravel()
        return np.repeat(place - np.cumsum(some) + some, some) + np.arange(int(some.sum()))

    def _drop(self, pace: Pace, members: list[Member]) -> None:
        """Drop the waiting runs of members of a family that have exceeded the limit."""
        if members and pace.carried is not None:
            self._drop_runs(pace.carried.of_members(members))
        elif members and self._joined:
            runs = np.arange(self.live())
            self._drop_runs(np.isin(self._slots_of(runs, runs), pace.slots_of(members)))
        elif members:
            blocks = WaitingArrays(*self._waiting_arrays).block
            by_slot = blocks.reshape(len(self._progress), self._edges, kernel.BLOCK_COLUMNS)
            for column in (kernel.COUNT, kernel.HEAPED, kernel.EXPIRED):
                by_slot[pace.slots_of(members), :, column] = 0

    def _drop_runs(self, gone: Bools) -> None:
        """Remove runs [runs] from their waits."""
        block, _, threshold, run = self._waiting
        at = self._places(block[:, kernel.COUNT].astype(np.int64))
        owner = np.repeat(np.arange(len(block)), block[:, kernel.COUNT])
        kept = ~gone[run[at]]
        at, owner = at[kept], owner[kept]
        # In ascending order a block is a heap; others keep their order.
        level = np.where(block[owner, kernel.HEAPED], threshold[at], 0)
        at = at[np.lexsort((level, owner))]
        left = np.bincount(owner, minlength=len(block)).astype(np.int64)
        block[:, kernel.COUNT], block[:, kernel.EXPIRED] = left, 0
        to = self._places(left)
        threshold[to], run[to] = threshold[at], run[at]

    def last_edges(self, lowest: int, slots: Int64s | None, wanted: Bools | None = None) -> Int64s:
        """[runs] the kernel's edge by which each waiting run came, without expired runs.

        These are the runs that began before the measure `lowest`. `slots` None: of all slots;
        `wanted` [all runs] says which ones count, None: all.
        """
        block, runs = self._standing(self._waiting_counts())
        if slots is not None:
            runs = runs[np.isin(self._slots_of(block, runs), slots)]
        runs = distinct(runs)
        nodes = self._node[runs if wanted is None else runs[wanted[runs]]]
        edges = edge_of(nodes[:, kernel.PATH])
        return edges[nodes[:, kernel.ORIGIN] >= lowest]

    def live(self) -> int:
        """Number of stored runs, including runs that no longer wait."""
        return int(self._cursor[kernel.USED])

    def nbytes(self) -> int:
        """Bytes of all arrays that runs occupy."""
        return sum(a.nbytes for a in (*self._runs, *self._waiting, self._progress))

    def registers(self, register: int) -> Float64s:
        """The distinct numbers that runs have in a register."""
        numbers = RunArrays(*self._runs).register[: self._cursor[kernel.USED], register]
        return np.unique(numbers[~np.isnan(numbers)])

    @property
    def is_counted(self) -> bool:
        """Whether the window is WITHIN n EVENTS."""
        return self._counted >= 0

    def candidate(self, run: WaitingPath) -> WaitingCandidate | None:
        """The candidate of a run, or the one it may begin where it waits, if there is one."""
        return waiting_candidate(
            self._tables.program.edge, RunArrays(*self._runs), run.edge, run.nodes
        )

    def register_of(self, run: int, register: int) -> float:
        """The number that a run has in a register."""
        return float(RunArrays(*self._runs).register[run, register])

    def latest(self, slot: int) -> int:
        """The ordinal of the latest instant of a slot, if instants are numbered."""
        return int(self._progress[slot, kernel.ORDINAL])

    def events(self, slot: int) -> int:
        """Number of events in a slot so far, if they are counted."""
        return int(self._progress[slot, kernel.EVENTS])

    def paths(self) -> Iterator[WaitingPath]:
        """Every waiting run, except runs at `,` edges that the slot's next instant ends."""
        nodes, taken = self._node.tolist(), edge_of(self._node[:, kernel.PATH]).tolist()
        block, run = self._blocks_and_runs(self._waiting_counts())
        waits = self._slots_of(block, run), block % self._edges, run
        for slot, edge, node in zip(*(column.tolist() for column in waits), strict=True):
            path, origin, passed = [], nodes[node][kernel.ORIGIN], []
            while node >= 0:
                path.append((taken[node], nodes[node][kernel.SOLUTION]))
                passed.append(node)
                node = nodes[node][kernel.PREVIOUS]
            yield WaitingPath(slot, edge, origin, path[::-1], passed[::-1])

    @property
    def _used_runs(self) -> Arrays:
        return tuple(a[: self.live()] for a in self._runs)


def _resized(values: Array, size: int) -> Array:
    larger = np.empty((size, *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger
