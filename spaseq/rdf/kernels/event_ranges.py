"""Rows of quads to events: which rows are one event, and which time is its own.

The rules are the same as in `spaseq.rdf.events.graph_times`, applied to the rows from one named
graph to the next. Findings come out as codes; Python turns them into sentences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, kernel
from spaseq.rdf.kernels.tokenizer import SKIPPED, UNREAD
from spaseq.rdf.kernels.vectors import signed

# Kinds of a finding.
UNTIMED = (
    0  # an event without a readable time: `row` is its first, `detail` that of an unreadable one
)
STRAY = 1  # `detail` triples of the default graph that are no times, from `row` on
ORPHAN = 2  # the time in `row` is that of no neighbouring graph
SECOND = 3  # the time in `row` is that of a neighbour, which has another

TIME_PREDICATE = 0
"""The code of the predicate of times."""

NO_ROW = -1
GIVEN = -2
"""`detail` of an untimed first event whose unreadable time was given."""


class TimestampRows(NamedTuple):
    """The rows with the predicate of times, ascending [t], each one's time, and if it has one."""

    row: Int64s
    ms: Int64s
    readable: Bools


class EventRanges(NamedTuple):
    """n events: their rows and times; f findings, in order; and where the first event begins that
    is left, with the time it has been offered."""

    first: Int64s  # [n]
    end: Int64s  # [n]
    ms: Int64s  # [n]
    kind: Int32s  # [f]
    row: Int64s  # [f]
    detail: Int64s  # [f]
    left: int
    has_time: bool
    time: int
    unreadable: int  # row of a time that could not be read, NO_ROW or GIVEN


@kernel
def named_events(
    g: Int32s,
    s: Int32s,
    times: TimestampRows,
    start: int,
    has_time: bool,
    time: int,
    unreadable: int,
) -> EventRanges:
    """The events from the row `start`, the first of a named graph, to the last named graph.

    That last one is left, because what belongs to it may come later. `has_time`, `time` and
    `unreadable` are what the first event has been offered so far.
    """
    rows = len(g)
    most = 1
    for i in range(start + 1, rows):
        most += g[i] != g[i - 1]
    first, end, ms = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    most = 2 * most + len(times.row)
    kind = np.empty(most, np.int32)
    where, detail = np.empty(most, np.int64), np.empty(most, np.int64)
    waiting = np.empty(len(times.row), np.int64)  # times of the default graph nobody has used
    events, findings = 0, 0
    t = np.searchsorted(times.row, start)
    begun, offered, is_offered, unread = start, time, has_time, unreadable
    at = start
    while True:
        graph = g[at]
        begun, offered, is_offered, unread = at, time, has_time, unreadable
        stop = at + 1
        while stop < rows and g[stop] == graph:
            stop += 1
        while t < len(times.row) and times.row[t] < stop:  # inside the graph
            if s[times.row[t]] == graph and not has_time:
                has_time, time = times.readable[t], times.ms[t]
                if not has_time:
                    unreadable = times.row[t]
            t += 1
        unused, strays, stray = 0, 0, NO_ROW
        next_ = stop
        while next_ < rows and g[next_] < 0:  # between this graph and the next
            if t < len(times.row) and times.row[t] == next_:
                if s[next_] == graph and not has_time:
                    has_time, time = times.readable[t], times.ms[t]
                    if not has_time:
                        unreadable = next_
                else:
                    waiting[unused] = t
                    unused += 1
                t += 1
            else:
                if strays == 0:
                    stray = next_
                strays += 1
            next_ += 1
        if next_ == rows:
            break
        if has_time:
            first[events], end[events], ms[events] = at, stop, time
            events += 1
        else:
            kind[findings], where[findings], detail[findings] = UNTIMED, at, unreadable
            findings += 1
        if strays > 0:
            kind[findings], where[findings], detail[findings] = STRAY, stray, strays
            findings += 1
        following = g[next_]
        before_time, before_has_time = time, has_time
        has_time, time, unreadable = False, 0, NO_ROW
        for i in range(unused):
            w = waiting[i]
            row = times.row[w]
            if s[row] == following and not has_time:
                has_time, time = times.readable[w], times.ms[w]
                if not has_time:
                    unreadable = row
                continue
            is_before, is_following = s[row] == graph, s[row] == following
            if is_before or is_following:
                known = times.readable[w] and (
                    (is_before and before_has_time and before_time == times.ms[w])
                    or (is_following and time == times.ms[w])
                )
                if known:
                    continue
                kind[findings] = SECOND
            else:
                kind[findings] = ORPHAN
            where[findings], detail[findings] = row, NO_ROW
            findings += 1
        at = next_
    return EventRanges(
        first[:events].copy(),
        end[:events].copy(),
        ms[:events].copy(),
        kind[:findings].copy(),
        where[:findings].copy(),
        detail[:findings].copy(),
        begun,
        is_offered,
        offered,
        unread,
    )


