"""Negated steps that are checked on matches, for the compiled sequencers.

The kernels run the sequence without these steps: steps in first and last place, and steps between
two others that use later bindings. Each match is checked against the solutions of the negated GPMs.
A match with a step in last place waits for the close of its window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.kernels import outer_negations as kernel
from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.batch.waiting_matches import ClosingMatches, WaitingMatches
from spaseq.automaton.program.outer_steps import OuterNegation
from spaseq.automaton.program.window import Counted, Measures, Tumbling, Window
from spaseq.compiled.arrays import Bools, Bytes, Float64s, Indices, Int32s, Int64s, grown
from spaseq.rdf.columns.term_columns import distinct
from spaseq.records import record
from spaseq.stateful import Stateful

_ROW, _GPM, _SLOT, _TIME, _POINTERS = range(5)
"""Columns: the row's number, GPM, slot and time (ms), then a pointer for each check."""


class RowNotes(Stateful):
    """Integers and numbers of the stored rows, and of a batch, both by ascending row."""

    STATE = (("_columns", "_kept_columns"), ("_numbers", "_kept_numbers"), "_size", "_first")

    def __init__(self, pointers: int, numbers: int) -> None:
        self._columns = np.empty((0, _POINTERS + pointers), np.int64)
        self._numbers = np.empty((0, numbers))
        self._size = 0  # rows that are kept; the arrays may have room for more
        self._first = 0  # row of the batch
        self._batch, self._batch_numbers = self._columns, self._numbers

    def begin(self, rows: OrderedRows, pointers: list[Int64s], numbers: Float64s) -> None:
        """Begin a batch of n rows; `pointers` [checks][n], `numbers` [numbers, n]."""
        self._first = rows.number
        number = np.arange(rows.number, rows.number + len(rows))
        self._batch = np.stack([number, rows.gpm, rows.slot, rows.time, *pointers], axis=1)
        self._batch_numbers = numbers.T

    def end(self, taken: Bytes) -> None:
        """End the batch, and keep the rows for which `taken` [n] is 1."""
        kept = np.flatnonzero(taken)
        size = self._size + len(kept)
        if size > len(self._columns):
            self._columns = grown(self._columns, 2 * size)
            self._numbers = grown(self._numbers, 2 * size)
        self._columns[self._size : size] = self._batch[kept]
        self._numbers[self._size : size] = self._batch_numbers[kept]
        self._size = size
        self._first += len(self._batch)
        self._batch, self._batch_numbers = self._batch[:0], self._batch_numbers[:0]

    def keep(self, rows: Int64s) -> None:
        """Keep only some rows; `rows` ascend."""
        kept = np.flatnonzero(np.isin(self._kept_columns[:, _ROW], rows))
        self._columns, self._numbers = self._columns[kept], self._numbers[kept]
        self._size = len(kept)

    # --- reading ----------------------------------------------------------------------------------

    def gpms(self, rows: Int64s) -> Int64s:
        """[n] the GPMs of n rows."""
        return self._column(_GPM, rows)

    def slots(self, rows: Int64s) -> Int64s:
        """[n] the slots of n rows."""
        return self._column(_SLOT, rows)

    def times(self, rows: Int64s) -> Int64s:
        """[n] the times (ms) of n rows."""
        return self._column(_TIME, rows)

    def pointers(self, rows: Int64s, check: int) -> Int64s:
        """[n] the beginning of a check at each of n rows."""
        return self._column(_POINTERS + check, rows)

    def values(self, rows: Int64s) -> Float64s:
        """[n, numbers] the numbers of n rows."""
        values = np.empty((len(rows), self._numbers.shape[1]))
        is_new, old, new = self._places(rows)
        values[~is_new], values[is_new] = self._numbers[old], self._batch_numbers[new]
        return values

    def kept(self, number: int) -> Float64s:
        """One number of all rows that are kept."""
        return self._kept_numbers[:, number]

    @property
    def _kept_columns(self) -> Int64s:
        return self._columns[: self._size]

    @property
    def _kept_numbers(self) -> Float64s:
        return self._numbers[: self._size]

    def _column(self, column: int, rows: Int64s) -> Int64s:
        values = np.empty(len(rows), np.int64)
        is_new, old, new = self._places(rows)
        values[~is_new], values[is_new] = self._columns[old, column], self._batch[new, column]
        return values

    def _places(self, rows: Int64s) -> tuple[Bools, Indices, Indices]:
        """A mask of the rows in the batch, and the positions of the stored rows and of these."""
        is_new: Bools = rows >= self._first
        kept = self._kept_columns[:, _ROW]
        return is_new, np.searchsorted(kept, rows[~is_new]), rows[is_new] - self._first


