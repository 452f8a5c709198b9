"""Warm-up of the graph pattern kernels: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.gpm.kernels import graph_search
from spaseq.gpm.kernels.bgp_interpreter import frequencies, solutions
from spaseq.gpm.kernels.keyed_ranges import pairs, ranges, some_repeats


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    column = np.zeros(1, np.int32)
    terms, modes = np.zeros((1, 3), np.int32), np.zeros((1, 3), np.int8)
    start, event, rows = np.array([0, 1]), np.zeros(1, np.int64), np.zeros((1, 1), np.int32)
    solutions(start, column, column, column, terms, modes, 0, 0, 1, event, rows)
    yield "solutions"
    frequencies(column, column, column, terms, modes)
    yield "frequencies"
    zero, bounds, starts = np.zeros(1, np.int64), np.zeros(1), np.array([0, 1])
    ranges(zero, bounds, starts, bounds, True, True, zero.copy(), zero.copy())
    yield "ranges"
    pairs(zero, zero, zero, zero.copy(), zero.copy())
    yield "pairs"
    some_repeats(zero, column, zero.copy())
    yield "some_repeats"
    yield from _searches()


def _searches() -> Iterator[str]:
    """The searches of paths, over one node without edges."""
    first, none = np.zeros(2, np.int32), np.empty(0, np.int32)
    edges = np.zeros((1, 2), np.int64), none
    way = graph_search.SearchGraph(first, none, none, 0, 0, *edges)
    seeds, marks, nothing = np.zeros(1, np.int64), np.zeros(1, np.int32), np.empty(0, np.int64)
    queue, reached = np.zeros(1, np.int64), (np.zeros(1, np.int64), np.zeros(1, np.int64))
    graph_search.reached(way, seeds, nothing, nothing, 0, 0, 1, marks, marks, queue, *reached)
    yield "reached"
    graph_search.met(way, way, seeds, seeds, 0, 1, marks, marks, queue, queue, reached[0])
    yield "met"
    index, low, component = np.zeros((3, 1), np.int32)
    graph_search.components(way, seeds, index, low, component, queue, np.empty((1, 3), np.int64))
    yield "components"
    start, same = np.zeros(3, np.int64), np.zeros(2, np.int64)
    graph_search.spread(start, nothing, start, nothing, seeds, 0, 1, same, same, same, *reached)
    yield "spread"
