"""Matches of the register kernel that Python judges.

The kernel runs the sequence without the negated steps and loops that it cannot test. These only
remove matches. So each match passes through the automaton once more, and its negated steps, greedy
loops and UNTIL are checked against the solutions of their GPMs. The check also finds events that
the operands of AND must not share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import BatchFrame, OrderedRows
from spaseq.automaton.batch.match_builder import EnumeratedMatches, MatchBuilder
from spaseq.automaton.batch.outer_checks import NO_NUMBERS
from spaseq.automaton.batch.waiting_matches import ClosingMatches, WaitingMatches
from spaseq.automaton.program.nfa import Edge
from spaseq.automaton.program.window import Counted
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.python.event_history import EventHistory
from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import PartitionKey, PartitionMatch
from spaseq.automaton.run.runs import MeasuredInstant, Row
from spaseq.compiled.arrays import Bytes, Float64s, Indices, Int64s
from spaseq.rdf.columns.term_columns import distinct
from spaseq.stateful import Stateful

_Path = tuple[list[tuple[Edge, Edge, Row]], int]
"""The solutions of a match, as `RegisterEvaluator.judged` reads them, and the measure of its begin.
"""


class JudgedMatches(Stateful):
    """The matches of one query over all its slots, used as `OuterNegations` is."""

    STATE = ("_histories", "waiting")

    def __init__(
        self, machine: Machine, tables: RunTables, builder: MatchBuilder, frame: BatchFrame
    ) -> None:
        self._machine, self._builder, self._frame = machine, builder, frame
        program = machine.program
        # The machine's own edges have the negated steps and loops, too.
        self._steps = [program.edges[step.id] for step in tables.steps]
        self._takes = [program.edges[edge.id] for edge in tables.edges]
        self._gpms = np.array(sorted(program.checked), np.int32)
        self._histories: dict[int, EventHistory] = {}
        self._touched: set[int] = set()  # slots with solutions in this batch
        self._number = 0  # the batch's first row
        self._ended: set[tuple[int, ...]] = set()  # the matches of this batch that do not wait
        self._entered: list[ClosingMatches] = []  # those that do
        self.waiting = WaitingMatches()
        ends = (end for state in program.automaton.states for end in state.acceptances)
        self.is_last = any(end.negations or end.exits for end in ends)

    # --- a batch ----------------------------------------------------------------------------------

    def begin(self, rows: OrderedRows, slots: int, numbers: Float64s = NO_NUMBERS) -> None:
        """Begin a batch of n rows, whose solutions checks use from now on."""
        self._number = rows.number
        checked = np.isin(rows.gpm, self._gpms)
        known = self._builder.rows(rows.number + np.flatnonzero(checked))
        mine = np.arange(len(rows)) if self._machine.program.strict else np.flatnonzero(checked)
        columns = rows.slot, rows.gpm, rows.time, rows.k, rows.start, rows.lowest
        places = zip(mine.tolist(), *(c[mine].tolist() for c in columns), strict=True)
        counted = self._machine.window.horizon if self._counted else None
        for i, slot, gpm, time, k, start, lowest in places:
            history, instant = self._histories.setdefault(slot, []), (time, k)
            self._touched.add(slot)
            if not history or history[-1][0] != instant:
                measures = (time, time) if counted is None else (start, lowest + counted)
                history.append((instant, MeasuredInstant(instant, *measures), {}))
            if rows.number + i in known:
                solutions = history[-1][2]
                assert isinstance(solutions, dict)
                solutions.setdefault(gpm, []).append(known[rows.number + i][1])

    def checked(self, found: EnumeratedMatches) -> EnumeratedMatches:
        """The matches that are answers now; others wait for the close of their windows."""
        if not len(found.ends):
            return found
        window, origin = self._machine.window, found.ends[:, 1]
        close = origin.copy() if isinstance(window, Counted) else window.close(origin)
        matches = ClosingMatches.of(found, close)
        kept, waits, begin = [], [], 0
        for place, (end, judged) in enumerate(
            zip(matches.ends.tolist(), self._judged(matches), strict=True)
        ):
            closes = [match.close for _, match in judged]
            if None in closes:
                kept.append(place)
                self._ended.add(tuple(matches.rows[begin:end].tolist()))
            elif closes:
                waits.append(place)
            begin = end
        if waits:
            self._entered.append(matches.take(np.array(waits)))
        chosen = matches.take(np.array(kept, np.int64)).enumerated()
        return EnumeratedMatches(chosen.rows, chosen.ends)

    def end(self, taken: Bytes) -> None:
        """End the batch; 1 is added to `taken` [n] for the rows that waiting matches need."""
        for matches in self._entered:
            rows = np.split(matches.rows, matches.ends[:-1])
            waits = [i for i, own in enumerate(rows) if tuple(own.tolist()) not in self._ended]
            waiting = matches.take(np.array(waits, np.int64))
            taken[waiting.rows[waiting.rows >= self._number] - self._number] = 1
            self.waiting.add(waiting)
        self._entered.clear()
        self._ended.clear()
        for slot in self._touched:
            history = self._histories[slot]
            floor = history[-1][1].reach - self._machine.window.horizon
            gone = bisect_left(history, self._needed(floor), key=lambda p: p[1].reach)
            if 2 * gone > len(history) + thresholds.current.few_rows:
                del history[:gone]
        self._touched.clear()

    def closed(self, until: int | None) -> Iterator[EnumeratedMatches]:
        """The matches whose windows have closed by a time (ms), and that are answers.

        None closes all windows.
        """
        for matches in self.waiting.due(until):
            kept = [
                any(evaluator.holds_pending(match) for evaluator, match in judged)
                for judged in self._judged(matches)
            ]
            yield matches.take(np.flatnonzero(kept)).enumerated()

    def _judged(
        self, matches: ClosingMatches
    ) -> Iterator[list[tuple[RegisterEvaluator, PartitionMatch]]]:
        """The remains of each match before the check of steps in last place.

        Each must be used before the next one, as one evaluator judges all.
        """
        evaluator = RegisterEvaluator(self._machine)
        for key, (path, origin) in self._paths(matches):
            evaluator.look_back(self._histories.get(key, []))
            yield [(evaluator, match) for match in evaluator.judged(path, origin)]

    def _paths(self, matches: ClosingMatches) -> Iterator[tuple[int, _Path]]:
        """(the slot, the solutions) of each match."""
        rows, begin = self._builder.rows(distinct(matches.rows)), 0
        assert matches.edges is not None
        numbers, edges = matches.rows.tolist(), matches.edges.tolist()
        for end, origin in zip(matches.ends.tolist(), matches.origin.tolist(), strict=True):
            own = [rows[n] for n in numbers[begin:end]]
            path = [
                (self._steps[e], self._takes[e], row)
                for e, (_, row) in zip(edges[begin:end], own, strict=True)
            ]
            yield self._frame.slot_of(own[0]), (path, origin)
            begin = end

    # --- hand-over --------------------------------------------------------------------------------

    def histories(self) -> dict[PartitionKey, EventHistory]:
        """The solutions that checks may need, by partition."""
        keys, found = self._frame.keys.keys(), dict[PartitionKey, EventHistory]()
        for slot, history in self._histories.items():
            partition = self._frame.partition_of(keys[slot])
            found[partition] = _merged(found.get(partition, []), history)
        return found

    def pending(self) -> Iterator[tuple[PartitionKey, _Path]]:
        """(the partition, the solutions) of each match that waits for its window's close."""
        keys = self._frame.keys.keys()
        for matches in self.waiting:
            for slot, path in self._paths(matches):
                yield self._frame.partition_of(keys[slot]), path

    # --- memory -----------------------------------------------------------------------------------

    @property
    def _counted(self) -> bool:
        return isinstance(self._machine.window, Counted)

    def _needed(self, floor: int) -> int:
        """The measure from which solutions are needed.

        Matches that may still end began at `floor` or later, and a step in first place looks back
        one window from there. A waiting match is judged at the next request.
        """
        horizon, close = self._machine.window.horizon, self.waiting.next_close
        return (floor if close is None else min(floor, close - horizon)) - horizon

    def row_numbers(self) -> Int64s:
        """The rows that waiting matches need."""
        rows = [matches.rows for matches in self.waiting]
        return distinct(np.concatenate(rows)) if rows else np.empty(0, np.int64)

    def keep(self, rows: Int64s) -> None:
        """Rows are kept by the store alone."""

    def idle(self, slots: int, floor: int) -> Indices:
        """The slots below `slots` that neither a check nor a waiting match needs.

        Under WITHIN n EVENTS checks go back to the begin of a run, which waits in its slot.
        """
        idle, needed = np.ones(slots, np.bool_), self._needed(floor)
        if not self._counted:
            for slot, history in self._histories.items():
                idle[slot] = not history or history[-1][1].reach < needed
        for matches in self.waiting:
            for slot, _ in self._paths(matches):
                idle[slot] = False
        return np.flatnonzero(idle)

    def release(self, slots: Indices) -> None:
        """Release idle slots for other keys."""
        for slot in slots.tolist():
            self._histories.pop(slot, None)

    def in_use(self, number: int) -> Float64s:
        """Checks compare terms, and no numbers."""
        return np.empty(0)


def _merged(one: EventHistory, other: EventHistory) -> EventHistory:
    """The history of a partition, of which two histories have different keys."""
    if not one:
        return [*other]
    by_instant = {instant: (instant, moment, {**rows}) for instant, moment, rows in one}
    for instant, moment, rows in other:
        _, _, known = by_instant.setdefault(instant, (instant, moment, {}))
        for gpm, solutions in rows.items():
            known[gpm] = [*known.get(gpm, []), *solutions]
    return [by_instant[instant] for instant in sorted(by_instant)]
