"""From rows of quads to events: the rows and the time of each event, and the numbering of equal
times.

The rules are the same as in `spaseq.rdf.events.graph_times`, applied to the rows from one named
graph to the next. Findings come out as codes; Python turns them into sentences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, kernel, lean_kernel
from spaseq.rdf.kernels.lines import SKIPPED, UNREAD
from spaseq.rdf.kernels.vectors import signed

# Kinds of findings. UNTIMED: the event from `row` on has no readable time; `detail` is the row of
# an unreadable one. STRAY: from `row` on there are `detail` triples of the default graph other than
# timestamps. ORPHAN: the timestamp in `row` belongs to no neighbouring graph. SECOND: it belongs to
# a neighbouring graph that has another time.
UNTIMED, STRAY, ORPHAN, SECOND = 0, 1, 2, 3

TIME_PREDICATE = 0
"""The code of the time predicate."""

NO_ROW = -1
GIVEN = -2
"""`detail` of an untimed first event whose unreadable time came from an earlier chunk."""


class TimestampRows(NamedTuple):
    """The t rows with the time predicate, ascending; their times (ms); which are readable."""

    row: Int64s
    ms: Int64s
    readable: Bools


class EventRanges(NamedTuple):
    """n complete events, f findings in order, and the last event, which is still open.

    Event i has the rows first[i]:end[i] and the time ms[i]. The open event begins at row `left`;
    `has_time`, `time` and `unreadable` are its time so far.
    """

    first: Int64s  # [n]
    end: Int64s  # [n]
    ms: Int64s  # [n]
    kind: Int32s  # [f]
    row: Int64s  # [f]
    detail: Int64s  # [f]
    left: int
    has_time: bool
    time: int
    unreadable: int  # row of an unreadable time, NO_ROW or GIVEN


@kernel
def named_events(
    g: Int32s,
    s: Int32s,
    times: TimestampRows,
    start: int,
    has_time: bool,
    time: int,
    unreadable: int,
    default: tuple[bool, int],
) -> EventRanges:
    """The events from row `start`, where a named graph begins, to the last named graph.

    `g` and `s` int32 [m] are graph and subject codes. The last event stays open, as its time may
    follow later. `has_time`, `time` and `unreadable` are the time of the first event so far.
    `default` is the time (ms) of events without one, and whether there is one.
    """
    rows = len(g)
    most = 1
    for i in range(start + 1, rows):
        most += g[i] != g[i - 1]
    first, end, ms = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    most = 2 * most + len(times.row)
    kind = np.empty(most, np.int32)
    where, detail = np.empty(most, np.int64), np.empty(most, np.int64)
    waiting = np.empty(len(times.row), np.int64)  # unused timestamps of the default graph
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
        if default[0] and not has_time and unreadable == NO_ROW:
            has_time, time = default
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
    """Times of n events of `size` rows each. An event takes its first readable time.

    Returns (times [n] in ms, whether there is a time [n], row of the last unreadable time or
    NO_ROW [n]).
    """
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
"""In events of at most this number of rows, repeated triples are found by pairwise comparison."""


@inlined_device_function
def _key(s: int, p: int, o: int) -> int:
    mixed = (signed(s) * 0x9E3779B1) ^ (signed(p) * 0x85EBCA77) ^ (signed(o) * 0xC2B2AE3D)
    return mixed ^ (mixed >> 29)


@device_function
def _is_in(s: Int32s, p: Int32s, o: Int32s, begin: int, end: int) -> bool:
    """Whether row `end` repeats the triple of a row in begin:end."""
    for i in range(begin, end):
        if o[i] == o[end] and p[i] == p[end] and s[i] == s[end]:
            return True
    return False


@inlined_device_function
def _capacity(size: int) -> int:
    """The number of slots of a hash table for `size` rows."""
    capacity = 2 * _FEW
    while capacity < 2 * size:
        capacity *= 2
    return capacity


@device_function
def _enters(s: Int32s, p: Int32s, o: Int32s, row: int, slots: Int64s, mask: int) -> bool:
    """Add a row's triple to the hash table; return False if it is there already."""
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
    """(start, s, p, o, skipped): the distinct triples of n events, event after event.

    Event i has the rows first[i]:end[i] of the columns `s`, `p`, `o` int32 [m], and the triples
    start[i]:start[i + 1] of the result. UNREAD rows are left out. SKIPPED rows are left out and
    counted; with `skip_time` also the rows with the time predicate.
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
        begin, seen = kept, 0  # a Bloom filter of 64 bits
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


@lean_kernel
def equal_times(times: Int64s, before: int, k: Int32s, distinct: Int64s, counts: Int64s) -> int:
    """The number of distinct times; 0 if a time is less than the one before.

    Args:
        times: int64 [n], n > 0.
        before: how many earlier events have the first time.
        k: int32 [n]: the number of earlier events with the same time.
        distinct: int64 [n]: the distinct times.
        counts: int64 [n]: the events at each of them.
    """
    last = times[0]
    size, own, number = 0, 0, before
    for i in range(len(times)):
        time = times[i]
        if time < last:
            return 0
        if time > last:
            distinct[size], counts[size] = last, own
            size, own, number, last = size + 1, 0, 0, time
        k[i] = number
        own += 1
        number += 1
    distinct[size], counts[size] = last, own
    return size + 1
