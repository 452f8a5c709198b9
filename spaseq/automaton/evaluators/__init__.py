"""The evaluators of a sequence: different run-time states over one static automaton.

- `registers` runs the whole language: every partial match is a run with its bindings.
- `compact` runs what has no conditions between events: partial matches are a set that shares parts.
- `lazy` runs `:` and AND, conditions between events included: solutions are stored by GPM and
  matched from the rarest on when an event arrives that can be a match's last.
- `chain` is `compact` for plain sequences of single GPMs.

`plan.evaluators` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spaseq.automaton.evaluators.base import Found, PartitionEvaluator, Rows
from spaseq.automaton.evaluators.chain import chain
from spaseq.automaton.evaluators.compact import compact
from spaseq.automaton.evaluators.lazy import LazyPartition, LazyProgram
from spaseq.automaton.evaluators.registers import Partition
from spaseq.automaton.evaluators.structured import StructuredPartition
from spaseq.automaton.machine import Machine

__all__ = ["Found", "PartitionEvaluator", "Rows", "partitions"]


def partitions(machine: Machine) -> Callable[[], PartitionEvaluator]:
    """What makes a new, empty partition for a machine's evaluator."""
    if machine.evaluator in ("registers", "compiled-registers"):
        return partial(Partition, machine)
    if machine.evaluator == "lazy":
        program = LazyProgram(machine)
        machine.register(program)
        return partial(LazyPartition, program)
    static = chain(machine) if machine.evaluator == "chain" else compact(machine)
    machine.register(static)
    return partial(StructuredPartition, static)
