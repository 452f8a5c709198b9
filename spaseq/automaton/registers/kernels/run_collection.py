"""Dropping the runs that no match can use any more, and moving the others together."""

from __future__ import annotations

from spaseq.automaton.registers.kernels.run_arrays import (
    ARRIVALS,
    ARRIVED,
    BEFORE,
    COUNT,
    EVENTS,
    KIND,
    ORDINAL,
    PLACE,
    STRICT,
    USED,
)
from spaseq.automaton.registers.kernels.waits import thin
from spaseq.compiled.arrays import Array, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel


@device_function
def _thin_all(
    blocks: Int32s,
    ordinal: Int64s,
    key: Float64s,
    run: Int32s,
    nodes: Int64s,
    edge: Int32s,
    floor: int,
    counted: int,
    passed: Int64s,
) -> None:
    """Drop all waits that are over; `floor` is the least measure of a match that may still end."""
    edges = edge.shape[0] - 1
    for slot in range(passed.shape[0]):
        lowest = floor if counted < 0 else passed[slot, EVENTS] + 1 - counted
        for e in range(edges):
            block = slot * edges + e
            if blocks[block, COUNT]:
                if edge[e, KIND] == STRICT and ordinal[block] != passed[slot, ORDINAL]:
                    blocks[block, COUNT] = 0
                else:
                    thin(blocks, block, key, run, nodes, lowest)


@inlined_device_function
def _mark(mark: Array, nodes: Int64s, node: int) -> None:
    while node >= 0 and not mark[node]:
        mark[node] = 1
        node = nodes[node, BEFORE]


@device_function
def _collect(
    used: int,
    nodes: Int64s,
    register: Float64s,
    blocks: Int32s,
    run: Int32s,
    arrived: Int32s,
    first: int,
    end: int,
    mark: Array,
    moved: Int32s,
) -> int:
    """Move the runs together that waits, and `arrived[first:end]`, can reach; their number.

    `mark` [used] is all zero; `moved` [used] is written to.
    """
    for block in range(blocks.shape[0]):
        place = blocks[block, PLACE]
        for i in range(place, place + blocks[block, COUNT]):
            _mark(mark, nodes, run[i])
    for i in range(first, end):
        _mark(mark, nodes, arrived[i])
    kept = 0
    for node in range(used):
        if mark[node]:
            moved[node] = kept
            for c in range(nodes.shape[1]):
                nodes[kept, c] = nodes[node, c]
            if nodes[kept, BEFORE] >= 0:
                nodes[kept, BEFORE] = moved[nodes[kept, BEFORE]]
            for r in range(register.shape[1]):
                register[kept, r] = register[node, r]
            kept += 1
    for block in range(blocks.shape[0]):
        place = blocks[block, PLACE]
        for i in range(place, place + blocks[block, COUNT]):
            run[i] = moved[run[i]]
    for i in range(first, end):
        if arrived[i] >= 0:
            arrived[i] = moved[arrived[i]]
    return kept


@lean_kernel
def collect(
    edge: Int32s,
    runs: tuple[Array, ...],
    waits: tuple[Array, ...],
    passed: Int64s,
    arrived: Int32s,
    cursor: Int64s,
    counted: int,
    floor: int,
    mark: Array,
    moved: Int32s,
) -> None:
    """Drop what no match can use any more; `floor` is the least measure of one that may still end,
    where events are not counted. `mark` uint8, all zero, and `moved` int32 have a place for every
    run in use; the other arguments are those of `advance`."""
    nodes, register = runs
    blocks, made, key, run = waits
    _thin_all(blocks, made, key, run, nodes, edge, floor, counted, passed)
    cursor[USED] = _collect(
        cursor[USED], nodes, register, blocks, run,
        arrived, cursor[ARRIVED], cursor[ARRIVALS], mark, moved,
    )  # fmt: skip
