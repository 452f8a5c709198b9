"""The compiled register sequencer: a query's sequence over columns of solutions.

It sorts a batch for the kernels, numbers its keys and terms, and gathers the matches. If terms of
the first rows are strings, IRIs or times, Python answers the FILTERs that compare them. Once a
number comes that float64 cannot compare exactly, the evaluator in Python takes over all partial
matches, for good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import BatchFrame, OrderedRows
from spaseq.automaton.batch.match_builder import (
    EnumeratedMatches,
    MatchBuilder,
    NumberedMatches,
    stored,
)
from spaseq.automaton.batch.outer_checks import OuterNegations
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.batch.row_store import Interner, KeyNumbering
from spaseq.automaton.batch.waiting_matches import closing_states
from spaseq.automaton.program.nfa import GpmColumns, NoKernel
from spaseq.automaton.program.window import Counted
from spaseq.automaton.registers.compiled.answers import AskedAnswers
from spaseq.automaton.registers.compiled.edge_tests import JOINED, Number, with_asked
from spaseq.automaton.registers.compiled.replayed_runs import ReplayedRuns
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.registers.compiled.run_tables import run_tables
from spaseq.automaton.registers.compiled.seen_kinds import SeenKinds
from spaseq.automaton.registers.compiled.shared_ids import EqualTerms, JoinedIds
from spaseq.automaton.registers.compiled.solution_numbers import SolutionNumbers
from spaseq.automaton.run.event_rows import EventRows, GpmRow, known_double
from spaseq.automaton.run.live_states import LiveStates, StateKey, StatePlaces, Wanted
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import SequenceMatch
from spaseq.compiled.arrays import Bytes, Float64s
from spaseq.errors import OtherStateError
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import distinct
from spaseq.stateful import Stateful

if TYPE_CHECKING:
    from spaseq.automaton.partition_sequencer import PartitionSequencer
    from spaseq.automaton.registers.compiled.carried_members import CarriedMembers
    from spaseq.automaton.registers.compiled.judged_matches import JudgedMatches

T = TypeVar("T")

_IN_PYTHON = "in Python"
"""In the place of a layout: the evaluator in Python has taken over."""

_EVER = -(2**63)
"""A measure before all others."""


def _noting_last(
    pieces: Iterable[EnumeratedMatches], number: int, last: Bytes
) -> Iterator[EnumeratedMatches]:
    """The pieces; sets `last` [n] for the rows, numbered from `number`, that complete a match."""
    for piece in pieces:
        last[piece.rows[piece.ends[:, 0] - 1] - number] = 1
        yield piece


class RunSequencer(Stateful):
    """The register kernels over all partitions of one query."""

    STATE = (
        "_most_rows",
        "_most_keys",
        "_lowest",
        "_runs",
        "_frame",
        "_store",
        "_seen",
        "_ids",
        "_outer",
    )

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._begin(frozenset())

    def _begin(self, asked: frozenset[str]) -> None:
        """Begin without runs; FILTERs on the variables `asked` are asked tests.

        Raises:
            NoKernel: the register kernel cannot run that.
        """
        machine, window = self._machine, self._machine.window
        gpms = with_asked(machine.gpms, asked) if asked else machine.gpms
        self._tables = tables = run_tables(machine.program, gpms, machine.partition, window)
        self._asked = asked
        self._builder = MatchBuilder(machine)
        self._store = self._builder.store
        ids = {n.ids for n in tables.numbers if n.by_term} - {JOINED}
        self._terms = {space: Interner() if space else EqualTerms() for space in sorted(ids)}
        joined = JoinedIds()
        self._ids: dict[str, KeyNumbering[Any]] = {**self._terms, JOINED: joined}
        replayed = None
        if any(test.taken is not None for test in tables.asked):
            replayed = ReplayedRuns(machine, tables, self._builder)
        self._answers = AskedAnswers(tables, machine.expressions, self._terms, replayed)
        counted = window.events if isinstance(window, Counted) else -1
        self._runs = RunState(tables, self._answers, counted)
        self._frame = BatchFrame(machine.gpms, machine.partition, tables.key, window, tables.strict)
        self._seen = SeenKinds(tables.compared, tables.accumulated)
        self._accumulates = [
            [(v, i) for i, v in enumerate(gpm.variables) if v in self._seen.variables]
            for gpm in (*machine.gpms, GpmColumns(()))  # BARE last
        ]
        self._numbers = SolutionNumbers(
            tables.numbers, self._seen, self._terms, joined, machine.gpms, machine.expressions
        )
        self._outer: OuterNegations | JudgedMatches | None = None
        if tables.judged:
            from spaseq.automaton.registers.compiled.judged_matches import JudgedMatches

            self._outer = JudgedMatches(machine, tables, self._builder, self._frame)
        elif tables.outer:
            self._outer = OuterNegations(tables.outer, window, True)
        self._waits = self._outer is not None or bool(tables.closings)
        self._carried: CarriedMembers | None = None
        if machine.carried is not None:
            from spaseq.automaton.registers.compiled.carried_members import CarriedMembers

            self._carried = CarriedMembers(self._runs, self._builder, machine.carried)
        self._most_rows = self._most_keys = 0  # twice what the last sweep has left
        self._lowest: int | None = None  # least measure of a match that may end from now on
        self._python: PartitionSequencer | None = None
        self._prepared: tuple[SolutionBatch, SolutionBatch] | None = None  # rows, with formulas

    @property
    def suppressed(self) -> int:
        """Always 0: the engine applies the limit to the matches."""
        return 0

    def run(self, rows: SolutionBatch, watermark: int) -> Iterable[SequenceMatch]:
        """Process rows up to the watermark (ms), all later than earlier rows."""
        if self._python is None and len(rows):
            rows = self._checked(rows)
        if self._python is not None:
            return self._python.run(rows, watermark)
        if not len(rows):
            return self._closed(watermark)
        solutions, framed = self._frame.rows(rows)
        matches = self._advanced(solutions, framed, self._numbers.of_rows(solutions))
        return chain(matches, self._closed(watermark)) if self._waits else matches

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterable[SequenceMatch]:
        """Process a few single events, like `run`."""
        if self._python is not None:
            return self._python.run_events(events, watermark)
        if not events:
            return self._closed(watermark)
        rows, framed = self._frame.rows_of(events)
        kinds: dict[str, set[int]] = {}
        numbers = self._numbers.of_events(rows, kinds)
        if kinds and self._check_kinds(kinds):
            return self.run_events(events, watermark)
        if self._seen.accumulated and not self._seen.holds_of(
            self._accumulated(events), self._totals
        ):
            self._hand_over()
        if self._python is not None:
            return self._python.run_events(events, watermark)
        matches = self._advanced(rows, framed, numbers)
        return chain(matches, self._closed(watermark)) if self._waits else matches

    @property
    def waits(self) -> bool:
        """Whether matches wait for the close of their windows."""
        is_last = self._outer is not None and self._outer.is_last
        return is_last or bool(self._tables.closings)

    def can_enumerate(self, rows: SolutionBatch) -> bool:
        """Whether `enumerated` can process the next rows; not after a hand-over."""
        if self.waits:
            return False
        if self._python is None and len(rows):
            self._prepared = rows, self._checked(rows)
        return self._python is None

    def enumerated(self, rows: SolutionBatch, most_bytes: int) -> Iterator[NumberedMatches]:
        """Process rows for which `can_enumerate` is true; see `SetSequencer.enumerated`."""
        before, prepared = self._prepared or (None, rows)
        if before is not rows:
            prepared = self._numbers.with_formulas(rows)
        self._prepared = None
        solutions, ordered = self._frame.rows(prepared)
        empty = NumberedMatches(ordered.number, self._frame.order, (), self._builder)

        def numbered(pieces: Iterable[EnumeratedMatches]) -> Iterator[NumberedMatches]:
            yield replace(empty, pieces=stored(pieces, most_bytes))

        return self._processed(solutions, ordered, self._numbers.of_rows(solutions), numbered)

    def _checked(self, rows: SolutionBatch) -> SolutionBatch:
        """The rows with formulas; if float64 is not exact for them, Python has taken over."""
        prepared = self._numbers.with_formulas(rows)
        while self._check_kinds(self._numbers.kinds(prepared)):
            prepared = self._numbers.with_formulas(rows)  # other tests may be asked now
        if self._seen.accumulated and not self._seen.holds(prepared, self._totals):
            self._hand_over()
        return prepared

    def _check_kinds(self, kinds: Mapping[str, set[int]]) -> bool:
        """Let Python answer comparisons that float64 does not decide.

        Before any run waits, the terms say which FILTERs are asked tests. Then the kinds must be
        checked anew, and the result is true. Later the evaluator in Python takes over.

        `kinds` are the kinds of terms that have come, by the name of the number.
        """
        if self._seen.has(kinds):
            return False
        asked = self._seen.variables_without_numbers(kinds)
        if asked and not self._keeps_something() and self._ask(asked):
            return True
        if not self._seen.add(kinds):
            self._hand_over()
        return False

    def _keeps_something(self) -> bool:
        """Whether runs wait, or rows may be looked back at."""
        if self._lowest is None:
            return False
        return self._outer is not None or bool(self._tables.closings) or self.live_runs() > 0

    def _ask(self, variables: frozenset[str]) -> bool:
        """Begin anew with asked tests of more variables, if the kernel can run them."""
        if self._machine.carried is not None or variables <= self._asked:
            return False
        try:
            self._begin(self._asked | variables)
        except NoKernel:
            return False
        return True

    def _hand_over(self) -> None:
        """Hand over to the evaluator in Python, if not done yet."""
        from spaseq.automaton.registers.compiled.hand_over import hand_over

        if self._python is None:
            parts = self._tables, self._runs, self._builder, self._outer
            self._python = hand_over(self._machine, *parts)
            self._python.count_waiting()

    def _totals(self, number: Number) -> Float64s:
        """The distinct numbers that runs have accumulated in a register."""
        return self._runs.registers(self._tables.registers.index(number))

    def _accumulated(self, events: Sequence[EventRows]) -> Iterator[tuple[str, float, int]]:
        """(variable, float64, kind) of the terms in a few events that are accumulated."""
        for event in events:
            for gpm, values in event.solutions:
                for variable, column in self._accumulates[gpm]:
                    text = values[column]
                    if text is not None:
                        yield variable, *known_double(text)

    def close(self) -> Iterator[SequenceMatch]:
        """The matches that the end of all streams completes."""
        return self._closed(None) if self._python is None else self._python.close()

    def _closed(self, until: int | None) -> Iterator[SequenceMatch]:
        """The matches whose windows have closed by a time (ms)."""
        if self._machine.waiting is not None:
            until = self._machine.waiting.until(until)
        if self._outer is not None:
            for piece in self._outer.closed(until):
                yield from self._builder.matches(piece)
        window = self._machine.window
        if self._tables.closings and not isinstance(window, Counted):
            for piece in self._runs.closed(window.closed(until)):
                piece.close = window.close(piece.ends[:, 1])
                yield from self._builder.matches(piece)

    @property
    def next_close(self) -> int | None:
        """The time (ms) before which no match comes without further rows; None: none comes."""
        if self._python is not None:
            return self._python.next_close
        window, closes = self._machine.window, list[int | None]()
        if self._outer is not None:
            closes.append(self._outer.waiting.next_close)
        if self._tables.closings and not isinstance(window, Counted):
            first = self._runs.first_closing()
            closes.append(None if first is None else window.close(first))
        return min((close for close in closes if close is not None), default=None)

    def live_runs(self) -> int:
        """Number of waiting runs."""
        if self._python is not None:
            return self._python.live_runs()
        return int(self._runs.alive(_EVER if self._lowest is None else self._lowest).sum())

    def count_waiting(self) -> None:
        """Give the limit the number of waiting runs."""
        limit = self._machine.waiting
        if self._python is not None:
            self._python.count_waiting()
        elif limit is not None:
            lowest, carried = _EVER if self._lowest is None else self._lowest, self._carried
            alive = self._runs.alive(lowest)
            if carried is not None:
                limit.learn(int(alive.sum()), lambda: carried.counts(lowest))
            else:
                limit.learn(int(alive.sum()), lambda: self._frame.of_members(alive, limit))

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """The states of the partial matches, for all partitions or for wanted ones."""
        if self._python is not None:
            return self._python.live_states(wanted)
        program, waiting = self._machine.program, Counter[StateKey]()
        places, lowest = StatePlaces(program), self._lowest
        floor, carried = _EVER if lowest is None else lowest, self._carried
        if wanted is None or carried is None:
            edges = self._runs.last_edges(floor, self._frame.slots_of(wanted))
        else:
            edges = self._runs.last_edges(floor, None, carried.wanted(lambda m: wanted((m,))))
        counts = np.bincount(edges).tolist()
        for step, count in zip(self._tables.steps, counts, strict=False):
            waiting[places.target[step.id]] += count
        if self._outer is not None:
            given = self._outer.waiting, self._builder, places, wanted
            waiting += closing_states(*given, None if carried is None else carried.variable)
        return LiveStates(program, +waiting, self._machine.counts.taken_so_far(wanted))

    def snapshot(self) -> object:
        """The state, after the layout of its registers and edges."""
        if self._python is not None:
            return _IN_PYTHON, self._python.snapshot()
        beyond = len(self._store) - self._most_rows
        if beyond > thresholds.current.written_rows and self._lowest is not None:
            self._sweep(self._lowest)
        return " ".join([self._tables.layout, *sorted(self._asked)]), super().snapshot()

    def restore(self, state: Any) -> None:
        """Restore from a state.

        Raises:
            OtherStateError: runs had other registers or edges. Nothing has changed.
        """
        layout, kept = state
        if layout == _IN_PYTHON:
            from spaseq.automaton.registers.compiled.hand_over import python_sequencer

            self._python = python_sequencer(self._machine, self._tables)
            self._python.restore(kept)
            return
        layout, *asked = (layout or "").split(" ")
        if asked:
            self._begin(frozenset(asked))
        if layout != self._tables.layout:
            raise OtherStateError("the state is of a version of spaseq that keeps other registers")
        super().restore(kept)

    # --- a batch ----------------------------------------------------------------------------------

    def _advanced(
        self, solutions: SolutionBatch | list[GpmRow], rows: OrderedRows, numbers: Float64s
    ) -> Iterator[SequenceMatch]:
        return self._processed(solutions, rows, numbers, self._built)

    def _built(self, pieces: Iterable[EnumeratedMatches]) -> Iterator[SequenceMatch]:
        for piece in pieces:
            yield from self._builder.matches(piece)

    def _processed(
        self,
        solutions: SolutionBatch | list[GpmRow],
        rows: OrderedRows,
        numbers: Float64s,
        matches: Callable[[Iterable[EnumeratedMatches]], Iterator[T]],
    ) -> Iterator[T]:
        """Process a batch; yield the results of `matches` for the pieces of its matches."""
        outer, bound = self._outer, self._frame.keys.bound
        joins = filter(None, self._tables.joins)
        self._numbers.measure(numbers, rows)
        self._runs.grow(max([bound, *(self._ids[join.left.ids].bound for join in joins)]))
        self._builder.begin(solutions, rows.number)
        if outer is not None:
            outer.begin(rows, bound, numbers)
        taken = np.zeros(len(rows), np.uint8)
        last = np.zeros(len(rows), np.uint8)
        limit = self._machine.waiting
        pace = None
        if limit is not None:
            pace = Pace(rows, self._frame, limit, self._runs.alive, self._carried)
        advanced = self._runs.advance(rows, numbers, taken, pace)
        pieces = _noting_last(advanced, rows.number, last)
        yield from matches(pieces if outer is None else map(outer.checked, pieces))
        self._machine.counts.take(rows.gpm, taken | last)
        if outer is not None:
            outer.end(taken)
        self._builder.end(taken)
        self._lowest = int(rows.lowest[-1])
        kept, keys = len(self._store), self._keys()
        sizes = thresholds.current
        more_rows, more_keys = kept - self._most_rows, keys - self._most_keys
        if more_rows > sizes.forgotten_rows or more_keys > sizes.forgotten_keys:
            self._sweep(self._lowest)

    # --- memory -----------------------------------------------------------------------------------

    def _sweep(self, lowest: int) -> None:
        """Drop solutions, keys and terms that no partial match needs.

        The next sweep waits until they may have doubled, so the cost is amortised.
        """
        outer, kept = self._outer, self._runs.collect(lowest)
        idle = np.flatnonzero(self._runs.idle())
        if outer is not None:
            kept = distinct(np.concatenate([kept, outer.row_numbers()]))
            idle = np.intersect1d(idle, outer.idle(self._frame.keys.bound, lowest))
            outer.keep(kept)
        self._store.keep(kept)
        released = np.array(self._frame.release(idle.tolist()), np.intp)
        self._runs.release(released)
        if outer is not None:
            outer.release(released)
        for ids, used in self._ids_in_use().items():
            known = self._ids[ids]
            known.release([n for n in range(known.bound) if n not in used])
        self._answers.forget()
        self._most_rows = 2 * len(self._store)
        self._most_keys = 2 * self._keys()

    def _keys(self) -> int:
        """Number of keys, terms and pairs of them that have a number."""
        return len(self._frame.keys) + sum(map(len, self._ids.values()))

    def _ids_in_use(self) -> dict[str, set[int]]:
        """The ids that partial matches, or checks of matches, may still compare."""
        used: dict[str, set[int]] = {ids: set() for ids in self._ids}
        for register, number in enumerate(self._tables.registers):
            if number.by_term:
                used[number.ids].update(_ids(self._runs.registers(register)))
        if self._outer is not None:
            for i, number in enumerate(self._tables.numbers):
                if number.by_term:
                    used[number.ids].update(_ids(self._outer.in_use(i)))
        return used


def _ids(numbers: Float64s) -> list[int]:
    ids: list[int] = numbers[~np.isnan(numbers)].astype(np.int64).tolist()
    return ids
