"""Solutions of tables: pairs by key and comparison, and several of one member."""

from __future__ import annotations

from spaseq.compiled.arrays import Float64s, Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel


@lean_kernel
def some_repeats(event: Int64s, member: Int32s, last: Int64s) -> bool:
    """Whether a member has several solutions on an event.

    Args:
        event: [n] the event of each solution, not negative; equal ones stand together.
        member: [n] the number of the member of each solution.
        last: [members] scratch, -1.
    """
    for i in range(len(event)):
        if last[member[i]] == event[i]:
            return True
        last[member[i]] = event[i]
    return False


@lean_kernel
def ranges(
    key: Int64s,
    value: Float64s,
    starts: Int64s,
    bounds: Float64s,
    is_upper: bool,
    includes: bool,
    low: Int64s,
    count: Int64s,
) -> int:
    """Find the rows whose bounds a value meets; returns the number of pairs.

    Args:
        key: [n] the key of each solution.
        value: [n] its number.
        starts: [keys + 1] the start of the rows of each key.
        bounds: [rows] the bounds, ascending for each key.
        is_upper: whether values must be less than bounds, not greater.
        includes: whether values may equal bounds.
        low: [n] output, the first row.
        count: [n] output, the number of rows.
    """
    total = 0
    for i in range(len(key)):
        first, end = starts[key[i]], starts[key[i] + 1]
        begin, after = first, end
        while begin < after:  # the rows before `begin` have smaller bounds, or equal ones
            middle = (begin + after) // 2
            if bounds[middle] < value[i] or (bounds[middle] == value[i] and is_upper != includes):
                begin = middle + 1
            else:
                after = middle
        low[i] = begin if is_upper else first
        count[i] = end - begin if is_upper else begin - first
        total += count[i]
    return total


@lean_kernel
def pairs(low: Int64s, count: Int64s, order: Int64s, rows: Int64s, others: Int64s) -> None:
    """Write the pairs that `ranges` has found, by solution.

    Args:
        low, count: [n] the rows of each solution.
        order: [rows] the row of the table at each place.
        rows: [pairs] output, the solution.
        others: [pairs] output, the row of the table.
    """
    at = 0
    for i in range(len(low)):
        for place in range(low[i], low[i] + count[i]):
            rows[at], others[at] = i, order[place]
            at += 1
