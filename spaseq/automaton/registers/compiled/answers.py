"""Answers to asked tests: the evaluator in Python says whether a run takes a solution."""

from __future__ import annotations

import numpy as np

from spaseq.automaton.batch.match_builder import MatchBuilder
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator
from spaseq.automaton.run.event_rows import GpmRow
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.runs import Run
from spaseq.compiled.arrays import Arrays, Int64s

_FEW, _MOST = 1 << 10, 1 << 18
"""Places of the table at the start, and while an instant needs no more."""

_KNOWN_RUNS = 1 << 14
"""Runs that are kept as the evaluator in Python has them."""

_EDGE = (1 << kernel.EDGE_BITS) - 1


class Answers:
    """The table of answers, and the runs that were asked about."""

    def __init__(self, tables: RunTables, machine: Machine, builder: MatchBuilder) -> None:
        self._tables, self._machine, self._builder = tables, machine, builder
        self._by_run = any(test.by_run for test in tables.asked)
        self._lacked = -1  # the solution at which the table was too small last
        self._known: dict[int, Run] = {}
        self.arrays = self._empty(_FEW if tables.asked else 1)
        self._evaluator: RegisterEvaluator | None = None

    def _empty(self, places: int) -> Arrays:
        """An empty table, as the fields of `AnswerArrays`."""
        width = 1 + int(np.diff(self._tables.program.asks).max(initial=0))
        return (
            np.empty((places, width), np.int64),
            np.zeros(places, np.uint8),
            np.empty((places // 2, 3), np.int64),
            np.zeros(3, np.int64),
        )

    def forget(self) -> None:
        """Forget all answers: ids of terms may now stand for others."""
        if self._tables.asked:
            self.arrays = self._empty(len(self.arrays[1]))

    def forget_runs(self) -> None:
        """Forget what depends on the numbers of runs: they have changed."""
        self._known, self._evaluator = {}, None
        if self._by_run:
            self.forget()

    def answer(self, node: Int64s, first_id: int) -> None:
        """Answer the tests that were noted.

        `node` has the nodes of the runs; `first_id` is the id of the batch's first solution.
        """
        key, answer, noted, count = self.arrays
        asked = noted[: count[kernel.NOTED]].copy()
        asked[:, 1] += first_id
        self._make_known(node, asked)
        rows = self._builder.rows(asked[:, 1])
        for place, solution, run in asked.tolist():
            edge = self._tables.asked[key[place, 0]].edge
            takes = self._python.would_take(self._run(run), edge, rows[solution][1])
            answer[place] = kernel.YES if takes else kernel.NO
        count[kernel.NOTED] = 0
        if count[kernel.LACKING]:
            self._make_room(int(asked[-1, 1]) if len(asked) else first_id)

    def _make_room(self, solution: int) -> None:
        """An empty table, larger if it still may grow, or if one instant does not fit."""
        places = len(self.arrays[1])
        if places < _MOST or solution == self._lacked:
            places *= 2
        self._lacked = solution
        self.arrays = self._empty(places)

    # --- runs in Python ---------------------------------------------------------------------------

    @property
    def _python(self) -> RegisterEvaluator:
        if self._evaluator is None:
            self._evaluator = RegisterEvaluator(self._machine)
        return self._evaluator

    def _run(self, run: int) -> Run:
        return self._python.start if run < 0 else self._known[run]

    def _make_known(self, node: Int64s, asked: Int64s) -> None:
        """Make the runs that ask, and those that they follow from."""
        if len(self._known) > _KNOWN_RUNS:
            self._known, self._evaluator = {}, None
        new = list[int]()
        for run in dict.fromkeys(asked[:, 2].tolist()):
            path = list[int]()
            while run >= 0 and run not in self._known:
                path.append(run)
                run = int(node[run, kernel.PREVIOUS])
            new += path[::-1]
        new = [*dict.fromkeys(new)]
        if not new:
            return
        nodes = node[new]
        rows = self._builder.rows(nodes[:, kernel.SOLUTION])
        for run, (solution, previous, origin, path_bits, *_) in zip(
            new, nodes.tolist(), strict=True
        ):
            self._known[run] = self._moved(previous, path_bits & _EDGE, rows[solution], origin)

    def _moved(self, previous: int, edge: int, row: GpmRow, origin: int) -> Run:
        step, taken = self._tables.steps[edge], self._tables.edges[edge]
        return self._python.with_row(self._run(previous), step, taken, row[1], origin)
