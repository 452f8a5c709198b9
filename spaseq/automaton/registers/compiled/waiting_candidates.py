"""Candidates of brackets behind `;` among the waiting runs (`kernels.candidates`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.automaton.registers.compiled.layout import edge_of
from spaseq.automaton.registers.kernels.run_arrays import (
    NONE,
    OPENS,
    PATH,
    PREVIOUS,
    WITHIN,
    RunArrays,
)
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.records import record


@record
class WaitingCandidate:
    """The candidate, of a bracket behind `;`, that a waiting run belongs to, or may begin."""

    bracket: tuple[int, int]
    """Candidates after one run have the same."""
    first: int
    """Number of solutions of the run before it."""
    is_earliest: bool
    """Whether this is the begin of the earliest complete candidate."""
    is_forestalled: bool


def _before(edge: Int32s, node: Int64s, e: Int64s, run: Int64s) -> tuple[Int64s, Indices]:
    """The runs before the brackets of n edges at which runs wait, and their registers.

    Args:
        edge, node: as the kernels take them.
        e, run: [n] an edge that opens or continues a candidate, and a run that waits there.
    """
    register, before = edge[e, OPENS].astype(np.intp), run.copy()
    inside = register == NONE
    while inside.any():
        register[inside] = edge[edge_of(node[before[inside], PATH]), OPENS]
        before[inside] = node[before[inside], PREVIOUS]
        inside = register == NONE
    return before, register


def are_forestalled(edge: Int32s, runs: RunArrays, e: Int64s, run: Int64s) -> Bools:
    """[n] whether a complete candidate forestalls the solutions of a run at an edge."""
    forestalled = np.zeros(len(e), np.bool_)
    competing = np.flatnonzero((edge[e, OPENS] != NONE) | (edge[e, WITHIN] != NONE))
    if len(competing):
        e, run = e[competing], run[competing]
        earliest = runs.register[_before(edge, runs.node, e, run)]
        opens, begin = edge[e, OPENS] != NONE, runs.register[run, edge[e, WITHIN]]
        forestalled[competing] = np.where(opens, ~np.isnan(earliest), begin > earliest)
    return forestalled


def waiting_candidate(
    edge: Int32s, runs: RunArrays, e: int, nodes: Sequence[int]
) -> WaitingCandidate | None:
    """The candidate that a run belongs to, or may begin at edge `e`, if there is one.

    `nodes` are the run, last, and its predecessors.
    """
    opens, within, run = edge[e, OPENS], edge[e, WITHIN], nodes[-1]
    if opens == within == NONE:
        return None
    at = np.array([e]), np.array([run])
    before, register = (int(of[0]) for of in _before(edge, runs.node, *at))
    begin, earliest = runs.register[run, within], runs.register[before, register]
    is_earliest = bool(opens == NONE and begin == earliest)
    first = nodes.index(before) + 1
    gone = bool(are_forestalled(edge, runs, *at)[0])
    return WaitingCandidate((before, register), first, is_earliest, gone)
