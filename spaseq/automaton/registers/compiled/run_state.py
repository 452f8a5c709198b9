"""The register kernel on the runs of a sequence, whose arrays grow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.registers.compiled.answers import AskedAnswers
from spaseq.automaton.registers.compiled.layout import threshold_steps
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.compiled.stored_runs import POOL, RUNS, StoredRuns
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.kernels.register_runs import advance
from spaseq.automaton.registers.kernels.run_arrays import WaitingArrays
from spaseq.automaton.registers.kernels.run_collection import close_windows, collect
from spaseq.automaton.registers.kernels.threshold_runs import advance_threshold_sequence
from spaseq.automaton.registers.kernels.waiting_blocks import (
    compact_pool,
    pool_size,
)
from spaseq.compiled.arrays import Array, Arrays, Bytes, Float64s, Int64s
from spaseq.rdf.columns.term_columns import distinct

_SLOTS = 16
"""Room at the start."""


class RunState(StoredRuns):
    """Advances the runs of a sequence, and makes room for them.

    `answers` are the answers to the asked tests; `counted` is n of WITHIN n EVENTS, -1 for windows
    of time.
    """

    def __init__(self, tables: RunTables, answers: AskedAnswers, counted: int = -1) -> None:
        super().__init__(tables, counted)
        self._answers = answers
        self._program: Arrays = tuple(tables.program)
        self._arrivals: Arrays = tuple(np.empty(64, np.int32) for _ in range(4))  # `ArrivalArrays`
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
        enough = used + need + max((used + need + blocks) // 3, rows, RUNS)
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
        room = size + need + max(size // 4, POOL)
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


def _resized(values: Array, size: int) -> Array:
    larger = np.empty((size, *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger
