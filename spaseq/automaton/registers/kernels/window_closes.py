"""Matches that have waited for the close of their windows."""

from __future__ import annotations

from spaseq.automaton.registers.kernels.run_arrays import (
    CLOSING,
    COUNT,
    DONE,
    ENDS_FULL,
    KIND,
    MATCHED,
    MATCHED_FULL,
    MATCHES,
    NEED,
    ORIGIN,
    PLACE,
    PREVIOUS,
    SOLUTION,
    RunArrays,
    WaitingArrays,
)
from spaseq.automaton.registers.kernels.run_nodes import length_of, write_match
from spaseq.compiled.arrays import Arrays, Int32s, Int64s
from spaseq.compiled.decorators import as_nonnegative, lean_kernel


@lean_kernel
def close_windows(
    edge: Int32s,
    run_arrays: Arrays,
    waiting_arrays: Arrays,
    lowest: int,
    matched: Int64s,
    ends: Int64s,
    cursor: Int64s,
) -> int:
    """Write the runs that wait at CLOSING edges and began before the measure `lowest`.

    Args:
        edge, run_arrays, waiting_arrays, cursor: as `register_runs.advance` takes them.
        matched, ends: its outputs of these names.

    Returns: DONE, or which array is full; `cursor[NEED]` says how many places it lacks.
    """
    node, waiting = RunArrays(*run_arrays).node, WaitingArrays(*waiting_arrays)
    blocks, threshold, run = waiting.block, waiting.threshold, waiting.run
    edges, full = edge.shape[0] - 1, DONE
    size, matches = as_nonnegative(cursor[MATCHED]), as_nonnegative(cursor[MATCHES])
    for block in range(blocks.shape[0]):
        if edge[block % edges, KIND] != CLOSING or blocks[block, COUNT] == 0:
            continue
        place, kept = blocks[block, PLACE], 0
        for i in range(place, place + blocks[block, COUNT]):
            ended = as_nonnegative(run[i])
            if full == DONE and node[ended, ORIGIN] < lowest:
                length = length_of(node, ended)
                if size + length > len(matched):
                    full, cursor[NEED] = MATCHED_FULL, length
                elif matches == len(ends):
                    full, cursor[NEED] = ENDS_FULL, 1
                else:
                    size += length
                    ends[matches, 0], ends[matches, 1] = size, node[ended, ORIGIN]
                    matches += 1
                    write_match(matched, size, node, node[ended, SOLUTION], node[ended, PREVIOUS])
                    continue
            threshold[place + kept], run[place + kept] = threshold[i], ended
            kept += 1
        blocks[block, COUNT] = kept
        if full != DONE:
            break
    cursor[MATCHED], cursor[MATCHES] = size, matches
    return full
