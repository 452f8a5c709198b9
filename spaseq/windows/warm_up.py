"""Warm-up of the kernels of windows: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.windows.kernels.group_runs import (
    LIMBS,
    WIDTH,
    advanced,
    digits_of_doubles,
    quotients,
    rows_of_groups,
)
from spaseq.windows.kernels.joined_rows import joined
from spaseq.windows.kernels.window_bounds import windows_of_events


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    none, some = np.empty(0, np.int64), np.empty((1, 0), np.int64)
    rows = np.empty(0, np.int32), none
    small = np.empty((1, 0), np.int8)
    out = np.empty((1, 5), np.int64), np.empty((1, 2, WIDTH), np.int64), np.empty((1, 0), np.int64)
    advanced(
        np.zeros(3, np.int64),
        none,
        none,
        0,
        0,
        False,
        rows,
        (small, some, np.empty((1, 0), np.int16), np.empty((1, 0))),
        (np.empty((0, 2), np.int64), some.copy(), some.copy(), some.copy()),
        (np.zeros(1, np.int64), some.copy(), small.copy()),
        (np.zeros((1, 4), np.int64), np.zeros((2, 1, WIDTH), np.int64), np.zeros(1, np.int8)),
        (np.empty((0, 3), np.int64), np.empty(0)),
        np.zeros(1, np.int64),
        out,
    )
    yield "advanced"
    quotients(
        np.zeros((1, LIMBS), np.int64),
        np.ones(1, np.int64),
        np.empty(1),
        np.zeros(LIMBS + 3, np.int64),
    )
    yield "quotients"
    rows_of_groups(none, none, 0, none, none)
    yield "rows_of_groups"
    windows_of_events(none, np.empty(0, np.bool_), 0, 0, 0, 0, 0, np.empty((5, 0), np.int64))
    yield "windows_of_events"
    digits_of_doubles(none, none, np.empty(0, np.int16), np.empty(0, np.bool_))
    yield "digits_of_doubles"
    _warm_joins()
    yield "joined"


def _warm_joins() -> None:
    none = np.empty(0, np.int64)
    lists = np.empty((2, 0), np.int64)
    joined(
        np.zeros(5, np.int64),
        0,
        none,
        none,
        0,
        (np.empty(0, np.int8), np.empty((1, 0), np.int32), np.empty((1, 0), np.int64)),
        (lists, lists.copy()),
        (np.zeros((1, 2), np.int64), np.zeros((2, 1, 4), np.int64)),
        (np.zeros(2, np.int64), np.zeros(2, np.int64)),
        (none, np.empty((0, 2), np.int64)),
    )
