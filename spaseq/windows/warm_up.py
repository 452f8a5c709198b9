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
from spaseq.windows.kernels.window_bounds import (
    PLACES,
    linked,
    sessions,
    sizes_of_windows,
    windows_of_events,
)


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    none, some = np.empty(0, np.int64), np.empty((1, 0), np.int64)
    small, parts = np.empty((1, 0), np.int8), np.empty(0, np.int32)
    lists = np.full((PLACES, 1), -1, np.int64)
    out = np.empty((1, 5), np.int64), np.empty((1, 2, WIDTH), np.int64), np.empty((1, 0), np.int64)
    advanced(
        0,
        lists,
        (none, none, none),
        0,
        (none, none),
        False,
        (parts, none, none),
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
    found = np.empty((6, 0), np.int64)
    windows_of_events(lists, none, 0, 0, 0, (none, parts, none, none), found)
    yield "windows_of_events"
    sessions(lists, none, 0, 0, 0, 0, (none, parts), found)
    yield "sessions"
    linked(lists, 0, 0, 0, parts, none, none)
    yield "linked"
    sizes_of_windows(lists, 0, none, none, none, none, none, none)
    yield "sizes_of_windows"
    digits_of_doubles(none, none, np.empty(0, np.int16), np.empty(0, np.bool_))
    yield "digits_of_doubles"
    _warm_joins()
    yield "joined"


def _warm_joins() -> None:
    none = np.empty(0, np.int64)
    lists = np.empty((2, 0), np.int64)
    joined(
        np.zeros(3, np.int64),
        0,
        np.full((PLACES, 1), -1, np.int64),
        (none, none, none),
        0,
        (np.empty(0, np.int8), np.empty((1, 0), np.int32), np.empty((1, 0), np.int64), none),
        (lists, lists.copy()),
        (np.zeros((1, 2), np.int64), np.zeros((2, 1, 4), np.int64)),
        (np.zeros(2, np.int64), np.zeros(2, np.int64)),
        (none, np.empty((0, 2), np.int64)),
    )
