"""Triples of one predicate that come and go at places among the rows of a batch.

A triple is a key: one end's code, below 2^31, before the other's in 64 bits.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.compiled.decorators import inlined_device_function, kernel, lean_kernel

FOR_EVER = 2**62
"""The end of intervals that hold at the end."""

_BITS = 32
_U = np.uint64
_MIX, _HALF = _U(0x9E3779B97F4A7C15), _U(32)


@inlined_device_function
def _first_at(keys: Int64s, wanted: int) -> int:
    """The place of the first of some ascending keys that is `wanted` or more.

    Codes are dense, so a search begins where the key stands if keys are spread evenly, with steps
    that double (Bentley and Yao, Information Processing Letters 5:3, 1976).
    """
    last = len(keys) - 1
    if last < 0 or wanted <= keys[0]:
        return 0
    if wanted > keys[last]:
        return last + 1
    low = int((wanted - keys[0]) / (keys[last] - keys[0]) * last)
    high, step = low, 1
    while keys[low] >= wanted:
        low, high, step = max(low - step, 0), low, 2 * step
    while keys[high] < wanted:
        low, high, step = high, min(high + step, last), 2 * step
    while low + 1 < high:
        middle = (low + high) >> 1
        if keys[middle] < wanted:
            low = middle
        else:
            high = middle
    return high


@inlined_device_function
def _slot(key: int, keys: Int64s, slots: Int64s) -> int:
    """The slot of a key in a hash table with linear probing, or the empty one for it.

    Args:
        keys: the keys by number.
        slots: [2^i] the number of the key in each slot, or -1; some are.
    """
    mask = len(slots) - 1
    slot = int(_U(np.int64(key)) * _MIX >> _HALF) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@inlined_device_function
def _size(keys: int) -> int:
    """The number of slots for some keys."""
    size = 4
    while size < 2 * keys:
        size *= 2
    return size


@kernel
def numbered(keys: Int64s) -> Int64s:
    """[n] the number of each key among the distinct ones, by first appearance."""
    slots, number = np.full(_size(len(keys)), -1, np.int64), np.empty(len(keys), np.int64)
    known, count = np.empty(len(keys), np.int64), 0
    for i in range(len(keys)):
        slot = _slot(keys[i], known, slots)
        if slots[slot] < 0:
            slots[slot] = count
            known[count] = keys[i]
            count += 1
        number[i] = slots[slot]
    return number


@kernel
def stable_order(keys: Int64s) -> Int64s:
    """[n] the order of keys, none of which is negative; equal ones stay as they are.

    A radix sort by digits of 11 bits, from the lowest one on. Digits that all keys share are left
    out.
    """
    n, digits = len(keys), 2048
    order, other = np.arange(n), np.empty(n, np.int64)
    differing = 0
    for i in range(1, n):
        differing |= keys[i] ^ keys[0]
    for shift in range(0, 63, 11):
        if not (differing >> shift) & (digits - 1):
            continue
        begin = np.zeros(digits + 1, np.int64)
        for i in range(n):
            begin[((keys[i] >> shift) & (digits - 1)) + 1] += 1
        for digit in range(digits):
            begin[digit + 1] += begin[digit]
        for i in range(n):
            digit = (keys[order[i]] >> shift) & (digits - 1)
            other[begin[digit]] = order[i]
            begin[digit] += 1
        order, other = other, order
    return order


@kernel
def crowded(place: Int64s, pair: Int64s, comes: Bools, alone: Bools, most: int) -> Int64s:
    """The places of changes that are made by themselves, ascending.

    Between two of them at most `most` triples of a pair come.

    Args:
        place: [n] of each change; ascends.
        pair: [n] the number, below n, of its subject and predicate.
        comes: [n] whether it adds a triple.
        alone: [n] whether it has to be made by itself.
    """
    found, count = np.empty(len(place), np.int64), 0
    made, since = np.zeros(len(place), np.int64), np.zeros(len(place), np.int64)
    for i in range(len(place)):
        if count and found[count - 1] == place[i]:
            continue
        own = pair[i]
        if since[own] != count:
            since[own], made[own] = count, 0
        if alone[i] or (comes[i] and made[own] >= most):
            found[count] = place[i]
            count += 1
        elif comes[i]:
            made[own] += 1
    return found[:count]


@kernel
def intervals(
    known: Int64s, s: Int64s, o: Int64s, comes: Bools, place: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """The times of the triples that n changes concern, in order: each change sees those before.

    Args:
        known: [m] the triples that hold at the start, as keys; ascend.
        s, o: [n] the codes of each change; o is -1 if all triples of the subject go.
        comes: [n] whether the triple comes or goes.
        place: [n] the position of the change; ascends.

    Returns:
        keys, since and until of each interval: positions, -1 for triples that held at the start,
            and 2^62 for triples that hold at the end. Intervals of one triple ascend and do not
            overlap.
    """
    n = len(s)
    subjects, count = np.empty(n, np.int64), 0
    subject, slots = np.empty(n, np.int64), np.full(_size(n), -1, np.int64)
    room, whole = 0, np.zeros(n, np.int64)  # of a subject, the number of its known triples + 1
    for i in range(n):
        slot = _slot(s[i], subjects, slots)
        if slots[slot] < 0:
            slots[slot] = count
            subjects[count] = s[i]
            count += 1
        own = subject[i] = slots[slot]
        if not comes[i] and o[i] < 0 and not whole[own]:
            begin = end = _first_at(known, s[i] << _BITS)
            while end < len(known) and known[end] >> _BITS == s[i]:
                end += 1
            whole[own] = end - begin + 1
            room += end - begin
        elif comes[i] or o[i] >= 0:
            room += 1
    keys, since = np.empty(room, np.int64), np.empty(room, np.int64)
    until, before = np.full(room, FOR_EVER, np.int64), np.empty(room, np.int64)
    latest = np.full(_size(room), -1, np.int64)  # interval of each triple
    last, made = np.full(n, -1, np.int64), 0  # interval of each subject
    is_read = np.zeros(n, np.bool_)  # whether all known triples of a subject have intervals
    for i in range(n):
        own, is_wild = subject[i], not comes[i] and o[i] < 0
        begin = end = 0
        if is_wild:
            if not is_read[own]:
                begin = _first_at(known, s[i] << _BITS)
                end = begin + whole[own] - 1
                is_read[own] = True
        elif not is_read[own]:
            begin = end = _first_at(known, s[i] << _BITS | o[i])
            if end < len(known) and known[end] == s[i] << _BITS | o[i]:
                end += 1
        for at in range(begin, end):
            slot = _slot(known[at], keys, latest)
            if latest[slot] < 0:
                latest[slot] = made
                keys[made], since[made], before[made] = known[at], -1, last[own]
                last[own] = made
                made += 1
        if is_wild:
            held = last[own]
            while held >= 0:
                until[held] = min(until[held], place[i])
                held = before[held]
            last[own] = -1
            continue
        key = s[i] << _BITS | o[i]
        slot = _slot(key, keys, latest)
        held = latest[slot]
        if held >= 0 and until[held] == FOR_EVER:
            if not comes[i]:
                until[held] = place[i]
        elif comes[i]:
            latest[slot] = made
            keys[made], since[made], before[made] = key, place[i], last[own]
            last[own] = made
            made += 1
    return keys[:made], since[:made], until[:made]


@lean_kernel
def holding(
    known: Int64s,
    keys: Int64s,
    since: Int64s,
    until: Int64s,
    lowest: Int64s,
    width: int,
    at: Int64s,
    most: int,
    rows: Int64s,
    found: Int64s,
) -> int:
    """Find the triples that hold at the positions of n rows.

    Args:
        known: the triples that hold at the start, as keys; ascend.
        keys, since, until: triples that come or go, by key and time, from `intervals`.
        lowest: [n] the first key of a row's look-up.
        width: the number of keys from there on.
        at: [n] the position of each row.
        most: maximum number of triples counted.
        rows, found: [room] output, the row and the key of each triple, while there is room.

    Returns:
        the number of triples.
    """
    total = 0
    for i in range(len(at)):
        low, end = lowest[i], lowest[i] + width
        first = timed = _first_at(keys, low)
        place = _first_at(known, low)
        while place < len(known) and known[place] < end:
            while timed < len(keys) and keys[timed] < known[place]:
                timed += 1
            if timed == len(keys) or keys[timed] != known[place]:
                if total < len(rows):
                    rows[total], found[total] = i, known[place]
                total += 1
                if total > most:
                    return total
            place += 1
        timed = first
        while timed < len(keys) and keys[timed] < end:
            if since[timed] <= at[i] < until[timed]:
                if total < len(rows):
                    rows[total], found[total] = i, keys[timed]
                total += 1
                if total > most:
                    return total
            timed += 1
    return total
