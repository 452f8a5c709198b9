"""From a program to the integer tables of the register kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaseq.automaton.program.nfa import Edge, Program
from spaseq.automaton.program.window import Window
from spaseq.automaton.registers.compilable import tested_program
from spaseq.automaton.registers.compiled.edge_tests import EdgeTest, Number
from spaseq.automaton.registers.compiled.layout import program_arrays
from spaseq.automaton.run.machine import GpmColumns
from spaseq.compiled.arrays import Array


@dataclass(frozen=True, slots=True)
class RunTables:
    """A sequence as the register kernel takes it.

    `own` are the numbers of a solution, `registers` those of a run; `compared` the tests by value;
    `edges` the automaton's edge for each of the kernel's; `program` the kernel's arrays.
    """

    key: tuple[str, ...]
    own: tuple[Number, ...]
    registers: tuple[Number, ...]
    compared: tuple[EdgeTest, ...]
    edges: tuple[Edge, ...]
    program: tuple[Array, ...]
    timed: bool  # an operator bounds a gap
    strict: bool


def run_tables(
    program: Program, gpms: Sequence[GpmColumns], partition: tuple[str, ...], window: Window
) -> RunTables:
    """The tables of a sequence.

    Raises:
        NotCompilable: the register kernel cannot run it.
    """
    tested = tested_program(program, gpms, partition, window)
    edges = tested.edges
    tests = [t for e in edges for t in e.tests]
    tests += [t for e in edges for _, kill in e.kills for t in kill]
    numbers = [t.earlier for t in tests] + [t.own for t in tests if t.of_run]
    registers = tuple(dict.fromkeys(numbers))
    own = tuple(dict.fromkeys([*(t.own for t in tests), *registers]))
    return RunTables(
        tested.key,
        own,
        registers,
        tuple(dict.fromkeys(t for t in tests if not t.own.by_term)),
        tuple(e.edge for e in edges),
        program_arrays(program.automaton, edges, own, registers, gpms),
        any(e.edge.join is not None and e.edge.join.gap_ms is not None for e in edges),
        program.strict,
    )
