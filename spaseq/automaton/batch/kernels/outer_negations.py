"""Negated steps that are checked on matches: their solutions by slot, and the check."""

from __future__ import annotations

from spaseq.automaton.batch.kernels.comparisons import holds
from spaseq.compiled.arrays import Bytes, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import inlined_device_function, lean_kernel

NONE = -1

# Columns of `found`, by solution of the negated GPM: its time (ms), its row, its slot, and the ids
# of the solutions before and after it in that slot. Ids count all solutions so far; `base` is the
# id of the first one that is kept.
TIME, ROW, SLOT, PREVIOUS, FOLLOWING = range(5)
FOUND_COLUMNS = 5

# Columns of `places`, by slot: the ids of its oldest kept solution and of its latest one; below
# `base` where there is none.
OLDEST, LATEST = range(2)

# Columns of `test`: a comparison of LEFT, which is a number of the solution, or ~i for number i of
# the match, with number RIGHT of the match.
OPERATOR, LEFT, RIGHT = range(3)


@lean_kernel
def note_rows(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    number: int,
    negated: int,
    places: Int64s,
    found: Int64s,
    base: int,
    following: int,
    before: Int64s,
    after: Int64s,
) -> int:
    """Add the solutions of a negated GPM, and record for each row the solutions around it.

    Args:
        slot, gpm, time_ms, k, number: the columns of `OrderedRows`.
        negated: the negated GPM.
        places: [slots, 2]; found: [N, FOUND_COLUMNS] with room for all of them. See their columns.
        base, following: the ids of the first solution in `found` and of the next one.
        before, after: [n] written: the id of the latest solution before the row's instant, and up
            to that instant; below `base` if there is none.

    Returns: the id of the next solution.
    """
    n, first = len(slot), 0
    while first < n:
        here, now, end = slot[first], time_ms[first], first + 1
        while end < n and slot[end] == here and time_ms[end] == now and k[end] == k[first]:
            end += 1
        latest = places[here, LATEST]
        for row in range(first, end):
            before[row] = latest
        for row in range(first, end):
            if gpm[row] == negated:
                at = following - base
                found[at, TIME], found[at, ROW], found[at, SLOT] = time_ms[row], number + row, here
                found[at, PREVIOUS], found[at, FOLLOWING] = latest, NONE
                if latest >= base:
                    found[latest - base, FOLLOWING] = following
                if places[here, OLDEST] < base:
                    places[here, OLDEST] = following
                latest = following
                following += 1
        places[here, LATEST] = latest
        for row in range(first, end):
            after[row] = latest
        first = end
    return following


@inlined_device_function
def _passes(test: Int32s, own: Float64s, at: int, matched: Float64s, i: int) -> bool:
    """Whether a solution passes all tests against a match."""
    for t in range(test.shape[0]):
        left = test[t, LEFT]
        value = own[left, at] if left >= 0 else matched[~left, i]
        if not holds(test[t, OPERATOR], value, matched[test[t, RIGHT], i]):
            return False
    return True


@lean_kernel
def drop_violated(
    pointer: Int64s,
    slot: Int64s,
    bound: Int64s,
    since: Int64s,
    is_last: bool,
    places: Int64s,
    found: Int64s,
    base: int,
    test: Int32s,
    own: Float64s,
    matched: Float64s,
    kept: Bytes,
) -> None:
    """Write 0 for the matches beside which a negated step matches.

    Args:
        pointer: [m] the beginning of the check: `before` of the row behind the step, or for a step
            in last place `after` of the last row. See `note_rows`.
        slot: [m].
        since: [m] the check ends at this solution; below `base` if at none. It is `after` of the
            row in front of a step between two steps.
        bound: [m] the earliest time (ms) of a solution in the window; for a step in last place the
            latest one.
        is_last, places, found, base: as `note_rows` takes them.
        test: [tests, 3] see its columns.
        own: [numbers, N] the numbers of each solution; matched: [numbers, m] of each match.
        kept: [m] written.
    """
    for i in range(len(pointer)):
        x = pointer[i]
        if is_last:
            x = found[x - base, FOLLOWING] if x >= base else places[slot[i], OLDEST]
            while x >= base and found[x - base, TIME] <= bound[i]:
                if _passes(test, own, x - base, matched, i):
                    kept[i] = 0
                    break
                x = found[x - base, FOLLOWING]
        else:
            while x >= base and x > since[i] and found[x - base, TIME] >= bound[i]:
                if _passes(test, own, x - base, matched, i):
                    kept[i] = 0
                    break
                x = found[x - base, PREVIOUS]
