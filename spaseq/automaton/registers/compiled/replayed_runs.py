"""Runs of the register kernel in the form of the evaluator in Python, for FILTERs that read whole
runs.

A run is the run before it and one more solution, so each is made once, from the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spaseq.automaton.batch.match_builder import MatchBuilder
from spaseq.automaton.registers.compiled.layout import edge_of
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.python.late_filters import LateFilters
from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator, path_after
from spaseq.automaton.registers.python.run_stepping import start_of
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.runs import Groups, Row, Run, TakenPath, Values
from spaseq.automaton.run.scoping import TakeEnv
from spaseq.compiled.arrays import Int64s


class ReplayedRuns:
    """The runs of recorded tests, by number, until the numbers change."""

    def __init__(self, machine: Machine, tables: RunTables, builder: MatchBuilder) -> None:
        self._machine, self._builder = machine, builder
        # The machine's own edges have the negated steps in first place, too.
        edges = machine.program.edges
        self._steps = [edges[step.id] for step in tables.steps]
        self._takes = [edges[edge.id] for edge in tables.edges]
        self._late = LateFilters(machine)
        # Late FILTERs look at paths alone.
        self._only_paths = all(test.late for test in tables.asked if test.taken is not None)
        self.forget()

    def forget(self) -> None:
        """Forget all runs."""
        self._evaluator = RegisterEvaluator(self._machine)
        self._runs: dict[int, Run] = {kernel.NONE: start_of(self._machine.program.automaton)}
        self._paths: dict[int, TakenPath] = {kernel.NONE: ()}
        self._groups = dict[tuple[int, int], Groups | None]()  # by run and edge

    def learn(self, runs: Iterable[int], node: Int64s) -> None:
        """Make the runs with some numbers, given the nodes of all runs."""
        missing = dict[int, list[int]]()
        for run in runs:
            while run not in self._paths and run not in missing:
                missing[run] = node[run].tolist()
                run = missing[run][kernel.PREVIOUS]
        if not missing:
            return
        ids = sorted({node_of_run[kernel.SOLUTION] for node_of_run in missing.values()})
        rows = self._builder.rows(np.array(ids, np.int64))
        for run in sorted(missing):  # a run has a larger number than the one before
            node_of_run = missing[run]
            edge = edge_of(node_of_run[kernel.PATH])
            step, inner, before = self._steps[edge], self._takes[edge], node_of_run[kernel.PREVIOUS]
            _, row = rows[node_of_run[kernel.SOLUTION]]
            self._paths[run] = path_after(self._paths[before], step, inner, row)
            if not self._only_paths:
                origin = node_of_run[kernel.ORIGIN]
                self._runs[run] = self._evaluator.with_row(
                    self._runs[before], step, inner, row, origin
                )

    def seen(self, run: int, taken: tuple[int, int], values: Values, time_ms: int) -> TakeEnv:
        """The variables that FILTERs see while a known run takes a solution, until the next call.

        `taken` are the ids of the edge and of the edge inside its bracket.
        """
        edges, evaluator, number = self._machine.program.edges, self._evaluator, taken[0]
        waiting, following = self._runs[run], (run, number)
        if following not in self._groups:
            self._groups[following] = evaluator.groups_after(waiting, edges[number])
        row: Row = (0, time_ms, 0, None, values)
        return evaluator.seen(waiting, self._groups[following], edges[taken[1]], row)

    def late_hold(self, run: int, taken: tuple[int, int], values: Values, time_ms: int) -> bool:
        """Whether the late FILTERs of an edge hold when a known run takes a solution."""
        step, inner = (self._machine.program.edges[edge] for edge in taken)
        row: Row = (0, time_ms, 0, None, values)
        path = path_after(self._paths[run], step, inner, row)
        return self._late.hold(path, self._machine.takes[inner.id].late)

    def columns(self, taken: tuple[int, int]) -> Sequence[str]:
        """The variables of a solution that an edge takes, in order."""
        return [*self._machine.takes[taken[1]].columns]
