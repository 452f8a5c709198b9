"""Warm-up of the graph pattern kernels: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.gpm.kernels.bgp_interpreter import frequencies, solutions


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    column = np.zeros(1, np.int32)
    terms, modes = np.zeros((1, 3), np.int32), np.zeros((1, 3), np.int8)
    start, event, rows = np.array([0, 1]), np.zeros(1, np.int64), np.zeros((1, 1), np.int32)
    solutions(start, column, column, column, terms, modes, 0, 0, 1, event, rows)
    yield "solutions"
    frequencies(column, column, column, terms, modes)
    yield "frequencies"
