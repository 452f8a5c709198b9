"""Writing what solutions make of runs: the next run, and a complete match."""

from __future__ import annotations

from spaseq.automaton.registers.kernels.run_arrays import (
    EDGE_BITS,
    ORIGIN,
    PATH,
    PREVIOUS,
    SOLUTION,
)
from spaseq.compiled.arrays import Int64s
from spaseq.compiled.decorators import as_nonnegative, inlined_device_function


@inlined_device_function
def length_of(node: Int64s, run: int) -> int:
    """How many solutions a run has taken."""
    length: int = node[run, PATH] >> EDGE_BITS
    return length


@inlined_device_function
def write_run(
    node: Int64s, run: int, solution: int, previous: int, origin: int, length: int, e: int
) -> None:
    """Write the node of a run, but for its time: it took a solution along edge `e`."""
    node[run, SOLUTION], node[run, PREVIOUS] = solution, previous
    node[run, ORIGIN], node[run, PATH] = origin, length << EDGE_BITS | e


@inlined_device_function
def write_match(matched: Int64s, end: int, node: Int64s, solution: int, previous: int) -> None:
    """Write the solutions of a match, last one first, so that they end before `end`.

    `matched` is flat: one match behind the other. `previous` is the run, or NONE, that the
    solution completes.
    """
    place = as_nonnegative(end - 1)
    matched[place] = solution
    while previous >= 0:
        place = as_nonnegative(place - 1)
        matched[place] = node[as_nonnegative(previous), SOLUTION]
        previous = node[as_nonnegative(previous), PREVIOUS]
