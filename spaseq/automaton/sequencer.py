"""Chooses the sequencer of a query: compiled, or partition by partition in Python.

The compiled sequencers find the same matches as the evaluators in Python. They process a batch of
rows at a time, and run the sequences that integer tables can express. A sequencer is imported where
a query needs it: a run has few queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from spaseq.automaton.partition_sequencer import PartitionSequencer
from spaseq.automaton.program.outer_steps import without_outer_negations
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.single_step import SingleStepSequencer, has_single_step

if TYPE_CHECKING:
    from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
    from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer

AnySequencer: TypeAlias = "PartitionSequencer | RunSequencer | SetSequencer | SingleStepSequencer"


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
    return PartitionSequencer(machine)


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
