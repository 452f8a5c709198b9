"""Dropping the runs that no match can use any more, and closing the gaps between the others."""

from __future__ import annotations

from spaseq.automaton.registers.kernels.run_arrays import (
    ARRIVALS,
    CLOSING,
    COUNT,
    DONE,
    ENDS_FULL,
    EVENTS,
    KIND,
    MATCHED,
    MATCHED_FULL,
    MATCHES,
    NEED,
    ORDINAL,
    ORIGIN,
    PLACE,
    PREVIOUS,
    SOLUTION,
    STRICT,
    USED,
    RunArrays,
    WaitingArrays,
    length_of,
    write_match,
)
from spaseq.automaton.registers.kernels.waiting_blocks import drop_expired
from spaseq.compiled.arrays import Arrays, Bytes, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    device_function,
    inlined_device_function,
    lean_kernel,
)


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

    Returns: DONE, or the array that is full; `cursor[NEED]` is the number of missing places.
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


@device_function
def _drop_waiting(
    waiting: WaitingArrays, node: Int64s, edge: Int32s, progress: Int64s, counted: int, lowest: int
) -> None:
    """Drop all expired waiting runs, except the matches that wait for a close."""
    edges = edge.shape[0] - 1
    for slot in range(progress.shape[0]):
        floor = lowest if counted < 0 else progress[slot, EVENTS] + 1 - counted
        for e in range(edges):
            block = slot * edges + e
            if waiting.block[block, COUNT]:
                if edge[e, KIND] == CLOSING:
                    continue
                if edge[e, KIND] == STRICT and waiting.made[block] != progress[slot, ORDINAL]:
                    waiting.block[block, COUNT] = 0
                else:
                    drop_expired(waiting, block, node, floor)


@inlined_device_function
def _mark(mark: Bytes, node: Int64s, run: int) -> None:
    """Mark a run and all before it."""
    while run >= 0 and not mark[run]:
        mark[run] = 1
        run = node[run, PREVIOUS]


@device_function
def _keep_marked(used: int, runs: RunArrays, mark: Bytes, moved: Int32s) -> int:
    """Move the marked runs to the front; `moved` has their new numbers. Returns the count."""
    node, register = runs
    kept = 0
    for i in range(used):
        if mark[i]:
            moved[i] = kept
            for c in range(node.shape[1]):
                node[kept, c] = node[i, c]
            if node[kept, PREVIOUS] >= 0:
                node[kept, PREVIOUS] = moved[node[kept, PREVIOUS]]
            for r in range(register.shape[1]):
                register[kept, r] = register[i, r]
            kept += 1
    return kept


@lean_kernel
def collect(
    edge: Int32s,
    run_arrays: Arrays,
    waiting_arrays: Arrays,
    progress: Int64s,
    previous: Int32s,
    cursor: Int64s,
    counted: int,
    lowest: int,
    mark: Bytes,
    moved: Int32s,
) -> None:
    """Keep only the runs that waiting runs, and the arrivals of an instant, can reach.

    Args:
        edge, run_arrays, waiting_arrays, progress, cursor, counted: as `register_runs.advance`
            takes them.
        previous: [A] the predecessor runs of arrivals.
        lowest: the least measure at which a match may begin that ends from here on; not read
            where events are counted.
        mark: [runs in use] all zero; written to.
        moved: [runs in use] written to.
    """
    runs, waiting = RunArrays(*run_arrays), WaitingArrays(*waiting_arrays)
    node, blocks, run = runs.node, waiting.block, waiting.run
    _drop_waiting(waiting, node, edge, progress, counted, lowest)
    for block in range(blocks.shape[0]):
        place = blocks[block, PLACE]
        for i in range(place, place + blocks[block, COUNT]):
            _mark(mark, node, run[i])
    for i in range(cursor[ARRIVALS]):
        _mark(mark, node, previous[i])
    cursor[USED] = _keep_marked(cursor[USED], runs, mark, moved)
    for block in range(blocks.shape[0]):
        place = blocks[block, PLACE]
        for i in range(place, place + blocks[block, COUNT]):
            run[i] = moved[run[i]]
    for i in range(cursor[ARRIVALS]):
        if previous[i] >= 0:
            previous[i] = moved[previous[i]]
