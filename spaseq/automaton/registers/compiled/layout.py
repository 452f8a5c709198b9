"""Writing a sequence into the arrays of the register kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from spaseq.automaton.batch.kernels.comparisons import CODES
from spaseq.automaton.program.bound_variables import last_step, last_time
from spaseq.automaton.program.nfa import Automaton, Edge, GpmColumns
from spaseq.automaton.registers.compiled.edge_tests import (
    BEGIN,
    AnyTests,
    AskedTest,
    EdgeTest,
    Number,
)
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.kernels.run_arrays import ProgramArrays
from spaseq.automaton.registers.loop_tests import accepts_at_once
from spaseq.automaton.registers.tested_edges import MOST_EDGES, TestedClosing, TestedEdge, joined_by
from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.records import record


@record
class ThresholdSteps:
    """A threshold sequence as `threshold_runs.advance_threshold_sequence` takes it."""

    edges: int
    step: Int32s
    """[GPMs + 1, STEP_COLUMNS] effect of a solution, by GPM + 1; row 0: an event without one."""
    source: Int32s
    """[GPMs + 1, registers] the compared number that sets each register, or NONE."""
    threshold_register: Int32s
    """[thresholds] as in `ProgramArrays`."""


def threshold_steps(program: ProgramArrays, registers: int) -> ThresholdSteps:
    """The steps of a program that is a threshold sequence (see `registers.compilable`)."""
    takes, edge = program.takes, program.edge
    step = np.full((len(takes), kernel.STEP_COLUMNS), kernel.NONE, np.int32)
    source = np.full((len(takes), registers), kernel.NONE, np.int32)
    step[:, kernel.CODE] = kernel.NOTHING
    for gpm in range(len(takes) - 1):
        for e in program.taking[takes[gpm] : takes[gpm + 1]].tolist():
            assigned = slice(edge[e, kernel.ASSIGNMENTS], edge[e + 1, kernel.ASSIGNMENTS])
            for register, number, _ in program.assignment[assigned].tolist():
                source[gpm + 1, register] = number
            _describe(program, e, step[gpm + 1], source[gpm + 1])
    return ThresholdSteps(len(edge) - 1, step, source, program.threshold_register)


def _describe(program: ProgramArrays, e: int, step: Int32s, source: Int32s) -> None:
    """Write into `step` the effect of a solution that edge `e` takes.

    `source` [registers] holds the numbers to which the solution sets registers.
    """
    edge, leaves = program.edge, program.leaves
    target = edge[e, kernel.TARGET]
    onward = program.leaving[leaves[target] : leaves[target + 1]].tolist()
    kind, looked_at = kernel.MOVES if onward else kernel.ENDS, e
    step[kernel.EDGE] = e
    step[kernel.COMPARED] = edge[e, kernel.INDEXED]
    step[kernel.COMPARED_SIGN] = edge[e, kernel.SIGN]
    for out in onward:
        assert out > e  # the kernel visits the solutions of one instant from the last edge on
        first, end = edge[out : out + 2, kernel.THRESHOLDS]
        step[kernel.ONWARD], step[kernel.LEVEL_SIGN] = out - e, edge[out, kernel.SIGN]
        step[kernel.FIRST_LEVEL], step[kernel.END_LEVEL] = first, end
        if edge[e, kernel.KIND] == kernel.FIRST:
            kind, looked_at = kernel.BEGINS, out
            if first < end:
                step[kernel.COMPARED] = source[program.threshold_register[first]]
                step[kernel.COMPARED_SIGN] = edge[out, kernel.SIGN]
    inclusive = kernel.IS_INCLUSIVE if edge[e, kernel.INCLUSIVE] else 0
    step[kernel.CODE] = looked_at << kernel.PLACE_BITS | inclusive | kind


Path = TypeVar("Path", int, Int64s)
"""One path, or an array of paths."""

assert MOST_EDGES <= 1 << 8  # a match's edges are bytes


def edge_of(path: Path) -> Path:
    """The edge of a node, or the edges of several, given PATH."""
    low = path & (1 << kernel.EDGE_BITS) - 1
    return path >> kernel.HIGH_EDGE << kernel.EDGE_BITS | low


_HOW = {
    "": kernel.REPLACED,
    "FIRST": kernel.REPLACED,
    "COUNT": kernel.SUM,
    "SUM": kernel.SUM,
    "MIN": kernel.LESSER,
    "MAX": kernel.GREATER_ONE,
}
_KINDS = {None: kernel.FIRST, ";": kernel.NEXT, ":": kernel.ANY, ",": kernel.STRICT}


def program_arrays(
    automaton: Automaton,
    edges: Sequence[TestedEdge],
    closings: Sequence[TestedClosing],
    numbers: Sequence[Number],
    registers: Sequence[Number],
    asked: Sequence[AskedTest],
    gpms: Sequence[GpmColumns],
) -> ProgramArrays:
    """The arrays of an automaton.

    Args:
        edges: the edges along which a solution can be taken.
        closings: where matches wait for the close of their windows.
        numbers, registers: the numbers of solutions, and those that runs keep.
        asked: the tests that Python answers.
        gpms: the columns of each GPM, by its index.
    """
    rows = _EdgeRows(numbers, registers, asked)
    for edge in edges:
        rows.add(edge, _bound(edge, gpms))
    for _ in closings:
        rows.add_closing()
    table = rows.table()  # before the tests of negated GPMs, which are in no edge's range
    killing: list[list[tuple[int, int, int, int]]] = [[] for _ in gpms]
    ways: tuple[TestedEdge | TestedClosing, ...] = (*edges, *closings)
    stopping = _stopping(ways, rows, registers, len(gpms))
    for number, edge in enumerate(edges):
        for gpm, tests in edge.kills:
            killing[gpm].append((number, *rows.add_tests(tests), rows.joined(edge, tests)))
    taking = [[i for i, e in enumerate(edges) if e.take.gpm == g] for g in range(len(gpms))]
    states = range(len(automaton.states))
    leaving = [[i for i, e in enumerate(ways) if e.source == s] for s in states]
    return ProgramArrays(
        _begins(taking),
        _flat(taking),
        table,
        np.array([*(_gap_ms(e.edge) for e in edges), *(kernel.NONE for _ in closings)], np.int64),
        _table(rows.tests, kernel.TEST_COLUMNS),
        np.array(rows.thresholds, np.int32),
        _table(rows.assignments, 3),
        _begins(leaving),
        _flat(leaving),
        *_states(automaton),
        _begins(killing),
        _table([kill for kills in killing for kill in kills], kernel.KILLING_COLUMNS),
        _begins(stopping),
        _table([stop for stops in stopping for stop in stops], kernel.STOPPING_COLUMNS),
        *rows.asks(),
    )


def _bound(edge: TestedEdge, gpms: Sequence[GpmColumns]) -> tuple[str, ...]:
    """The variables that the solutions of an edge bind, times of events included."""
    times = last_time(edge.take.name), *map(last_step, edge.edge.operands)
    return (*gpms[edge.take.gpm].variables, *times)


def _states(automaton: Automaton) -> tuple[Bytes, Bytes]:
    """`accepts` and `completes` of the states."""
    states = automaton.states
    accepts, completes = map(accepts_at_once, states), (state.completes for state in states)
    return np.fromiter(accepts, np.uint8), np.fromiter(completes, np.uint8)


def _stopping(
    ways: Sequence[TestedEdge | TestedClosing],
    rows: _EdgeRows,
    registers: Sequence[Number],
    gpms: int,
) -> list[list[tuple[int, int, int, int, int]]]:
    """The rows of `stopping` for each GPM."""
    stopping: list[list[tuple[int, int, int, int, int]]] = [[] for _ in range(gpms)]
    for number, way in enumerate(ways):
        for stop in way.stops:
            marked = kernel.NONE if stop.marks is None else registers.index(stop.marks)
            joined = rows.joined(way, stop.tests)
            stopping[stop.gpm].append((number, *rows.add_tests(stop.tests), marked, joined))
    return stopping


class _EdgeRows:
    """The rows of `edge`, and the arrays of which each row has a range."""

    def __init__(
        self, numbers: Sequence[Number], registers: Sequence[Number], asked: Sequence[AskedTest]
    ) -> None:
        self._asked = asked
        self._number = {n: i for i, n in enumerate(numbers)}
        self._register = {n: i for i, n in enumerate(registers)}
        self._rows: list[list[int]] = []
        self.tests: list[tuple[int, int, int, int, int]] = []
        self.thresholds: list[int] = []
        self.assignments: list[tuple[int, int, int]] = []

    def add(self, edge: TestedEdge, bound: Sequence[str]) -> None:
        """Add an edge whose solutions bind the variables `bound`."""
        indexed = edge.thresholds
        join = edge.edge.join
        row = self._ranges()
        row[kernel.TARGET] = edge.edge.target
        row[kernel.KIND] = _KINDS[None if join is None else join.kind]
        if edge.edge.together:
            row[kernel.KIND] = kernel.TOGETHER
        if edge.rivals is not None:
            row[kernel.OPENS] = self._register[edge.rivals]
        if edge.edge.within:
            row[kernel.WITHIN] = self._register[BEGIN]
        if edge.joined is not None:
            row[kernel.JOINED] = self._number[edge.joined.left]
            row[kernel.JOINED_REGISTER] = self._register[edge.joined.right]
        row[kernel.INDEXED] = kernel.NONE
        if indexed:
            row[kernel.INDEXED] = self._number[indexed[0].left]
            row[kernel.SIGN] = 1 if indexed[0].operator in (">", ">=") else -1
            row[kernel.INCLUSIVE] = int(indexed[0].operator in (">=", "<="))
        self._rows.append(row)
        self.thresholds += [self._register[t.right] for t in indexed]
        _, row[kernel.OFFERED] = self.add_tests([t for t in edge.tests if t.of_count])
        self.add_tests([t for t in edge.tests if t not in indexed and not t.of_count])
        for number, register in self._register.items():
            how = self._assigned(number, edge, bound)
            if how == kernel.CLEARED:
                self.assignments.append((register, kernel.NONE, how))
            elif how is not None:
                self.assignments.append((register, self._number[number.base], how))

    def joined(self, way: TestedEdge | TestedClosing, tests: AnyTests) -> int:
        """The number by which the runs are found that solutions with some tests end or mark."""
        if isinstance(way, TestedClosing) or way.joined is None:
            return kernel.NONE
        joined = joined_by(tests, way.joined.right)
        assert joined is not None
        return self._number[joined]

    def add_closing(self) -> None:
        """Add an edge along which no solution is taken."""
        row = self._ranges()
        row[kernel.KIND], row[kernel.INDEXED] = kernel.CLOSING, kernel.NONE
        self._rows.append(row)

    def _assigned(self, register: Number, edge: TestedEdge, bound: Sequence[str]) -> int | None:
        """The assignment of a register at an edge; None if there is none."""
        if register.measure == "count":
            return _counted(edge.edge, int(register.variable))
        if register.measure in ("mark", "earliest"):
            return kernel.CLEARED  # it belongs to the waits of the run before
        if register == BEGIN:
            return kernel.REPLACED if edge.rivals is not None else None
        if register.is_measure:
            return kernel.REPLACED
        if register.variable not in bound:
            return None
        if register.variable in edge.repeated:
            return None if register.running == "FIRST" else _HOW[register.running]
        return kernel.REPLACED_IF_SET if register.variable in edge.optional else kernel.REPLACED

    def add_tests(self, tests: Sequence[EdgeTest | AskedTest]) -> tuple[int, int]:
        """Add tests; their range."""
        first = len(self.tests)
        for test in tests:
            if isinstance(test, AskedTest):
                self.tests.append((kernel.ASKED, self._asked.index(test), 0, 0, 0))
                continue
            left = ~self._register[test.left] if test.left_in_run else self._number[test.left]
            self.tests.append((CODES[test.operator], left, *self._right(test)))
        return first, len(self.tests)

    def _right(self, test: EdgeTest) -> tuple[int, int, int]:
        """The columns RIGHT, HOW and ADDED of a test."""
        number = test.right
        if test.right_in == "run":
            return self._register[number], kernel.AS_IS, 0
        if test.right_in == "solution":
            return 0, kernel.REPLACED, self._number[number]
        return self._register[number], _HOW[number.running], self._number[number.base]

    def asks(self) -> tuple[Int32s, Int32s]:
        """`asks` and `asking` of all asked tests."""
        read = [
            [
                *(self._number[number] for number in test.of_own),
                *(~self._register[number] for number in test.of_run),
                *(() if test.taken is None else (kernel.RUN,)),
            ]
            for test in self._asked
        ]
        return _begins(read), _flat(read)

    def table(self) -> Int32s:
        """The rows added so far, and one that ends the ranges of the last."""
        return np.array([*self._rows, self._ranges()], np.int32)

    def _ranges(self) -> list[int]:
        """A row whose ranges begin here."""
        row = [0] * kernel.EDGE_COLUMNS
        row[kernel.THRESHOLDS], row[kernel.TESTS] = len(self.thresholds), len(self.tests)
        row[kernel.ASSIGNMENTS] = len(self.assignments)
        row[kernel.OPENS] = row[kernel.WITHIN] = row[kernel.JOINED] = kernel.NONE
        return row


def _counted(edge: Edge, repeat: int) -> int | None:
    """The assignment of a loop's count at an edge."""
    kinds = {action.kind for action in edge.actions if action.repeat == repeat}
    if "start" in kinds:
        return kernel.REPLACED
    return kernel.SUM if "again" in kinds else None


def _gap_ms(edge: Edge) -> int:
    return kernel.NONE if edge.join is None or edge.join.gap_ms is None else edge.join.gap_ms


def _begins(lists: Sequence[Sequence[Any]]) -> Int32s:
    """The start of each list in their concatenation, and the end of the last."""
    return np.array([0, *accumulate(map(len, lists))], np.int32)


def _flat(lists: Sequence[Sequence[int]]) -> Int32s:
    return np.array([x for each in lists for x in each], np.int32)


def _table(rows: Sequence[Any], width: int) -> Int32s:
    return np.array(rows, np.int32).reshape(len(rows), width)
