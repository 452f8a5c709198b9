"""The arrays that describe a sequence to the register kernel.

In the order in which the kernel takes them:

- takes int32 [gpms + 1], taking: the edges that take each GPM's solutions;
- edge int32 [edges + 1, EDGE_COLUMNS], whose last row ends the ranges of the one before;
- edge_gap int64 [edges]: milliseconds, or -1;
- test int32 [tests, 3]; threshold int32: registers; sets int32 [assignments, 2]: register, own
  number;
- state int32 [states + 1], leaving: the edges out of each state; accepts uint8 [states];
- kills int32 [gpms + 1], killing [kills, 3]: edge, range of tests, by negated GPM.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from spaseq.automaton.program.nfa import Automaton, Edge
from spaseq.automaton.registers.compilable import MOST_EDGES, TestedEdge
from spaseq.automaton.registers.compiled.edge_tests import EdgeTest, Number
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.run.machine import GpmColumns
from spaseq.compiled.arrays import Array, Int32s

assert MOST_EDGES <= 1 << kernel.EDGE_BITS

_OPERATORS = {
    "<": kernel.LESS,
    "<=": kernel.AT_MOST,
    ">": kernel.GREATER,
    ">=": kernel.AT_LEAST,
    "=": kernel.EQUAL,
    "!=": kernel.UNEQUAL,
}
_KINDS = {None: kernel.FIRST, ";": kernel.NEXT, ":": kernel.ANY, ",": kernel.STRICT}


def program_arrays(
    automaton: Automaton,
    edges: Sequence[TestedEdge],
    owned: Sequence[Number],
    registers: Sequence[Number],
    gpms: Sequence[GpmColumns],
) -> tuple[Array, ...]:
    """The arrays of an automaton whose edges have been given their tests."""
    own_of, register_of = ({n: i for i, n in enumerate(ns)} for ns in (owned, registers))
    rows: list[list[int]] = []
    tests: list[tuple[int, int, int]] = []
    thresholds: list[int] = []
    sets: list[tuple[int, int]] = []

    def write(some: Sequence[EdgeTest]) -> None:
        for test in some:
            own = ~register_of[test.own] if test.of_run else own_of[test.own]
            tests.append((_OPERATORS[test.operator], own, register_of[test.earlier]))

    for edge in edges:
        indexed = _indexed(edge.tests)
        rows.append(_row(edge, indexed, own_of, (len(thresholds), len(tests), len(sets))))
        thresholds += [register_of[t.earlier] for t in indexed]
        write([t for t in edge.tests if t not in indexed])
        bound = gpms[edge.take.gpm].variables
        sets += [(r, own_of[n]) for n, r in register_of.items() if n.variable in bound]
    last = [0] * kernel.EDGE_COLUMNS
    last[kernel.THRESHOLDS] = len(thresholds)
    last[kernel.TESTS], last[kernel.SETS] = len(tests), len(sets)

    killing: list[list[tuple[int, int, int]]] = [[] for _ in gpms]
    for number, edge in enumerate(edges):
        for gpm, some in edge.kills:
            first = len(tests)
            write(some)
            killing[gpm].append((number, first, len(tests)))

    taking = [[i for i, e in enumerate(edges) if e.take.gpm == g] for g in range(len(gpms))]
    states = range(len(automaton.states))
    leaving = [[i for i, e in enumerate(edges) if e.source == s] for s in states]
    return (
        *_ranges(taking, 1),
        np.array([*rows, last], np.int32),
        np.array([_gap(e.edge) for e in edges], np.int64),
        _table(tests, 3),
        np.array(thresholds, np.int32),
        _table(sets, 2),
        *_ranges(leaving, 1),
        np.array([bool(s.acceptances) for s in automaton.states], np.uint8),
        *_ranges(killing, 3),
    )


def _row(
    edge: TestedEdge,
    indexed: Sequence[EdgeTest],
    own_of: dict[Number, int],
    begins: tuple[int, int, int],
) -> list[int]:
    join = edge.edge.join
    row = [0] * kernel.EDGE_COLUMNS
    row[kernel.TARGET] = edge.edge.target
    row[kernel.KIND] = _KINDS[None if join is None else join.kind]
    row[kernel.THRESHOLDS], row[kernel.TESTS], row[kernel.SETS] = begins
    row[kernel.INDEX] = kernel.NONE
    if indexed:
        row[kernel.INDEX] = own_of[indexed[0].own]
        row[kernel.SIGN] = 1 if indexed[0].operator in (">", ">=") else -1
        row[kernel.INCLUSIVE] = int(indexed[0].operator in (">=", "<="))
    return row


def _indexed(tests: Sequence[EdgeTest]) -> list[EdgeTest]:
    """The tests that make an edge's thresholds: most of those with one own number and one operator
    that orders."""
    groups: dict[tuple[Number, str], list[EdgeTest]] = {}
    for test in tests:
        if test.operator not in ("=", "!=") and not test.of_run:
            groups.setdefault((test.own, test.operator), []).append(test)
    return max(groups.values(), key=len, default=[])


def _gap(edge: Edge) -> int:
    return -1 if edge.join is None or edge.join.gap_ms is None else edge.join.gap_ms


def _ranges(lists: Sequence[Sequence[Any]], width: int) -> tuple[Int32s, ...]:
    """Where each of some lists begins in all of them, and all of them."""
    begins = [0, *accumulate(len(some) for some in lists)]
    everything = [x for some in lists for x in some]
    table = _table(everything, width) if width > 1 else np.array(everything, np.int32)
    return np.array(begins, np.int32), table


def _table(rows: Sequence[Any], width: int) -> Int32s:
    return np.array(rows, np.int32).reshape(len(rows), width)