NO_NUMBERS = np.empty((0, 0))
NO_GPM = -2
"""The GPM of a step that cannot match."""

_ROOM = 1024
"""Initial room for solutions."""


@record
class OuterCheck:
    """The check of one negated step.

    `test` [tests, 3] has the comparisons: each is between a number of a solution of the step and a
    number of the match. `kernels.outer_negations` describes the columns. `own` lists the
    sequencer's numbers that a solution of the step has. `place`: number of solutions of a match
    before the step; 0 if it is in first place. `beside`: the GPMs of the solutions beside a step in
    first or last place, if only some matches have it.
    """

    gpm: int
    is_last: bool
    test: Int32s
    own: tuple[int, ...] = ()
    place: int = 0
    beside: tuple[int, ...] | None = None

    @property
    def is_inner(self) -> bool:
        """Whether the step stands between two steps."""
        return self.place > 0


@record
class OuterChecks:
    """The checks of a sequence.

    `matched` are the sequencer's numbers (by row) that a match has. `binds` [GPMs, matched] says
    whether a solution of the GPM gives that number; the last such solution of a match counts.
    """

    checks: tuple[OuterCheck, ...]
    matched: tuple[int, ...]
    binds: Bools


class _Found(Stateful):
    """The solutions of one negated GPM, by slot, until they leave the window."""

    STATE = ("places", ("found", "kept"), ("own", "_kept_own"), "base", "following", "_most")

    def __init__(self, check: OuterCheck) -> None:
        self.check = check
        self.places = np.full((0, 2), kernel.NONE, np.int64)
        self.base, self.following, self._most = 0, 0, 0  # `_most` is twice what was left last
        self.found = np.empty((_ROOM, kernel.FOUND_COLUMNS), np.int64)
        self.own = np.empty((len(check.own), _ROOM))

    def __len__(self) -> int:
        return self.following - self.base

    def grow(self, slots: int) -> None:
        """Make room for the slots below `slots`."""
        if slots > len(self.places):
            self.places = grown(self.places, 2 * slots, kernel.NONE)

    def note(self, rows: OrderedRows, numbers: Float64s, floor: int) -> tuple[Int64s, Int64s]:
        """Add the solutions of a batch; [n] `before` and [n] `after`, as in `note_rows`."""
        if len(self) - self._most > thresholds.current.window_rows:
            self._forget(floor)
        mine = np.flatnonzero(rows.gpm == self.check.gpm)
        before, room = len(self), len(self) + len(mine)
        if room > len(self.found):
            self.found = grown(self.found, 2 * room)
            self.own = np.ascontiguousarray(grown(self.own.T, 2 * room).T)
        if self.check.own and len(mine):
            self.own[:, before:room] = numbers[list(self.check.own)][:, mine]
        before_row, after_row = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        columns = rows.slot, rows.gpm, rows.time, rows.k, rows.number
        check, state = self.check, (self.places, self.found, self.base, self.following)
        self.following = kernel.note_rows(*columns, check.gpm, *state, before_row, after_row)
        return before_row, after_row

    def drop(
        self,
        pointer: Int64s,
        slot: Int64s,
        bound: Int64s,
        since: Int64s,
        matched: Float64s,
        kept: Bytes,
    ) -> None:
        """Write 0 for the matches that the step forbids; see `kernels.outer_negations`."""
        check, state = self.check, (self.places, self.found, self.base)
        given = pointer, slot, bound, since, check.is_last, *state, check.test, self.own, matched
        kernel.drop_violated(*given, kept)

    @property
    def kept(self) -> Int64s:
        """[N, FOUND_COLUMNS] the solutions."""
        return self.found[: len(self)]

    @property
    def _kept_own(self) -> Float64s:
        return self.own[:, : len(self)]

    def _forget(self, floor: int) -> None:
        """Drop the solutions before a time (ms)."""
        gone = int(np.searchsorted(self.kept[:, kernel.TIME], floor))
        size = len(self) - gone
        self.found[:size] = self.found[gone : gone + size].copy()
        self.own[:, :size] = self.own[:, gone : gone + size].copy()
        self.base += gone
        self.places[:, kernel.OLDEST] = kernel.NONE
        slots, ids = self.kept[:, kernel.SLOT], np.arange(self.base, self.following)
        self.places[slots[::-1], kernel.OLDEST] = ids[::-1]
        self._most = 2 * size

    def idle(self, floor: int) -> Bools:
        """[slots] whether no solution since a time (ms) is in the slot."""
        self._forget(floor)
        idle: Bools = self.places[:, kernel.OLDEST] < self.base
        return idle


