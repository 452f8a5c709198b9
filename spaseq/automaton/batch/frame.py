"""Prepares a batch for the kernels: orders its rows, numbers their keys, measures instants.

A kernel keeps the state of a key under a number, the *slot*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from spaseq.automaton.batch.kernels.measures import is_rising, positions
from spaseq.automaton.batch.row_store import Interner, Key
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.run.event_rows import EventRows, GpmRow
from spaseq.automaton.run.waiting_limit import Member, WaitingLimit
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch, first_rows, row_order
from spaseq.stateful import Stateful

_NONE = np.empty(0, np.int64)


@dataclass(slots=True)
class OrderedRows:
    """n rows in the order of instants, with the rows of one instant and slot together.

    `number` is the number of the first row, counted over all batches. `gpm` is -1 for an event
    without a solution.
    """

    slot: Int32s
    gpm: Int32s
    time: Int64s
    k: Int32s
    start: Int64s  # measure of a match that begins at the row
    lowest: Int64s  # least measure of a match that may end at the row
    ordinal: Int64s  # number of the instant in its partition; empty if not needed
    number: int = 0

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def first_of_instant(self) -> Indices:
        """[n] the first row with the instant and the slot of each row."""
        begins = np.ones(len(self), np.bool_)
        for column in (self.slot, self.time, self.k):
            begins[1:] &= column[1:] == column[:-1]
        begins[1:] = ~begins[1:]
        return np.maximum.accumulate(np.where(begins, np.arange(len(self)), 0))

    @property
    def columns(self) -> tuple[Int32s, Int32s, Int64s, Int32s, Int64s, Int64s, Int64s]:
        """The first arguments of every kernel."""
        return self.slot, self.gpm, self.time, self.k, self.start, self.lowest, self.ordinal


class BatchFrame(Stateful):
    """Orders and numbers the rows of one query.

    Slots are numbers of the values of `key`, which begins with the variables of the partition.
    `strict`: the kernel needs the numbers of instants. `release` frees slots and partitions.
    """

    STATE = ("_number", "passed", "keys", "partitions")

    def __init__(
        self,
        gpms: Sequence[GpmColumns],
        partition: tuple[str, ...],
        key: tuple[str, ...],
        window: Window,
        strict: bool,
    ) -> None:
        assert key[: len(partition)] == partition
        self._places = [_places(gpm.variables, key) for gpm in gpms]  # columns of the key in a row
        self._places.append(_places(partition, key))  # of BARE
        self._partition, self._key, self._window = partition, key, window
        self._counts = strict or isinstance(window, Counted)
        self.keys = Interner()
        self.partitions = self.keys if key == partition else Interner()
        self.passed = np.zeros((16, 2), np.int64)  # by partition: instants, events
        self._number = 0
        self.order: list[Indices] = []  # the order of the last batch, if it had to be changed
        self._few = _room(1)  # reused for the rows of the next event

    def rows(self, solutions: SolutionBatch) -> tuple[SolutionBatch, OrderedRows]:
        """The rows in order, and their columns for a kernel."""
        solutions = _writable(solutions)
        self.order = []
        slot, part = self._slots(solutions)
        time, k = solutions.time, solutions.k
        places = time, k, part, slot, solutions.stream, solutions.gpm
        if not is_rising(*places):
            order = row_order(places)
            if (order[1:] < order[:-1]).any():
                solutions, slot, part = solutions.take(order), slot[order], part[order]
                self.order.append(order)
            kept = _distinct(solutions, slot)
            if kept is not None:
                solutions, slot, part = solutions.take(kept), slot[kept], part[kept]
                self.order.append(kept)
        return solutions, self._measured(
            solutions.stream, solutions.time, solutions.k, solutions.gpm, slot, part
        )

    def rows_of(self, events: Sequence[EventRows]) -> tuple[list[GpmRow], OrderedRows]:
        """As `rows`, for the rows of a few single events."""
        if len(events) == 1:
            return self._rows_of_event(events[0])
        rows = [*dict.fromkeys(row for event in events for row in event.rows())]
        slots, partitions = zip(*map(self._slot_of, rows), strict=True)
        order = sorted(
            range(len(rows)),
            key=lambda i: (*rows[i][1][1:3], partitions[i], slots[i], rows[i][1][0], rows[i][0]),
        )
        rows = [rows[i] for i in order]
        numbers = np.array([row[:3] for _, row in rows], np.int64)
        return rows, self._measured(
            numbers[:, 0].astype(np.int32),
            numbers[:, 1].copy(),
            numbers[:, 2].astype(np.int32),
            np.array([gpm for gpm, _ in rows], np.int32),
            np.array(slots, np.int32)[order],
            np.array(partitions, np.int32)[order],
        )

    def _rows_of_event(self, event: EventRows) -> tuple[list[GpmRow], OrderedRows]:
        """As `rows`, for the rows of one event, which are distinct."""
        placed = [(*self._slot_of(row), row) for row in event.rows()]
        count = len(placed)
        if count > 1:
            placed.sort(key=_place)
        rows = [row for _, _, row in placed]
        if self._counts:
            slots, parts, _ = zip(*placed, strict=True)
            gpms = [gpm for gpm, _ in rows]
            small = [[event.stream] * count, [event.k] * count, gpms, slots, parts]
            stream, k, *others = np.array(small, np.int32)
            return rows, self._measured(stream, np.full(count, event.time), k, *others)
        if len(self._few.slot) != count:
            self._few = _room(count)
        few, few.number, self._number = self._few, self._number, self._number + count
        time, k, lowest = event.time, event.k, self._window.earliest(event.time)
        for i, (slot, _, (gpm, _)) in enumerate(placed):  # faster than whole columns of a few rows
            few.slot[i], few.gpm[i] = slot, gpm
            few.time[i], few.k[i], few.lowest[i] = time, k, lowest
        return rows, few

    def _slot_of(self, row: GpmRow) -> tuple[int, int]:
        """The slot of a row, and its partition if events or instants are counted."""
        gpm, (_, _, _, _, values) = row
        key = tuple([None if c < 0 else values[c] for c in self._places[gpm]])
        slot = self.keys.number(key)
        if not self._counts or self.partitions is self.keys:
            return slot, slot
        return slot, self.partitions.number(self.partition_of(key))

    def slot_of(self, row: GpmRow) -> int:
        """The slot of a row."""
        return self._slot_of(row)[0]

    def _slots(self, solutions: SolutionBatch) -> tuple[Int32s, Int32s]:
        columns = [solutions.values[v] for v in self._key]
        slot = self.keys.numbers(columns, len(solutions)).astype(np.int32)
        if not self._counts or self.partitions is self.keys:
            return slot, slot
        partition = self.partitions.numbers(columns[: len(self._partition)], len(solutions))
        return slot, partition.astype(np.int32)

    def _measured(
        self, stream: Int32s, time: Int64s, k: Int32s, gpm: Int32s, slot: Int32s, part: Int32s
    ) -> OrderedRows:
        number = self._number
        self._number += len(time)
        start, reach, ordinal = time, time, _NONE
        if self._counts:
            self._grow(self.partitions.bound)
            ordinal, before, after = (np.empty(len(time), np.int64) for _ in range(3))
            seen = np.empty(stream.max(initial=-1) + 1, np.int64)
            positions(part, time, k, stream, seen, self.passed, ordinal, before, after)
            if isinstance(self._window, Counted):
                start, reach = before, after
        lowest = self._window.earliest(reach)
        return OrderedRows(slot, gpm, time, k, start, lowest, ordinal, number)

    def _grow(self, size: int) -> None:
        if size > len(self.passed):
            passed = np.zeros((2 * size, 2), np.int64)
            passed[: len(self.passed)] = self.passed
            self.passed = passed

    def release(self, slots: Iterable[int]) -> list[int]:
        """Free slots, and the partitions without slots; returns the slots that were in use."""
        freed = self.keys.release(slots)
        if self._counts:
            gone = freed
            if self.partitions is not self.keys:
                alive = {key[: len(self._partition)] for key in self.keys.keys().values()}
                gone = self.partitions.release(
                    n for n, key in self.partitions.keys().items() if key not in alive
                )
            self.passed[gone] = 0
        return freed

    def slots_of(self, wanted: Callable[[Key], bool] | None) -> Int64s | None:
        """The slots of the wanted partitions; None if all are wanted."""
        if wanted is None:
            return None
        slots = [n for n, key in self.keys.keys().items() if wanted(self.partition_of(key))]
        return np.array(slots, np.int64)

    def of_members(self, alive: Int64s, limit: WaitingLimit) -> Counter[Member]:
        """Number of waiting partial matches of each member, given the number in each slot."""
        if limit.place is None:
            return Counter({None: int(alive.sum())})
        counts, keys = Counter[Member](), self.keys.keys()
        for slot in np.flatnonzero(alive).tolist():
            counts[limit.member(self.partition_of(keys[slot]))] += int(alive[slot])
        return counts

    def partition_of(self, key: Key) -> Key:
        """The partition of a key."""
        return key[: len(self._partition)]


def _place(placed: tuple[int, int, GpmRow]) -> tuple[int, int, int]:
    """The sort key of a row of an event, after its slot and partition."""
    slot, partition, (gpm, _) = placed
    return partition, slot, gpm


def _room(count: int) -> OrderedRows:
    """Space for some rows, for windows of time and without numbers of instants."""
    small, large = np.zeros((3, count), np.int32), np.zeros((2, count), np.int64)
    return OrderedRows(small[0], small[1], large[0], small[2], large[0], large[1], _NONE)


def _places(variables: Sequence[str], key: tuple[str, ...]) -> tuple[int, ...]:
    return tuple([variables.index(v) if v in variables else -1 for v in key])


def _writable(rows: SolutionBatch) -> SolutionBatch:
    """The same rows in writable arrays; numba would compile the kernel again for read-only ones."""
    own = partial(np.require, requirements=["C_CONTIGUOUS", "WRITEABLE"])
    return replace(
        rows, stream=own(rows.stream), time=own(rows.time), k=own(rows.k), gpm=own(rows.gpm)
    )


def _distinct(rows: SolutionBatch, slot: Int32s) -> Indices | None:
    """The positions of the distinct rows, None if all rows differ.

    Rows are in the order of instants, slots, streams and GPMs. Equal rows are of one event.
    """
    fields = np.stack([rows.time, rows.k, rows.stream, rows.gpm, slot])
    alike = (fields[:, 1:] == fields[:, :-1]).all(axis=0)
    if not alike.any():
        return None
    columns = [column.identities for column in rows.values.values()]
    if any(_rises(column, alike) for column in columns):
        return None
    some = np.flatnonzero(np.append(alike, False) | np.append(False, alike))
    group = np.cumsum(np.append(True, ~alike))[some]
    first = first_rows([group, *(column[some] for column in columns)])
    if len(first) == len(some):
        return None
    kept = np.ones(len(rows), np.bool_)
    kept[some] = False
    kept[some[first]] = True
    return np.flatnonzero(kept)


def _rises(column: Int32s | Int64s, alike: Bools) -> bool:
    """Whether a column [n] has a greater value than the row before wherever the two are `alike`."""
    return bool(((column[1:] > column[:-1]) | ~alike).all())
