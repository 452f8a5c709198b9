"""Compiled evaluators: sequences over columns of solutions, a whole batch at a time.

They give the matches that the evaluators in Python give, for the sequences that integer tables can
express (`tables`); the work is done by `spaseq.automaton.kernels`.
"""

from __future__ import annotations

from typing import TypeAlias

from spaseq.automaton.columns.sequencer import RunSequencer
from spaseq.automaton.machine import Machine
from spaseq.automaton.sequencer import Sequencer

AnySequencer: TypeAlias = Sequencer | RunSequencer


def sequencer(machine: Machine) -> AnySequencer:
    """What runs a machine's sequence, by the evaluator that was chosen for it."""
    if machine.evaluator == "compiled-registers":
        return RunSequencer(machine)
    return Sequencer(machine)
