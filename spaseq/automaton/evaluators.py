"""Chooses the evaluator in Python for a machine: run-time states over one static automaton.

- `registers` runs the whole language: every partial match is a run with its bindings.
- `compact` runs sequences without conditions between events: partial matches are a set that shares
  prefixes.
- `lazy` runs `:` and AND, with conditions between events: it stores solutions by GPM and searches
  from the rarest on when an event arrives that can be a match's last.

The planner decides which one, in `plan.evaluators`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionEvaluator, PartitionMatch, RowsByGpm
from spaseq.automaton.sets.python.compact_evaluator import CompactEvaluator, CompactProgram

__all__ = ["PartitionMatch", "PartitionEvaluator", "RowsByGpm", "partitions"]


def partitions(machine: Machine) -> Callable[[], PartitionEvaluator]:
    """A function that makes a new, empty partition for a machine's evaluator."""
    if machine.evaluator in ("registers", "compiled-registers"):
        return partial(RegisterEvaluator, machine)
    if machine.evaluator == "lazy":
        # Few queries need it, and all would wait for its import.
        from spaseq.automaton.lazy.lazy_evaluator import LazyEvaluator, LazyProgram

        lazy = LazyProgram(machine)
        machine.register(lazy)
        return partial(LazyEvaluator, lazy)
    compact = CompactProgram(machine)
    machine.register(compact)
    return partial(CompactEvaluator, compact)