@kernel
def sized_events(size: int, rows: int, times: TimestampRows) -> tuple[Int64s, Bools, Int64s]:
    """Times of the events of `size` rows each: (ms [n], whether there is one [n], the last row that
    could not be read [n] or NO_ROW). An event takes the first time that can be read."""
    count = rows // size
    ms, timed = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    unreadable = np.full(count, NO_ROW, np.int64)
    for t in range(len(times.row)):
        event = times.row[t] // size
        if event < count and not timed[event]:
            if times.readable[t]:
                timed[event], ms[event] = True, times.ms[t]
            else:
                unreadable[event] = times.row[t]
    return ms, timed, unreadable


_FEW = 32
"""Rows of an event among which a repeated triple is found by comparing each with each."""


@inlined_device_function
def _key(s: int, p: int, o: int) -> int:
    mixed = (signed(s) * 0x9E3779B1) ^ (signed(p) * 0x85EBCA77) ^ (signed(o) * 0xC2B2AE3D)
    return mixed ^ (mixed >> 29)


@device_function
def _is_in(s: Int32s, p: Int32s, o: Int32s, begin: int, end: int) -> bool:
    """Whether the row `end` has the triple of one from `begin` up to it."""
    for i in range(begin, end):
        if o[i] == o[end] and p[i] == p[end] and s[i] == s[end]:
            return True
    return False


@inlined_device_function
def _capacity(size: int) -> int:
    """How many slots a hash table of some rows has."""
    capacity = 2 * _FEW
    while capacity < 2 * size:
        capacity *= 2
    return capacity


@device_function
def _enters(s: Int32s, p: Int32s, o: Int32s, row: int, slots: Int64s, mask: int) -> bool:
    """Whether a row's triple is not among those entered; it is then."""
    slot = _key(s[row], p[row], o[row]) & mask
    while slots[slot] >= 0:
        other = slots[slot]
        if o[other] == o[row] and p[other] == p[row] and s[other] == s[row]:
            return False
        slot = (slot + 1) & mask
    slots[slot] = row
    return True


@kernel
def event_rows(
    first: Int64s, end: Int64s, s: Int32s, p: Int32s, o: Int32s, skip_time: bool
) -> tuple[Int64s, Int32s, Int32s, Int32s, int]:
    """(start, s, p, o, skipped): the rows of n events one after the other, each triple once.

    `start` [n + 1] is where each event begins. Rows that could not be read are left out, and so are
    skipped ones (with `skip_time` those of the predicate of times, too), which are counted.
    """
    most, largest = 0, 0
    for i in range(len(first)):
        most += end[i] - first[i]
        largest = max(largest, end[i] - first[i])
    slots = np.empty(_capacity(largest) if largest > _FEW else 0, np.int64)
    start = np.zeros(len(first) + 1, np.int64)
    own_s, own_p, own_o = (
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
    )
    kept, skipped = 0, 0
    for i in range(len(first)):
        size = end[i] - first[i]
        mask = _capacity(size) - 1
        if size > _FEW:
            slots[: mask + 1] = -1
        begin, seen = kept, 0  # bits of the triples' hashes
        for row in range(first[i], end[i]):
            if s[row] == UNREAD:
                continue
            if o[row] == SKIPPED or (skip_time and p[row] == TIME_PREDICATE):
                skipped += 1
                continue
            own_s[kept], own_p[kept], own_o[kept] = s[row], p[row], o[row]
            if size > _FEW:
                kept += _enters(own_s, own_p, own_o, kept, slots, mask)
                continue
            bit = 1 << (_key(s[row], p[row], o[row]) & 63)
            if seen & bit == 0 or not _is_in(own_s, own_p, own_o, begin, kept):
                kept += 1
            seen |= bit
        start[i + 1] = kept
    return start, own_s[:kept], own_p[:kept], own_o[:kept], skipped