class OuterNegations(Stateful):
    """The checks of one query over all its slots.

    With `keeps_rows` the solutions of negated GPMs stay in the sequencer's store.
    """

    STATE = ("_found", "_notes", "waiting", "_floor")

    def __init__(self, checks: OuterChecks, window: Window, keeps_rows: bool) -> None:
        assert not isinstance(window, Counted)
        self._matched, self._binds, self._window = checks.matched, checks.binds, window
        self._found = [_Found(check) for check in checks.checks]
        self._keeps_rows, self._gpm, self._number = keeps_rows, np.empty(0, np.int32), 0
        # A pointer for each check, and one more for each that stands between two steps.
        inner = [i for i, check in enumerate(checks.checks) if check.is_inner]
        self._since = {check: len(checks.checks) + i for i, check in enumerate(inner)}
        self._notes = RowNotes(len(checks.checks) + len(inner), len(checks.matched))
        self._floor = -(2**63)  # the earliest time (ms) of a match that may still end
        self._entered: list[Int64s] = []  # rows of the matches that wait since this batch
        self.waiting = WaitingMatches()
        self.is_last = any(check.is_last for check in checks.checks)

    # --- a batch ----------------------------------------------------------------------------------

    def begin(self, rows: OrderedRows, slots: int, numbers: Float64s = NO_NUMBERS) -> None:
        """Begin a batch of n rows in the slots below `slots`; `numbers` [C, n] are compared."""
        floor, pointers, since = self._needed(int(rows.lowest[0])), list[Int64s](), list[Int64s]()
        self._floor = int(rows.lowest[-1])
        for negated in self._found:
            negated.grow(slots)
            before, after = negated.note(rows, numbers, floor)
            pointers.append(after if negated.check.is_last else before)
            if negated.check.is_inner:
                since.append(after)
        self._gpm, self._number = rows.gpm, rows.number
        matched = numbers[list(self._matched)] if self._matched else np.empty((0, len(rows)))
        self._notes.begin(rows, [*pointers, *since], matched)

    def end(self, taken: Bytes) -> None:
        """End the batch.

        Before the store keeps the rows for which `taken` [n] is 1, 1 is added for the rows that
        only checks and waiting matches need.
        """
        for rows in self._entered:
            taken[rows[rows >= self._number] - self._number] = 1
        self._entered.clear()
        if self._keeps_rows:
            for negated in self._found:
                taken[self._gpm == negated.check.gpm] = 1
        self._notes.end(taken)

    def checked(self, matches: EnumeratedMatches) -> EnumeratedMatches:
        """The matches that are answers now.

        They have passed the steps that are not in last place. A match with a step in last place
        waits.
        """
        if not len(matches.ends):
            return matches
        closing = ClosingMatches.of(matches, self._window.close(matches.ends[:, 1]))
        closing = self._left(closing, is_last=False)
        if self.is_last:
            waits = self._waits(closing)
            waiting = closing if waits.all() else closing.take(np.flatnonzero(waits))
            self.waiting.add(waiting)
            self._entered.append(waiting.rows)
            closing = closing.take(np.flatnonzero(~waits))
        kept = closing.enumerated()
        return EnumeratedMatches(kept.rows, kept.ends)

    def _waits(self, matches: ClosingMatches) -> Bools:
        """[m] whether each match has a step in last place."""
        gpm, waits = self._notes.gpms(matches.last), np.zeros(len(matches.close), np.bool_)
        for check in (each.check for each in self._found):
            if check.is_last:
                waits |= True if check.beside is None else np.isin(gpm, check.beside)
        return waits

    def closed(self, until: int | None) -> Iterator[EnumeratedMatches]:
        """The matches whose windows have closed by a time (ms), and whose steps in last place hold.

        None closes all windows.
        """
        for matches in self.waiting.due(until):
            yield self._left(matches, is_last=True).enumerated()

    def _left(self, matches: ClosingMatches, is_last: bool) -> ClosingMatches:
        """The matches that pass the steps in last place, or all others."""
        if not len(matches.close) or all(f.check.is_last != is_last for f in self._found):
            return matches
        kept, notes = np.ones(len(matches.close), np.uint8), self._notes
        begins, bound = self._bounds(matches, is_last)
        slot, values = notes.slots(begins), self._values(matches)
        for number, negated in enumerate(self._found):
            if negated.check.is_last == is_last:
                place, behind, since = negated.check.place, begins, np.full(len(kept), kernel.NONE)
                if place:
                    behind = matches.rows_at(place)
                    since = notes.pointers(matches.rows_at(place - 1), self._since[number])
                left = kept if negated.check.beside is None else kept.copy()
                negated.drop(notes.pointers(behind, number), slot, bound, since, values, left)
                if negated.check.beside is not None:
                    has_step = np.isin(notes.gpms(begins), negated.check.beside)
                    kept[has_step] = left[has_step]
        return matches if kept.all() else matches.take(np.flatnonzero(kept))

    def _bounds(self, matches: ClosingMatches, is_last: bool) -> tuple[Int64s, Int64s]:
        """The rows at which checks begin, and the last times (ms) that they concern."""
        if is_last:
            return matches.last, self._last_inside(matches.close)
        return matches.first, self._window.earliest(self._notes.times(matches.last))

    def _last_inside(self, close: Measures) -> Measures:
        """The latest time (ms) in the windows that close at these times."""
        return close - isinstance(self._window, Tumbling)

    def _values(self, matches: ClosingMatches) -> Float64s:
        """[matched, m] the numbers of matches."""
        values = np.full((len(self._matched), len(matches.close)), np.nan)
        if not len(values):
            return values
        gpm, given = self._notes.gpms(matches.rows), self._notes.values(matches.rows)
        begins = np.concatenate([[0], matches.ends[:-1]]).astype(np.int64)
        places = np.arange(len(matches.rows))
        for i in range(len(values)):
            binding = np.where(self._binds[gpm, i], places, -1)
            last = np.maximum.reduceat(binding, begins)
            values[i] = np.where(last >= begins, given[last, i], np.nan)
        return values

    # --- memory -----------------------------------------------------------------------------------

    def _needed(self, floor: int) -> int:
        """The time (ms) from which solutions are needed.

        Matches that may still end began at `floor` or later. A waiting match is checked at the next
        request for closed windows, however many rows have come since.
        """
        close = self.waiting.next_close
        if close is None:
            return floor
        return min(floor, self._window.earliest(self._last_inside(close)))

    def row_numbers(self) -> Int64s:
        """The rows that waiting matches need; also rows of negated GPMs if the owner keeps them."""
        needed = [m.rows for m in self.waiting]
        if self._keeps_rows:
            needed.append(self.negated_rows())
        return distinct(np.concatenate(needed)) if needed else np.empty(0, np.int64)

    def negated_rows(self) -> Int64s:
        """The rows of the solutions of negated GPMs that checks may still need."""
        kept = [f.kept for f in self._found]
        floor = self._needed(self._floor)
        rows = [f[f[:, kernel.TIME] >= floor, kernel.ROW] for f in kept]
        return distinct(np.concatenate(rows))

    def keep(self, rows: Int64s) -> None:
        """Drop the rows that the store has dropped; `rows` ascend."""
        self._notes.keep(rows)

    def idle(self, slots: int, floor: int) -> Indices:
        """The slots below `slots` that neither a check nor a waiting match needs.

        Matches that may still end began at the time `floor` (ms) or later.
        """
        idle, floor = np.ones(slots, np.bool_), self._needed(floor)
        for negated in self._found:
            idle_slots = negated.idle(floor)[:slots]
            idle[: len(idle_slots)] &= idle_slots
        for matches in self.waiting:
            idle[self._notes.slots(matches.last)] = False
        return np.flatnonzero(idle)

    def release(self, slots: Indices) -> None:
        """Release idle slots for other keys."""
        for negated in self._found:
            negated.places[slots] = kernel.NONE

    def in_use(self, number: int) -> Float64s:
        """The values of one row of the sequencer's numbers that checks may still compare."""
        values = [
            f.own[i, : len(f)]
            for f in self._found
            for i, n in enumerate(f.check.own)
            if n == number
        ]
        values += [self._notes.kept(i) for i, n in enumerate(self._matched) if n == number]
        return np.concatenate([*values, np.empty(0)])


def plain_checks(negations: Sequence[OuterNegation], count: int) -> OuterChecks:
    """Checks of negated steps without conditions; there are `count` GPMs."""
    no_test = np.empty((0, 3), np.int32)
    checks = tuple(
        OuterCheck(n.take.gpm, n.is_last, no_test, beside=beside_of(n)) for n in negations
    )
    return OuterChecks(checks, (), np.empty((count, 0), np.bool_))


def beside_of(negation: OuterNegation) -> tuple[int, ...] | None:
    """The GPMs beside a negated step, as `OuterCheck` has them."""
    return None if negation.beside is None else tuple(sorted(negation.beside))
