"""The compiled sequencer for sequences without conditions between events.

It drives the chain kernel or the compact kernel over batches of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.frame import BatchFrame, OrderedRows
from spaseq.automaton.batch.match_builder import (
    EnumeratedMatches,
    MatchBuilder,
    NumberedMatches,
    stored,
)
from spaseq.automaton.batch.outer_checks import OuterNegations, plain_checks
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.batch.waiting_matches import closing_states
from spaseq.automaton.program.nfa import BracketLabel
from spaseq.automaton.program.outer_steps import outer_negations
from spaseq.automaton.run.event_rows import EventRows, GpmRow
from spaseq.automaton.run.live_states import LiveStates, StateKey, StatePlaces, Wanted
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import SequenceMatch
from spaseq.automaton.sets.compiled.maximal_matches import MaximalMatches
from spaseq.automaton.sets.compiled.set_nodes import FIRST, ROOT, SetNodes
from spaseq.automaton.sets.python.conjunctions import DONE, NOT_BEGUN, Letters
from spaseq.automaton.sets.python.expand import BracketName, WaitName, Waits
from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import distinct
from spaseq.stateful import Stateful

if TYPE_CHECKING:
    from spaseq.automaton.sets.compiled.chain_state import ChainState
    from spaseq.automaton.sets.compiled.compact_state import CompactState


def states_of(waits: Waits, name: WaitName, places: StatePlaces) -> Iterator[StateKey]:
    """The states of a wait: its position, or the progress of the operands of its bracket."""
    edge = waits.edges[name if isinstance(name, int) else cast(tuple[Any, ...], name)[0]]
    label = edge.label
    if isinstance(label, BracketLabel):
        _, stage, _ = cast(BracketName, name)
        bracket = waits.waits[name if isinstance(name, int) else cast(BracketName, name)[0]].bracket
        if stage is not None and bracket is not None:
            operands = zip(stage, (bracket.left, bracket.right), label.operands, strict=True)
            for got, operand_waits, operand in operands:
                if got == DONE:
                    yield from places.ends(operand)
                elif got != NOT_BEGUN:
                    yield from states_of(operand_waits, got, places)
            return
    yield places.source[edge.id]


T = TypeVar("T")


SetState: TypeAlias = "ChainState | CompactState"
"""The partial matches of all slots, for one of the two kernels."""


class SetSequencer(Stateful):
    """The sequence of one query over all its partitions, by a kernel.

    `state` is of the sequence without negated steps in first and last place. `letters`: its rows
    have letters of a GPM and a stream.
    """

    STATE = (
        "_state",
        "_frame",
        "_store",
        "_outer",
        "_maximal",
        "_most_keys",
        "suppressed",
        "_lowest",
    )

    def __init__(self, machine: Machine, state: SetState, letters: Letters | None = None) -> None:
        self._machine, self._state, self._letters = machine, state, letters
        key = (*machine.partition, *machine.key)
        self._frame = BatchFrame(machine.gpms, machine.partition, key, machine.window, state.strict)
        self._builder = MatchBuilder(machine)
        self._store = self._builder.store
        self._outer = _outer_negations(machine)
        self._maximal = _maximal(machine)
        self._most_keys = 0  # twice what the last sweep has left
        self._lowest = FIRST  # least measure of a match that may end from now on
        self.suppressed = 0

    def run(self, rows: SolutionBatch, watermark: int) -> Iterable[SequenceMatch]:
        """Process rows: later than all before, none later than the watermark (ms)."""
        matches = self._advanced(*self._frame.rows(rows)) if len(rows) else ()
        return matches if self._outer is None else chain(matches, self._closed(watermark))

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterable[SequenceMatch]:
        """Process the rows of a few single events, like `run`."""
        matches = self._advanced(*self._frame.rows_of(events)) if events else ()
        return matches if self._outer is None else chain(matches, self._closed(watermark))

    @property
    def waits(self) -> bool:
        """Whether matches wait for the close of their windows."""
        return self._outer is not None and self._outer.is_last

    def can_enumerate(self, rows: SolutionBatch) -> bool:
        """Whether `enumerated` can process the next rows."""
        return not self.waits

    def enumerated(self, rows: SolutionBatch, most_bytes: int) -> Iterator[NumberedMatches]:
        """Process rows like `run`, and yield the numbers of the rows of all matches, once.

        Until the iterator advances, `NumberedMatches.built` makes the matches themselves.

        Raises:
            TooManyMatches: their numbers need more than `most_bytes`.
        """
        solutions, ordered = self._frame.rows(rows)
        is_given = False
        empty = NumberedMatches(ordered.number, self._frame.order, (), self._builder)

        def numbered(roots: Int64s) -> Iterator[NumberedMatches]:
            yield replace(empty, pieces=stored(self._pieces(roots, ordered), most_bytes))

        for matches in self._processed(solutions, ordered, numbered):
            is_given = True
            yield matches
        if not is_given:
            yield empty

    def _checked(self, pieces: Iterable[EnumeratedMatches]) -> Iterable[EnumeratedMatches]:
        """The matches that pass the negated steps in first and last place."""
        return pieces if self._outer is None else map(self._outer.checked, pieces)

    def close(self) -> Iterator[SequenceMatch]:
        """Close every window: all streams have ended."""
        return self._closed(None)

    def _closed(self, until: int | None) -> Iterator[SequenceMatch]:
        """The matches whose windows have closed by a time (ms)."""
        if self._machine.waiting is not None:
            until = self._machine.waiting.until(until)
        if self._outer is not None:
            for piece in self._outer.closed(until):
                yield from self._builder.matches(piece)

    @property
    def next_close(self) -> int | None:
        """The time (ms) before which no match comes without further rows; None: none comes."""
        return None if self._outer is None else self._outer.waiting.next_close

    def live_runs(self) -> int:
        """Number of waiting sets of partial matches."""
        return int(self._state.alive(self._lowest).sum())

    def count_waiting(self) -> None:
        """Give the limit the number of waiting sets of partial matches."""
        limit = self._machine.waiting
        if limit is not None:
            alive = self._state.alive(self._lowest)
            limit.learn(int(alive.sum()), lambda: self._frame.of_members(alive, limit))

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """The states of the partial matches, for all partitions or for wanted ones."""
        program, waiting = self._machine.program, Counter[StateKey]()
        places, waits = StatePlaces(program), self._state.waits
        slots, used = self._frame.slots_of(wanted), self._state.nodes.used
        for names, live in self._state.live(self._lowest, slots) if used else ():
            for key in {k for name in names for k in states_of(waits, name, places)}:
                waiting[key] += live
        if self._outer is not None:
            waiting += closing_states(self._outer.waiting, self._builder, places, wanted)
        return LiveStates(program, +waiting, self._machine.counts.taken_so_far(wanted))

    # --- a batch ----------------------------------------------------------------------------------

    def _advanced(
        self, solutions: SolutionBatch | list[GpmRow], rows: OrderedRows
    ) -> Iterator[SequenceMatch]:
        def built(roots: Int64s) -> Iterator[SequenceMatch]:
            for piece in self._pieces(roots, rows):
                yield from self._builder.matches(piece)

        return self._processed(solutions, rows, built)

    def _processed(
        self,
        solutions: SolutionBatch | list[GpmRow],
        rows: OrderedRows,
        matches: Callable[[Int64s], Iterator[T]],
    ) -> Iterator[T]:
        """Process a batch; yield the results of `matches` for the roots of its matches."""
        nodes, builder, outer = self._state.nodes, self._builder, self._outer
        self._state.grow(self._frame.keys.bound)
        if outer is not None:
            outer.begin(rows, self._frame.keys.bound)
        if self._maximal is not None:
            self._maximal.add(solutions, rows)
        before = nodes.next
        lettered, limit = self._lettered(solutions, rows), self._machine.waiting
        pace = None if limit is None else Pace(lettered, self._frame, limit, self._state.alive)
        roots = self._state.advance(lettered, pace)
        if nodes.next > before:
            builder.begin(solutions, rows.number)
            if len(roots):
                yield from matches(roots)
            taken = nodes.taken_rows(before, rows.number, len(rows))
            self._machine.counts.take(rows.gpm, taken)
            if outer is not None:
                taken = taken.copy()
                outer.end(taken)
            builder.end(taken)
            nodes.mark(before, rows.start, rows.number)
        self._lowest = int(rows.lowest[-1])
        self._forget(self._lowest)

    def _lettered(self, solutions: SolutionBatch | list[GpmRow], rows: OrderedRows) -> OrderedRows:
        """The rows with letters in place of GPMs, if the state needs them."""
        if self._letters is None:
            return rows
        if isinstance(solutions, SolutionBatch):
            streams = solutions.stream
        else:
            streams = np.array([row[0] for _, row in solutions], np.int32)
        letter = np.array(self._letters.ranks)[streams] * self._letters.gpms + rows.gpm
        return replace(rows, gpm=np.where(rows.gpm < 0, -1, letter).astype(np.int32))

    def _forget(self, floor: int) -> None:
        """Drop nodes, rows and keys that have left the window, when enough have accumulated."""
        if self._state.nodes.forget(floor):
            kept = self._state.nodes.row_numbers()
            if self._outer is not None:
                kept = distinct(np.concatenate([kept, self._outer.row_numbers()]))
                self._outer.keep(kept)
            self._store.keep(kept)
        if len(self._frame.keys) - self._most_keys > thresholds.current.forgotten_keys:
            idle = np.flatnonzero(self._state.idle(floor))
            if self._outer is not None:
                idle = np.intersect1d(idle, self._outer.idle(self._frame.keys.bound, floor))
            released = np.array(self._frame.release(idle.tolist()), np.intp)
            self._state.release(released)
            if self._outer is not None:
                self._outer.release(released)
            self._most_keys = 2 * len(self._frame.keys)

    # --- matches ----------------------------------------------------------------------------------

    def _pieces(self, roots: Int64s, rows: OrderedRows) -> Iterator[EnumeratedMatches]:
        """The matches of some roots that pass selection and limit."""
        nodes, machine, groups = self._state.nodes, self._machine, [roots]
        if machine.limit is not None or machine.strategy not in ("ALL", "STRICT"):
            groups = self._groups(roots, rows)
        if machine.strategy in ("NEXT", "LAST"):
            nodes, groups = self._preferred(groups, rows.lowest)
        if self._maximal is not None:
            for group in groups:
                yield from self._greatest(self._maximal, group, rows)
            return
        if machine.limit is not None:
            for group in groups:
                yield from self._limited(nodes, group, rows.lowest, machine.limit)
            return
        chosen = groups[0] if len(groups) == 1 else np.concatenate(groups)
        yield from self._checked(nodes.matches(chosen, rows.lowest))

    def _greatest(
        self, maximal: MaximalMatches, roots: Int64s, rows: OrderedRows
    ) -> Iterator[EnumeratedMatches]:
        """The matches that SELECT MAX keeps of one group of roots, up to the limit."""
        nodes, limit, lowest = self._state.nodes, self._machine.limit, rows.lowest
        few = maximal.few(nodes, roots, lowest, self._builder.ranks)
        if few is not None:
            given = len(few.ends) if limit is None else min(len(few.ends), limit)
            self.suppressed += len(few.ends) - given
            yield EnumeratedMatches(few.rows, few.ends[:given])
            return
        nodes, roots, lowest = maximal.many(rows, int(roots[0, 1]))
        if limit is not None:
            yield from self._limited(nodes, roots, lowest, limit)
            return
        yield from nodes.matches(roots, lowest)

    def _preferred(self, groups: list[Int64s], lowest: Int64s) -> tuple[SetNodes, list[Int64s]]:
        """The matches that SELECT NEXT or LAST keeps of each group, as new nodes and roots."""
        nodes = self._state.nodes
        ranks = self._builder.ranks(nodes.row_numbers())
        ends = np.cumsum([len(group) for group in groups])
        smallest_decides = self._machine.strategy == "NEXT"
        chosen, roots, ends = nodes.preferred(
            np.concatenate(groups), ends, lowest, ranks, smallest_decides
        )
        return chosen, np.split(roots, ends[:-1])

    def _groups(self, roots: Int64s, rows: OrderedRows) -> list[Int64s]:
        """The groups of roots whose matches are selected and limited together.

        The roots of a group agree on instant and partition.
        """
        rows_of = self._builder.rows(roots[:, 1] + rows.number)
        names, gpms = self._machine.partition, self._machine.gpms
        groups: dict[object, list[int]] = {}
        for i, row in enumerate(roots[:, 1].tolist()):
            gpm, (_, time, k, _, values) = rows_of[row + rows.number]
            columns = [gpms[gpm].variables.index(v) for v in names]
            group = time, k, tuple([values[c] for c in columns])
            groups.setdefault(group, []).append(i)
        if self._machine.limit is not None and self._machine.key != self._machine.partition:
            # The kernel's order is that of key numbers, which depends on batches.
            for some in groups.values():
                some.sort(key=lambda i: _content(rows_of[roots[i, 1] + rows.number]))
        return [roots[some] for some in groups.values()]

    def _limited(
        self, nodes: SetNodes, roots: Int64s, lowest: Int64s, limit: int
    ) -> Iterator[EnumeratedMatches]:
        """The matches of one group of roots, up to the limit."""
        sizes, given = np.zeros(len(roots), np.int64), 0
        for piece in nodes.matches(roots, lowest, limit + 1):
            more = min(len(piece.ends), limit - given)
            if more:
                rows = piece.rows[: piece.ends[more - 1, 0]]
                yield EnumeratedMatches(rows, piece.ends[:more])
            given += more
            sizes += np.bincount(piece.ends[:, ROOT], minlength=len(roots))
        if (sizes > limit).any():
            size = nodes.count(roots[:, 0].tolist(), int(lowest[roots[0, 1]]))
        else:
            size = int(sizes.sum())
        self.suppressed += max(size - limit, 0)


def _content(row: GpmRow) -> tuple[int, int, list[str]]:
    """The sort key of the rows of one instant."""
    gpm, (stream, _, _, _, values) = row
    return stream, gpm, [text or "" for text in values]


def _maximal(machine: Machine) -> MaximalMatches | None:
    """The maximal matches, if the sequencer selects them."""
    if machine.strategy != "MAX":
        return None
    return MaximalMatches(machine.program, len(machine.gpms), len(machine.streams))


def _outer_negations(machine: Machine) -> OuterNegations | None:
    """The checks of negated steps in first and last place; None if there are none."""
    steps = outer_negations(machine.program)
    if not steps:
        return None
    return OuterNegations(plain_checks(steps, len(machine.gpms)), machine.window, False)
