"""The evaluators of a sequence: different run-time states over one static automaton.

- `registers` runs the whole language: every partial match is a run with its bindings.
- `compact` runs what has no conditions between events: partial matches are a set that shares parts.
- `lazy` runs `:` and AND, conditions between events included: solutions are stored by GPM and
  matched from the rarest on when an event arrives that can be a match's last.

`plan.evaluator_choice` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spaseq.automaton.lazy.lazy_evaluator import LazyEvaluator, LazyProgram
from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionEvaluator, PartitionMatch, RowsByGpm
from spaseq.automaton.sets.python.compact_evaluator import compact
from spaseq.automaton.sets.python.shared_evaluator import SharedEvaluator

__all__ = ["PartitionMatch", "PartitionEvaluator", "RowsByGpm", "partitions"]


def partitions(machine: Machine) -> Callable[[], PartitionEvaluator]:
    """What makes a new, empty partition for a machine's evaluator."""
    if machine.evaluator in ("registers", "compiled-registers"):
        return partial(RegisterEvaluator, machine)
    if machine.evaluator == "lazy":
        program = LazyProgram(machine)
        machine.register(program)
        return partial(LazyEvaluator, program)
    static = compact(machine)
    machine.register(static)
    return partial(SharedEvaluator, static)
