"""Chooses the sequencer of a query: compiled, partition by partition in Python, or for a single
step.

The compiled sequencers find the same matches as the evaluators in Python. They process a batch of
rows at a time, and run the sequences that integer tables can express. A sequencer is imported where
a query needs it. In a sequence of one step each solution is a match, and none waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spaseq.automaton.batch.match_builder import EnumeratedMatches, MatchBuilder, NumberedMatches
from spaseq.automaton.partition_sequencer import PartitionSequencer
from spaseq.automaton.program.nfa import TakeLabel
from spaseq.automaton.program.outer_steps import without_outer_negations
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates, Wanted
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import NO_LISTS, SequenceMatch, SolutionReader, match_of
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stateful import Stateful

if TYPE_CHECKING:
    from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
    from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer

AnySequencer: TypeAlias = "PartitionSequencer | RunSequencer | SetSequencer | SingleStepSequencer"


def has_single_step(machine: Machine) -> bool:
    """Whether a sequence takes one solution, independent of earlier and later events.

    A window that counts events is excepted: one instant may have more events than it holds.
    """
    program = machine.program
    if len(program.edges) != 1 or program.negated or program.owner:
        return False
    if isinstance(machine.window, Counted):
        return False
    label = program.edges[0].label
    if not isinstance(label, TakeLabel) or label.conditions:
        return False
    gpm = machine.gpms[label.gpm]
    asks_nothing = not gpm.conditions and gpm.correlation is None
    is_plain = machine.strategy == "ALL" and not machine.consumes and not machine.checks_strict
    return asks_nothing and is_plain and machine.limit is None and machine.waiting is None


class SingleStepSequencer(Stateful):
    """The sequence of a query that satisfies `has_single_step`. It has no state."""

    suppressed = 0
    waits = False
    next_close = None

    def __init__(self, machine: Machine) -> None:
        label = machine.program.edges[0].label
        assert isinstance(label, TakeLabel)
        self._machine, self._gpm = machine, label.gpm
        self._builder, self._reader = MatchBuilder(machine), SolutionReader(machine)

    def run(self, rows: SolutionBatch, watermark: int) -> Iterable[SequenceMatch]:
        """The matches of rows that are later than all earlier rows."""
        distinct_rows = rows.take(np.array([*rows.rows()], np.intp))
        distinct_rows = distinct_rows.take(np.flatnonzero(distinct_rows.gpm == self._gpm))
        self._count(len(distinct_rows))
        for solution, time in zip(
            self._reader.of_columns(distinct_rows), distinct_rows.time.tolist(), strict=True
        ):
            yield match_of(([solution], time, NO_LISTS, None))

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterable[SequenceMatch]:
        """The matches of a few single events."""
        for event in sorted(events, key=lambda e: (e.time, e.k, e.stream)):
            rows = [row for row in event.rows() if row[0] == self._gpm]
            self._count(len(rows))
            for row in rows:
                yield match_of(([self._reader.of(row)], event.time, NO_LISTS, None))

    def can_enumerate(self, rows: SolutionBatch) -> bool:
        """Whether `enumerated` can process the next rows."""
        return True

    def enumerated(self, rows: SolutionBatch, most_bytes: int) -> Iterator[NumberedMatches]:
        """The numbers of the rows of all matches, once; as `SetSequencer.enumerated`."""
        order = [np.flatnonzero(rows.gpm == self._gpm)] if (rows.gpm != self._gpm).any() else []
        distinct_rows = rows.take(order[0]) if order else rows
        numbers = np.arange(len(distinct_rows))
        self._count(len(distinct_rows))
        pieces = [EnumeratedMatches(numbers, np.stack([numbers + 1, distinct_rows.time], axis=1))]
        self._builder.begin(distinct_rows, 0)
        yield NumberedMatches(0, order, pieces if len(distinct_rows) else [], self._builder)
        self._builder.end(np.zeros(len(distinct_rows), np.uint8))

    def _count(self, taken: int) -> None:
        if taken:
            self._machine.counts.taken[self._gpm] += taken

    def close(self) -> Iterator[SequenceMatch]:
        """End all streams."""
        return iter(())

    def live_runs(self) -> int:
        """Number of waiting partial matches."""
        return 0

    def count_waiting(self) -> None:
        """Nothing: there is no limit."""

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """The states of the partial matches: there are none."""
        counts = self._machine.counts.taken_so_far(wanted)
        return LiveStates(self._machine.program, Counter(), counts)


def sequencer(machine: Machine, numbers_rows: bool = False) -> AnySequencer:
    """The sequencer for the evaluator that the planner chose.

    With `numbers_rows` it numbers rows as sequencers of longer sequences do.
    """
    match machine.evaluator:
        case "compiled-registers":
            from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer

            return RunSequencer(machine)
        case "compiled-chain" if not numbers_rows and has_single_step(machine):
            return SingleStepSequencer(machine)
        case "compiled-chain" | "compiled-compact":
            return _set_sequencer(machine)
    return PartitionSequencer(machine, machine.key)


def _set_sequencer(machine: Machine) -> SetSequencer:
    from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer

    inner = without_outer_negations(machine.program)
    if machine.evaluator == "compiled-chain":
        from spaseq.automaton.sets.compiled.chain_state import ChainState

        contiguous = machine.strategy == "STRICT"
        chain = ChainState(inner, len(machine.gpms), contiguous, machine.consumes)
        return SetSequencer(machine, chain)
    from spaseq.automaton.sets.compiled.compact_state import CompactState
    from spaseq.automaton.sets.python.conjunctions import automaton_of, letters_of

    automaton = automaton_of(machine, inner)
    letters = letters_of(machine) if automaton.takes_several else None
    count = len(machine.gpms) if letters is None else letters.count
    compact = CompactState(automaton, count, machine.consumes)
    return SetSequencer(machine, compact, letters)
