"""Rows that can be in no match: a required GPM has no solution near enough.

A match lies in one window and has a solution of each required GPM. Events that end or forbid it lie
at most a window away from these solutions, too. So a row without such a solution of its partition
within a window before or after changes no match. An evaluator need not see it.

Such rows could still make partial matches, which count for the limit. So rows are kept from an
evaluator (`hopeless_rows`, `waiting_rows`) only if all their partial matches are few beside the
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.automaton.batch.kernels.near_rows import FAR, mark_solutions, marked_rows, note_near
from spaseq.automaton.partition_sequencer import PartitionSequencer
from spaseq.automaton.program.nfa import Automaton, BracketLabel
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.waiting_limit import WaitingLimit
from spaseq.automaton.sequencer import AnySequencer
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import RowSelection, TermColumn, TextArray, TextMemo
from spaseq.stages.sorting import RowSorter

_SETS = ("compiled-chain", "compiled-compact")
_MOST_COUNTED = 2**62


class UnseenRows:
    """Decides whether rows may be kept from the evaluator of a query or family."""

    def __init__(self, plan: QueryPlan, limit: WaitingLimit) -> None:
        self._limit, self._half = limit, limit.most // 2
        program, name = plan.sequence.program, plan.sequence.evaluator.name
        self._rows = most_rows(program.automaton, name in _SETS, self._half)
        self._rest, self._left = 1, 0  # batches to skip after a failure, and until the next attempt

    def are_few(self, rows: int) -> bool:
        """Whether `rows` rows of one query make few partial matches."""
        return rows <= self._rows

    @property
    def asks_count(self) -> bool:
        """Whether to count the waiting partial matches anew: they may be few again."""
        if self._limit.room >= self._half:
            self._rest = 1
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self._rest = min(2 * self._rest, thresholds.current.longest_rest)
        self._left = self._rest
        return True

    @property
    def has_room(self) -> bool:
        """Whether few partial matches wait in the evaluator."""
        return self._limit.room >= self._half


def most_rows(automaton: Automaton, shares: bool, most: int) -> int:
    """The number of rows that surely make no more than `most` partial matches, at most 2**62.

    With `shares`, partial matches of one key and state count once.
    """
    edges = sum(len(state.edges) for state in automaton.states)
    has_brackets = any(
        isinstance(edge.label, BracketLabel) for state in automaton.states for edge in state.edges
    )
    steps = None if has_brackets else _longest(automaton)
    low, high = 0, _MOST_COUNTED
    while low < high:
        middle = (low + high + 1) // 2
        if _bound(middle, edges, steps, shares, most) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _bound(rows: int, edges: int, steps: int | None, shares: bool, most: int) -> int:
    """Upper bound of the waiting partial matches of some rows; exact only up to `most`.

    One takes up to `steps` - 1 rows, each along an edge.
    """
    takes = rows if steps is None else min(steps - 1, rows)
    if takes * (edges * rows + 1).bit_length() > 4096:
        bound = most + 1
    else:
        bound = (edges * rows + 1) ** takes
    return min(bound, rows << min(edges, 64)) if shares else bound


def _longest(automaton: Automaton) -> int | None:
    """Maximum number of solutions in a match; None if it may repeat steps."""
    known: dict[int, int] = {}
    open_states: set[int] = set()

    def longest(number: int) -> int | None:
        if number in open_states:
            return None
        if number not in known:
            open_states.add(number)
            after = [longest(edge.target) for edge in automaton.states[number].edges]
            open_states.discard(number)
            if any(length is None for length in after):
                return None
            known[number] = max((length + 1 for length in after if length is not None), default=0)
        return known[number]

    return longest(0) if len(automaton.states) <= 256 else None


LARGEST = 2**62
"""Upper bound of the numbers of partitions."""

MIXER = 0x9E3779B97F4A7C15 - 2**64
"""An odd number that mixes the bits of several hashes (2^64 / golden ratio)."""


def places_of(rows: SolutionBatch, partition: tuple[str, ...]) -> tuple[Int64s, int] | None:
    """(the number of each row's partition [n], an upper bound of these numbers).

    None if the partitions have no numbers of 64 bits.
    """
    number, count = np.zeros(len(rows), np.int64), 1
    for variable in partition:
        column = rows.values[variable]
        count *= len(column.terms) + 1
        if count >= LARGEST:
            return None
        number = number * (len(column.terms) + 1) + column.codes + 1
    return number, count


def place_hashes(rows: SolutionBatch, partition: tuple[str, ...]) -> Int64s:
    """A number for the partition of each row [n], the same in all batches.

    Two partitions rarely have the same number.
    """
    hashes = np.zeros(len(rows), np.int64)
    for column in (rows.values[variable] for variable in partition):
        hashes *= MIXER
        hashes += hashes_of(column.terms)[column.codes]
    return hashes


def _hashes(terms: TextArray) -> Int64s:
    texts = [*terms.to_pylist(), None]
    return np.fromiter(map(hash, texts), np.int64, len(texts))


hashes_of = TextMemo(_hashes)
"""The hashes [n + 1] of n texts and of UNBOUND; the families of a run share arrays of texts."""


_ROUNDS = 3
_MOST = 62  # number of required GPMs that are examined
_NEVER_BEFORE = -(2**62)


def leave_out_hopeless(plan: QueryPlan, sorter: RowSorter) -> bool:
    """Whether the rows in a sorter, which are all rows of a run, may have a match.

    Of a single query, rows that can be in no match leave the sorter. If no match is possible, stage
    2 is not made. Correlated GPMs do not count: their solutions are known only when the sequence
    takes the event.
    """
    if needs_every_row(plan) or sorter.has_written:
        return True
    counts = sorter.gpms()
    looking = HopelessRows(plan, plan.sequence.window)
    if not counts or not all(counts[gpm] for gpm in looking.required):
        return False
    if QUERY in plan.sequence.partition or not can_be_told(plan, plan.sequence.window):
        return True
    looking.leave_out(sorter)
    return len(sorter) > 0


def leave_out_of_part(
    plan: QueryPlan, sorter: RowSorter, after: int | None, before: int | None
) -> None:
    """Leave out rows of a sorter that can be in no match.

    Args:
        plan: of a query or family.
        sorter: has all rows of a bounded run from one time to another, in its memory.
        after: earlier rows come up to this time (ms); None if there are none.
        before: later rows come from this time on (ms); None if there are none.
    """
    if not needs_every_row(plan) and can_be_told(plan, plan.sequence.window):
        looking = HopelessRows(plan, plan.sequence.window)
        if after is not None:
            looking.passed(after)
        looking.leave_out(sorter, LARGEST if before is None else before)


def needs_every_row(plan: QueryPlan) -> bool:
    """Whether the run gives partial matches, or stage 2 evaluates some GPMs."""
    if plan.levels or plan.inputs.windows or plan.changing is not None:
        return True
    return any(gpm.correlation is not None for gpm in plan.patterns.gpms)


def can_be_told(plan: QueryPlan, window: Window) -> bool:
    """Whether events that are in no match do not affect the matches of a query."""
    sequence = plan.sequence
    if plan.inputs.windows:
        return False
    return not (isinstance(window, Counted) or sequence.needs_instants or sequence.program.strict)


class HopelessRows:
    """Leaves out the rows of batches that can be in no match; batches follow each other in time.

    Rows near the ends of a batch stay, as the rows beyond are unknown. If few rows of a batch are
    left out, the next batches pass unexamined: one, then two, four and so on.
    """

    def __init__(self, plan: QueryPlan, window: Window) -> None:
        self.length = 0 if isinstance(window, Counted) else window.horizon
        self.partition = plan.sequence.partition
        self.required = plan.required_gpms[:_MOST]
        self._steps = np.full(len(plan.patterns.gpms) + 1, -1, np.int32)  # by GPM, BARE last
        self._steps[[*self.required]] = np.arange(len(self.required))
        self._unknown_until = _NEVER_BEFORE  # rows up to this time (ms) came in earlier batches
        self._rest, self._left = 1, 0  # batches without looking after a failure, and until the next

    @classmethod
    def of(cls, plan: QueryPlan, window: Window) -> HopelessRows | None:
        """The filter for a query; None if its matches depend on events that are in no match."""
        rows = cls(plan, window) if can_be_told(plan, window) else None
        return rows if rows and rows.required else None

    def restored(self) -> None:
        """Record that unknown rows have come before."""
        self._unknown_until = LARGEST

    def passed(self, until: int) -> None:
        """Record that rows up to a time (ms) passed unexamined."""
        before = self._unknown_until
        self._unknown_until = until if before == LARGEST else max(before, until)

    def without(self, rows: SolutionBatch, watermark: int) -> SolutionBatch:
        """The rows that may be in a match.

        Args:
            rows: all rows between the last watermark (ms) and this one, perhaps with later ones.
            watermark: no row at or before this time follows.
        """
        kept = self._kept(rows, watermark) if self._is_worth(rows) else None
        self.passed(max(watermark, int(rows.time.max())) if len(rows) else watermark)
        if kept is None or kept.all():
            return rows
        return rows.take(np.flatnonzero(kept))

    def leave_out(self, sorter: RowSorter, before: int = LARGEST) -> None:
        """Remove rows from a sorter's memory, which has all rows before a time (ms)."""
        rows = len(sorter)
        if rows > thresholds.current.hopeless_query and QUERY not in self.partition:
            counts = sorter.gpms()
            rarest = min(self.required, key=counts.__getitem__, default=None)
            if rarest is None or rows < thresholds.current.rare_solutions * counts[rarest]:
                return
            span = self._unknown_until + self.length, before - self.length
            sorter.keep(rows_near(sorter.held(), self.partition, rarest, self.length, span))
            if 8 * len(sorter) > rows:
                return
        kept = self._kept(sorter.keys(self.partition), before)
        if kept is not None and not kept.all():
            sorter.keep(np.flatnonzero(kept))

    def _is_worth(self, rows: SolutionBatch) -> bool:
        if len(rows) < thresholds.current.hopeless_rows or self._unknown_until == LARGEST:
            return False
        self._left -= 1
        return self._left < 0

    def _kept(self, rows: SolutionBatch, watermark: int) -> Bools | None:
        """A mask of the rows that stay; None if all do."""
        numbered = places_of(rows, self.partition)
        if numbered is None or len(self.required) < 2:
            return None
        number, places = numbered
        time, length = rows.time, self.length
        edges = (time - length <= self._unknown_until) | (time + length >= watermark)
        kept = self._near(rows, number, places, edges)
        pays_off = 10 * (len(rows) - int(np.count_nonzero(kept))) >= len(rows)
        self._rest = 1 if pays_off else min(2 * self._rest, thresholds.current.longest_rest)
        self._left = 0 if pays_off else self._rest
        return kept

    def _near(self, rows: SolutionBatch, number: Int64s, places: int, edges: Bools) -> Bools:
        """A mask of the rows that stay, of n: rows near all required GPMs, and rows near the
        `edges`.

        `number` [n] is the partition of each row, of `places`. Rows near the `edges` [n] stay in
        any case, as not all rows near them are known.
        """
        time, gpm, order = rows.time, rows.gpm, _by_time(rows.time)
        kept = np.ones(len(rows), np.bool_)
        for _ in range(_ROUNDS):
            before = len(order)
            kept[order] = self._are_near(time[order], gpm[order], number[order], places)
            kept |= edges
            order = order[kept[order]]
            if 10 * (before - len(order)) < len(rows):
                break
        return kept

    def _are_near(self, time: Int64s, gpm: Int32s, number: Int64s, places: int) -> Bools:
        """The rows with all required GPMs near them; rows [n] stand by time in each partition."""
        if places // (len(time) + 1) >= thresholds.current.sparse_codes:
            distinct, number = np.unique(number, return_inverse=True)
            places = len(distinct)
        near, required = np.zeros(len(time), np.int64), len(self.required)
        step = self._steps[gpm]
        for direction in (1, -1):
            last = np.full((places, required), FAR)
            note_near(direction, time, step, number, last, self.length, near)
        is_near: Bools = near == (1 << required) - 1
        return is_near


def _by_time(time: Int64s) -> Int64s:
    """The rows in order of their times [n]."""
    if (time[1:] >= time[:-1]).all():
        return np.arange(len(time))
    return np.argsort(time, kind="stable")


class LeftOutRows:
    """Rows that the evaluator of a stage need not see; without `looks` there are none."""

    def __init__(
        self, plan: QueryPlan, machine: Machine, sequencer: AnySequencer, limit: WaitingLimit | None
    ) -> None:
        self._by_member, self._sequencer = QUERY in plan.sequence.partition, sequencer
        # Compiled evaluators take hopeless rows in less time than it takes to find them.
        is_slow = isinstance(sequencer, PartitionSequencer)
        self._hopeless = HopelessRows.of(plan, machine.window) if is_slow else None
        self._unseen = None if limit is None else UnseenRows(plan, limit)
        self.looks = self._hopeless is not None

    def passed(self, until: int) -> None:
        """Record that rows up to a time (ms) passed unexamined."""
        if self._hopeless is not None:
            self._hopeless.passed(until)

    def restored(self) -> None:
        """Record that unknown rows have come before."""
        if self._hopeless is not None:
            self._hopeless.restored()

    def events(self, events: Sequence[EventRows], watermark: int) -> Sequence[EventRows]:
        """All rows of a few single events, unexamined."""
        self.passed(max([watermark, *(event.time for event in events)]))
        return events

    def rows(self, rows: SolutionBatch, watermark: int) -> SolutionBatch:
        """The rows that may be in a match, and the others if they count for the limit."""
        if self._hopeless is None:
            return rows
        if len(rows) and not self.has_room(len(rows), lambda: self._of_member(rows)):
            self.passed(max(watermark, int(rows.time.max())))
            return rows
        return self._hopeless.without(rows, watermark)

    def _of_member(self, rows: SolutionBatch) -> int:
        """Maximum number of these rows for one query."""
        if not self._by_member:
            return len(rows)
        return int(np.bincount(rows.values[QUERY].codes + 1).max())

    def has_room(self, count: int, of_member: Callable[[], int]) -> bool:
        """Whether these rows surely make no query exceed the limit on partial matches.

        Args:
            count: the number of rows.
            of_member: the maximum number of rows for one query.
        """
        unseen = self._unseen
        if unseen is None:
            return True
        if unseen.asks_count:
            self._sequencer.count_waiting()
        if not unseen.are_few(count):
            count = of_member()
        return unseen.has_room and unseen.are_few(count)


_MIXER = 0x2545F4914F6CDD1D

_MARKS = 64
"""Marks per solution, which sets three: one row in twenty stays without reason."""


def rows_near(
    batches: Sequence[SolutionBatch],
    partition: tuple[str, ...],
    gpm: int,
    length: int,
    span: tuple[int, int],
) -> Indices:
    """The rows that have a solution of a GPM near them, ascending, and a few others.

    If a required GPM has few solutions, two passes over the rows, in any order, find most of those
    that are in no match: one marks the partitions and times of its solutions, the other looks up
    the mark of each row (as in a Bloom filter). Two partitions may share a mark.

    Args:
        batches: their rows are numbered one after the other.
        partition: its variables.
        gpm: the GPM.
        length: the maximum distance in milliseconds of two rows that are near each other.
        span: between these times (ms) all rows are known; rows at or beyond them stay.
    """
    first_known, last_known = span
    numbers = {v: _numbers([batch.values[v] for batch in batches]) for v in partition}
    of_gpm = [np.flatnonzero(batch.gpm == gpm) for batch in batches]
    marks = np.zeros(1 << (_MARKS * sum(map(len, of_gpm))).bit_length(), np.bool_)
    width = max(length, 1)
    for batch, rows in zip(batches, of_gpm, strict=True):
        mark_solutions(batch.time[rows], _places(batch, rows, numbers), width, marks)
    near = list[Indices]()
    first = 0
    for batch in batches:
        time = np.require(batch.time, requirements=["C", "W"])
        kept = (time <= first_known) | (time >= last_known)
        marked_rows(time, _places(batch, slice(None), numbers), width, marks, kept)
        near.append(np.flatnonzero(kept) + first)
        first += len(time)
    return np.concatenate(near)


_Numbers: TypeAlias = "Mapping[int, Int64s]"
"""By the id of a table of terms: a number for each term, and for UNBOUND at the end."""


def _places(batch: SolutionBatch, rows: RowSelection, numbers: Mapping[str, _Numbers]) -> Int64s:
    """A number for the partition of each row; two partitions may share a number."""
    mixed: Int64s | None = None
    for variable, of_table in numbers.items():
        column = batch.values[variable]
        partition = of_table[id(column.terms)][column.codes[rows]]
        mixed = partition if mixed is None else mixed * _MIXER + partition
    return np.zeros(len(batch.time[rows]), np.int64) if mixed is None else mixed


def _numbers(columns: Sequence[TermColumn]) -> _Numbers:
    """The numbers of the terms of columns; equal terms in two columns have equal numbers."""
    tables = {id(column.terms): column.terms for column in columns}
    unified = pa.concat_arrays([*tables.values()]).dictionary_encode().indices.to_numpy()
    ends = np.cumsum([len(table) for table in tables.values()])
    parts = np.split(unified.astype(np.int64), ends[:-1])
    return {table: np.append(numbers, -1) for table, numbers in zip(tables, parts, strict=True)}
