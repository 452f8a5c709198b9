"""The tables of a program for the register kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spaseq.automaton.batch.kernels.comparisons import CODES
from spaseq.automaton.batch.outer_checks import NO_GPM, OuterCheck, OuterChecks, beside_of
from spaseq.automaton.program.nfa import Acceptance, Edge, GpmColumns, Program
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.registers.compilable_runs import tested_program
from spaseq.automaton.registers.compiled.edge_tests import (
    BEGIN,
    SLOT,
    AskedTest,
    EdgeTest,
    EdgeTests,
    Number,
)
from spaseq.automaton.registers.compiled.layout import program_arrays
from spaseq.automaton.registers.kernels.run_arrays import ProgramArrays
from spaseq.automaton.registers.tested_edges import TestedNegation, join_of
from spaseq.compiled.arrays import Int32s
from spaseq.records import record


def outer_checks(
    negations: Sequence[TestedNegation], numbers: Sequence[Number], gpms: Sequence[GpmColumns]
) -> OuterChecks:
    """The checks of negated steps, given the numbers of a solution and the GPMs' columns."""
    tests = [t for negation in negations for t in negation.tests or ()]
    matched = [n for t in tests for n in ((t.left, t.right) if t.left_in_run else (t.right,))]
    matched = [*dict.fromkeys(matched)]
    binds = [[n.variable in gpm.certain for n in matched] for gpm in gpms]
    return OuterChecks(
        tuple(_check(negation, matched, numbers) for negation in negations),
        tuple(map(numbers.index, matched)),
        np.array(binds, np.bool_).reshape(len(gpms), len(matched)),
    )


def _check(
    negation: TestedNegation, matched: Sequence[Number], numbers: Sequence[Number]
) -> OuterCheck:
    tests, step = negation.tests or (), negation.negation
    compared = [*dict.fromkeys(t.left for t in tests if not t.left_in_run)]
    gpm = NO_GPM if negation.tests is None else step.take.gpm
    return OuterCheck(
        gpm,
        step.is_last,
        _table(tests, compared, matched),
        tuple(map(numbers.index, compared)),
        step.place,
        beside_of(step),
    )


def _table(tests: EdgeTests, compared: Sequence[Number], matched: Sequence[Number]) -> Int32s:
    rows = [
        (
            CODES[t.operator],
            ~matched.index(t.left) if t.left_in_run else compared.index(t.left),
            matched.index(t.right),
        )
        for t in tests
    ]
    return np.array(rows, np.int32).reshape(len(rows), 3)


@record
class RunTables:
    """A sequence as the register kernel reads it."""

    key: tuple[str, ...]
    """The variables on which all solutions of a match agree, the partition's first."""
    numbers: tuple[Number, ...]
    """The numbers of a solution that tests compare or registers keep."""
    registers: tuple[Number, ...]
    """The numbers that a run keeps."""
    compared: EdgeTests
    """The tests of terms by value: not by term, and not of times of events."""
    accumulated: tuple[Number, ...]
    """The registers that accumulate numbers."""
    edges: tuple[Edge, ...]
    """The edge that takes a solution, for each edge of the kernel."""
    steps: tuple[Edge, ...]
    """The automaton's edge for each edge of the kernel: the same, or the edge of its bracket."""
    closings: tuple[Acceptance, ...]
    """Where matches wait for the close of their windows; the kernel's edges after `edges`."""
    asked: tuple[AskedTest, ...]
    """The tests that Python answers."""
    program: ProgramArrays
    joins: tuple[EdgeTest | None, ...]
    """By edge: the comparison of ids by which waiting runs are found, if there is one."""
    timed: bool
    """Whether an operator bounds a gap."""
    strict: bool
    """Whether a `,` needs the numbers of instants."""
    is_threshold_sequence: bool
    """Whether the threshold-sequence kernel runs it."""
    outer: OuterChecks | None
    """The checks of negated steps in first and last place; None if there are none."""
    judged: bool
    """Whether Python checks each match for negated steps, greedy loops and UNTIL."""

    @property
    def layout(self) -> str:
        """A hash of the contents of the state: of the registers of runs, and of the edges where
        they wait.
        """
        kept = repr((self.registers, [edge.id for edge in self.steps], len(self.closings)))
        if any(self.joins):
            kept += repr(self.joins)
        return hashlib.sha256(kept.encode()).hexdigest()[:16]


def run_tables(
    program: Program, gpms: Sequence[GpmColumns], partition: tuple[str, ...], window: Window
) -> RunTables:
    """The tables of a sequence, given the columns of each GPM by its index.

    Raises:
        NoKernel: the register kernel cannot run it.
    """
    tested = tested_program(program, gpms, partition, window)
    edges = tested.edges
    tests: list[EdgeTest | AskedTest] = [t for e in edges for t in e.tests]
    tests += [t for e in edges for _, kill in e.kills for t in kill]
    stops = [stop for edge in edges for stop in edge.stops]
    stops += [stop for closing in tested.closings for stop in closing.stops]
    tests += [t for stop in stops for t in stop.tests]
    in_runs = [number for test in tests for number in test.of_run]
    in_runs += [stop.marks for stop in stops if stop.marks is not None]
    rivals = [edge.rivals for edge in edges if edge.rivals is not None]
    begin = [BEGIN] if rivals or any(edge.edge.within for edge in edges) else []
    in_runs += [*rivals, *begin]
    if not isinstance(window, Counted):
        edges = tuple(replace(e, joined=join_of(e, bool(tested.key))) for e in edges)
    joined = [e.joined.right for e in edges if e.joined is not None and e.joined.right.is_joined]
    of_slot = [SLOT] if joined and tested.key else []
    in_runs += [*of_slot, *joined]
    registers = tuple(dict.fromkeys(in_runs))
    checks = [t for negation in tested.outer for t in negation.tests or ()]
    of_solutions = [*begin, *of_slot, *(n for t in [*tests, *checks] for n in t.of_solution)]
    asked = tuple(dict.fromkeys(t for t in tests if isinstance(t, AskedTest)))
    compared = [t for t in [*tests, *checks] if isinstance(t, EdgeTest) and t.by_value]
    numbers = tuple(dict.fromkeys([*of_solutions, *(n for e in edges for n in e.joined_numbers)]))
    return RunTables(
        tested.key,
        numbers,
        registers,
        tuple(dict.fromkeys(t.of_bases for t in compared)),
        tuple(dict.fromkeys(n for n in registers if n.running in ("SUM", "MIN", "MAX"))),
        tuple(e.edge for e in edges),
        tuple(e.step for e in edges),
        tuple(c.end for c in tested.closings),
        asked,
        program_arrays(tested.automaton, edges, tested.closings, numbers, registers, asked, gpms),
        tuple(edge.joined for edge in edges),
        any(e.edge.join is not None and e.edge.join.gap_ms is not None for e in edges),
        program.strict,
        tested.is_threshold_sequence,
        outer_checks(tested.outer, numbers, gpms) if tested.outer else None,
        tested.judged,
    )
