"""Compiled evaluators: sequences over columns of solutions, a whole batch at a time.

They give the matches that the evaluators in Python give, for the sequences that integer tables can
express; the work is done by `spaseq.automaton.kernels`.
"""

from __future__ import annotations

from typing import TypeAlias

from spaseq.automaton.columns.chain_state import ChainState
from spaseq.automaton.columns.compact_state import CompactState
from spaseq.automaton.columns.run_sequencer import RunSequencer
from spaseq.automaton.columns.set_sequencer import SetSequencer
from spaseq.automaton.machine import Machine
from spaseq.automaton.sequencer import Sequencer

AnySequencer: TypeAlias = Sequencer | RunSequencer | SetSequencer


def sequencer(machine: Machine) -> AnySequencer:
    """What runs a machine's sequence, by the evaluator that was chosen for it."""
    match machine.evaluator:
        case "compiled-registers":
            return RunSequencer(machine)
        case "compiled-chain":
            contiguous = machine.strategy == "STRICT"
            state = ChainState(machine.program, len(machine.gpms), contiguous)
            return SetSequencer(machine, state)
        case "compiled-compact":
            contiguous = machine.strategy == "STRICT"
            return SetSequencer(
                machine, CompactState(machine.program, len(machine.gpms), contiguous)
            )
    return Sequencer(machine)
