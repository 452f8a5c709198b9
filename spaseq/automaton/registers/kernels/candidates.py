"""Candidates of a bracket behind `;`, and which of them forestalls the others.

A candidate is a run that has taken a first part of the bracket, or all of it. The run before the
bracket has the begin of the earliest complete candidate so far. A candidate that begins later is
forestalled, and no further one need begin.
"""

from __future__ import annotations

from spaseq.automaton.registers.kernels.run_arrays import (
    OPENS,
    PATH,
    PREVIOUS,
    TARGET,
    WITHIN,
    BatchArrays,
    RunArrays,
    edge_of,
)
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import as_nonnegative, device_function, inlined_device_function


@inlined_device_function
def _first_of(edge: Int32s, node: Int64s, run: int) -> int:
    """The run that has taken the first solution of the candidate of `run`."""
    while edge[edge_of(node[run, PATH]), OPENS] < 0:
        run = as_nonnegative(node[run, PREVIOUS])
    return run


@inlined_device_function
def _place(edge: Int32s, node: Int64s, e: int, run: int) -> tuple[int, int]:
    """The run before the bracket of edge `e`, where `run` waits, and its register.

    The register has the begin of the earliest complete candidate.
    """
    if edge[e, OPENS] >= 0:
        return run, edge[e, OPENS]
    first = _first_of(edge, node, run)
    opener = edge_of(node[first, PATH])
    return as_nonnegative(node[first, PREVIOUS]), edge[opener, OPENS]


@device_function
def is_forestalled(edge: Int32s, runs: RunArrays, e: int, run: int) -> bool:
    """Whether a complete candidate forestalls the solutions of a run at an edge of a bracket."""
    before, register = _place(edge, runs.node, e, run)
    earliest = runs.register[before, register]
    if edge[e, OPENS] >= 0:
        begun: bool = earliest == earliest
        return begun
    later: bool = runs.register[run, edge[e, WITHIN]] > earliest
    return later


@device_function
def hold_complete(batch: BatchArrays, held: int, count: int) -> int:
    """Move the arrivals of complete candidates to the front, after the first `held` ones.

    `count` is the number of all arrivals. Returns the new number of held ones.
    """
    arrivals, edge, completes = batch.arrivals, batch.program.edge, batch.program.completes
    for i in range(held, count):
        e = as_nonnegative(arrivals.edge[i])
        if completes[edge[e, TARGET]]:
            previous, row = arrivals.previous[i], arrivals.row[i]
            arrivals.previous[i], arrivals.row[i] = arrivals.previous[held], arrivals.row[held]
            arrivals.edge[i] = arrivals.edge[held]
            arrivals.previous[held], arrivals.row[held], arrivals.edge[held] = previous, row, e
            held += 1
    return held


@device_function
def without_forestalled(batch: BatchArrays, count: int, instant: float) -> int:
    """Drop the arrivals of complete candidates, the first `count`, that others forestall.

    These are all that an instant completes; `instant` is its number. Returns the number of the
    remaining ones.
    """
    edge, arrivals, register = batch.program.edge, batch.arrivals, batch.runs.register
    kept = 0
    for drops in (False, True):
        for i in range(count):
            e, run = as_nonnegative(arrivals.edge[i]), as_nonnegative(arrivals.previous[i])
            within, begin = edge[e, WITHIN], instant
            if within >= 0:
                begin = register[run, within]
            before, own = _place(edge, batch.runs.node, e, run)
            if not drops:
                if not register[before, own] <= begin:
                    register[before, own] = begin
            elif begin <= register[before, own]:
                arrivals.previous[kept] = arrivals.previous[i]
                arrivals.row[kept] = arrivals.row[i]
                arrivals.edge[kept] = e
                kept += 1
    return kept
