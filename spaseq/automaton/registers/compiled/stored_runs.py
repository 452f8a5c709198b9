"""The runs of the register kernel: runs and waiting runs in flat arrays, and what these hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.registers.compiled.edge_tests import SLOT
from spaseq.automaton.registers.compiled.layout import edge_of
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.compiled.waiting_candidates import (
    WaitingCandidate,
    are_forestalled,
    waiting_candidate,
)
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.kernels.run_arrays import RunArrays, WaitingArrays
from spaseq.automaton.registers.kernels.waiting_blocks import (
    NO_THRESHOLD,
)
from spaseq.automaton.run.waiting_limit import Member
from spaseq.compiled.arrays import Array, Arrays, Bools, Float64s, Indices, Int32s, Int64s
from spaseq.rdf.columns.term_columns import distinct
from spaseq.records import record
from spaseq.stateful import Stateful

RUNS, POOL = 4096, 4096
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


class StoredRuns(Stateful):
    """All runs of a sequence, of all slots; `counted` is as for `RunState`."""

    STATE = (("_runs", "_used_runs"), "_waiting", "_cursor", "_progress")

    def __init__(self, tables: RunTables, counted: int) -> None:
        self._tables, self._counted = tables, counted
        # The fields of `RunArrays` and `WaitingArrays` (all but `few`).
        self._runs: Arrays = (
            np.empty((RUNS, kernel.TIME + tables.timed), np.int64),
            np.empty((RUNS, len(tables.registers))),
        )
        self._waiting: Arrays = (
            np.zeros((0, kernel.BLOCK_COLUMNS), np.int32),
            np.empty(0, np.int64),
            np.full(POOL, NO_THRESHOLD),
            np.empty(POOL, np.int32),
        )
        self._few = np.array([thresholds.current.heap_runs], np.int64)
        self._cursor = np.zeros(kernel.CURSOR, np.int64)
        self._cursor[kernel.TOP] = 1
        self._progress = np.zeros((0, 2), np.int64)

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
