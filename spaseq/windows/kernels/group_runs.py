"""Rows enter and leave the groups of a window; the output has the changed groups.

A number is m * 2**(shift - SCALE) with a whole m below 2**60. Its group adds it to a sum of whole
multiples of 2**-SCALE, in LIMBS digits of 32 bits. An int64 holds each digit, so carries wait until
the sum is read: rows add and leave exactly, in any order. This is the small superaccumulator of
Neal (arXiv:1505.05571), for the exponents of measurements. Decimals have a separate sum, of whole
multiples of 10**-PLACES. Numbers beyond count as OTHER.
"""

from __future__ import annotations

from typing import Final

from spaseq.compiled.arrays import Bools, Float64s, Int8s, Int16s, Int32s, Int64s
from spaseq.compiled.decorators import (
    device_function,
    inlined_device_function,
    lean_kernel,
)
from spaseq.windows.kernels.window_bounds import FIRST, LOOK, WAIT

LIMBS: Final = 6
"""Digits of a sum."""

BOTH: Final = 2 * LIMBS
"""Digits of both sums: that of integers and doubles, then that of decimals."""

PLACES: Final = 9
"""Decimal places of a sum of decimals."""

DIGIT: Final = 32
MASK: Final = 0xFFFFFFFF

SCALE: Final = 100
"""The unit of a sum is 2**-SCALE."""

NONE: Final = 0
"""The operand has no value."""
WHOLE: Final = 1
"""An xsd:integer."""
DOUBLE: Final = 2
"""An xsd:double."""
DECIMAL: Final = 3
"""An xsd:decimal; its m is a multiple of 10**-PLACES."""
OTHER: Final = 4
"""Any other term, and numbers that a sum has no room for."""

KINDS: Final = OTHER + 1
WIDTH: Final = BOTH + KINDS
"""Numbers that a group has for each operand: digits of sums, then the rows by kind."""

MEMBERS: Final = 0
"""Columns of a group: its rows, the numbers of its first and last row, and a mark."""
HEAD: Final = 1
TAIL: Final = 2
MARK: Final = 3

COUNT: Final = 0
"""Aggregate of a test: the number of rows."""
VALUES: Final = 1
"""The number of rows with a value."""
SUM: Final = 2
AVERAGE: Final = 3
EXTREME: Final = 4
"""The value at the front of a queue."""
DISTINCT: Final = 5
"""The number of distinct terms; its operand is that of their sum."""

NO_TERM: Final = -2
"""The twin of a row without a term to count."""

_EXPONENT: Final = 1075 - SCALE
"""The exponent in the bits of a double whose shift is 0."""

_LAST_SHIFT: Final = DIGIT * LIMBS - 1 - 31 - 53
"""A sum of 2**31 rows with at most this shift stays below 2**(DIGIT * LIMBS - 1)."""

_HALF: Final = 1 << (DIGIT - 1)

_SAFE: Final = 1e-12
"""Approximations are nearer than this to their values, relatively."""


@lean_kernel
def advanced(
    mark: int,
    lists: Int64s,
    closes: tuple[Int64s, Int64s, Int64s],
    base: int,
    visits: tuple[Int64s, Int64s],
    keyless: bool,
    rows: tuple[Int32s, Int64s, Int64s],
    values: tuple[Int8s, Int64s, Int16s, Float64s],
    queues: tuple[Int64s, Int64s, Int64s, Int64s],
    twins: tuple[Int64s, Int64s, Int8s],
    groups: tuple[Int64s, Int64s, Int8s],
    tests: tuple[Int64s, Float64s],
    touched: Int64s,
    out: tuple[Int64s, Int64s, Int64s],
) -> int:
    """The number of groups that changed at some window events.

    MIN and MAX go by queues: rows that may become the least value of their group, in order, each
    with a value below those behind it. A row that enters takes the place of the greater ones.
    COUNT, SUM and AVG of DISTINCT go by twins: the row before with the same group and term. They
    have a sum of the rows whose twin is not in the window.

    Args:
        mark: numbers of window events begin here. Each call begins after the last one's.
        lists: int64 [PLACES, p], the rows of partitions (`window_bounds`). They move.
        closes: (partition, enter, leave) int64 [t]: rows of the partition before these have
            entered, and left, at each window event.
        base: the absolute number of the row at place 0 of `rows`.
        visits: (groups int64 [g], starts int64 [p + 1]): the groups of each partition in a row, for
            those whose groups are all visited.
        keyless: whether a partition has one group, with its number, which is there without rows,
            too. It is visited at the first window event.
        rows: (group int32 [n], -1 for none; next row of the group int64 [n], absolute; next row of
            the partition int64 [n]).
        values: (kind int8, m int64, shift int16, float64), each [operands, n].
        queues: ((operand, sign) int64 [q, 2], sign -1 for the greatest; (front, back) int64
            [g, 2 * q]; rows behind and before each int64 [q, n]); absolute numbers plus 1, 0 for
            none.
        twins: (operand int64 [d]; twin int64 [d, n], -1 for none; whether a row is the twin of one
            that has entered int8 [d, n]).
        groups: (MEMBERS, HEAD, TAIL, MARK int64 [g, 4]; WIDTH numbers int64 [operands + d, g,
            WIDTH], those of distinct terms last; whether a group was given out int8 [g]).
        tests: (aggregate, operand, comparison) int64 [c, 3] and constants float64 [c]; a group that
            surely fails one is given out only if it was before. The operand of EXTREME is a queue.
        touched: int64 [g]: room to work in.
        out: (event, group, rows, head, whether it may pass) int64 [m, 5], its numbers int64
            [m, operands + d, WIDTH], and int64 [m, q] its fronts.
    """
    group_of, following, behind = rows
    operands = len(values[0])
    counts, numbers, held = groups
    partition, enter, leave = closes
    made = 0
    for event in range(len(enter)):
        p = partition[event]
        mark += 1
        count = 0
        if keyless and lists[LOOK, p] != 0:
            counts[p, MARK] = mark
            touched[0] = p
            count = 1
        elif lists[LOOK, p] > 0:
            for i in range(visits[1][p], visits[1][p + 1]):
                group = visits[0][i]
                counts[group, MARK] = mark
                touched[count] = group
                count += 1
        lists[LOOK, p] = 0
        head, wait = lists[FIRST, p], lists[WAIT, p]
        while head >= 0 and head < leave[event]:
            place = head - base
            entered = head != wait
            head = behind[place]
            if not entered:
                wait = head
                continue
            group = group_of[place]
            if group < 0:
                continue
            counts[group, MEMBERS] -= 1
            counts[group, HEAD] = following[place]
            for operand in range(operands):
                _count(values[0], values[1], values[2], numbers, operand, operand, place, group, -1)
            _leave_queues(queues[0], queues[1], queues[2], queues[3], base, place, group)
            for own in range(len(twins[0])):
                if twins[1][own, place] != NO_TERM and twins[2][own, place] == 0:
                    _count(
                        values[0], values[1], values[2], numbers, twins[0][own], operands + own,
                        place, group, -1,
                    )  # fmt: skip
            if counts[group, MARK] != mark:
                counts[group, MARK] = mark
                touched[count] = group
                count += 1
        lists[FIRST, p] = head
        while wait >= 0 and wait < enter[event]:
            row, place = wait, wait - base
            group = group_of[place]
            wait = behind[place]
            if group < 0:
                continue
            if counts[group, MEMBERS] == 0:
                counts[group, HEAD] = row
            else:
                following[counts[group, TAIL] - base] = row
            counts[group, TAIL] = row
            counts[group, MEMBERS] += 1
            for operand in range(operands):
                _count(values[0], values[1], values[2], numbers, operand, operand, place, group, 1)
            _enter_queues(
                queues[0], queues[1], queues[2], queues[3], values[0], values[3], base, place, group
            )
            for own in range(len(twins[0])):
                twin = twins[1][own, place]
                twins[2][own, place] = 0
                if twin >= head:
                    twins[2][own, twin - base] = 1
                elif twin != NO_TERM:
                    _count(
                        values[0], values[1], values[2], numbers, twins[0][own], operands + own,
                        place, group, 1,
                    )  # fmt: skip
            if counts[group, MARK] != mark:
                counts[group, MARK] = mark
                touched[count] = group
                count += 1
        lists[WAIT, p] = wait
        for i in range(count):
            group = touched[i]
            passes = keyless or counts[group, MEMBERS] > 0
            if passes and not _may_pass(
                tests[0], tests[1], counts[group, MEMBERS], numbers, queues[0], queues[1],
                values[3], base, group,
            ):  # fmt: skip
                passes = False
            if passes or held[group]:
                held[group] = 1 if passes else 0
                out[0][made, 0], out[0][made, 1] = event, group
                out[0][made, 2], out[0][made, 3] = counts[group, MEMBERS], counts[group, HEAD]
                out[0][made, 4] = 1 if passes else 0
                for operand in range(len(numbers)):
                    for place in range(WIDTH):
                        out[1][made, operand, place] = numbers[operand, group, place]
                for queue in range(len(queues[0])):
                    out[2][made, queue] = queues[1][group, 2 * queue] - 1
                made += 1
    return made


@inlined_device_function
def _count(
    kinds: Int8s,
    whole: Int64s,
    shifts: Int16s,
    numbers: Int64s,
    operand: int,
    to: int,
    place: int,
    group: int,
    sign: int,
) -> None:
    """Add an operand of a row to a sum of its group, or with sign -1 take it away."""
    kind = kinds[operand, place]
    digits = numbers[to, group]
    digits[BOTH + kind] += sign
    if kind != NONE and kind != OTHER:
        m = whole[operand, place] * sign
        limb, bits = shifts[operand, place] >> 5, shifts[operand, place] & 31
        if kind == DECIMAL:
            limb += LIMBS
        low, high = (m & MASK) << bits, (m >> DIGIT) << bits
        digits[limb] += low & MASK
        digits[limb + 1] += (low >> DIGIT) + (high & MASK)
        digits[limb + 2] += high >> DIGIT


@inlined_device_function
def _enter_queues(
    ways: Int64s,
    ends: Int64s,
    after: Int64s,
    before: Int64s,
    kinds: Int8s,
    values: Float64s,
    base: int,
    place: int,
    group: int,
) -> None:
    """Put a row behind the rows of its group's queues that have lesser values.

    Equal values of two kinds have two terms, so both stay.
    """
    for queue in range(len(ways)):
        operand, sign = ways[queue, 0], ways[queue, 1]
        kind = kinds[operand, place]
        if kind == NONE or kind == OTHER:
            continue
        value = sign * values[operand, place]
        back = ends[group, 2 * queue + 1]
        while back > 0:
            other = back - 1 - base
            known = sign * values[operand, other]
            if known < value or (known == value and kinds[operand, other] != kind):
                break
            back = before[queue, other]
        row = place + base + 1
        before[queue, place], after[queue, place] = back, 0
        if back > 0:
            after[queue, back - 1 - base] = row
        else:
            ends[group, 2 * queue] = row
        ends[group, 2 * queue + 1] = row


@inlined_device_function
def _leave_queues(
    ways: Int64s,
    ends: Int64s,
    after: Int64s,
    before: Int64s,
    base: int,
    place: int,
    group: int,
) -> None:
    """Take a row from the fronts of its group's queues."""
    for queue in range(len(ways)):
        if ends[group, 2 * queue] == place + base + 1:
            behind = after[queue, place]
            ends[group, 2 * queue] = behind
            if behind > 0:
                before[queue, behind - 1 - base] = 0
            else:
                ends[group, 2 * queue + 1] = 0


@inlined_device_function
def _terms(numbers: Int64s, operand: int, group: int) -> int:
    """Number of values in a sum of a group."""
    size = 0
    for kind in range(NONE + 1, KINDS):
        size += numbers[operand, group, BOTH + kind]
    return size


@inlined_device_function
def _approximation(
    numbers: Int64s, operand: int, group: int, first: int, unit: float
) -> tuple[float, float]:
    """A sum as a double, and the sum of its digits' magnitudes; the first digit counts `unit`s.

    Digits here lie from -2**31 to 2**31, so that the sum of their magnitudes is at most three times
    that of the sum, also where rows have left.
    """
    digits = numbers[operand, group]
    value = near = 0.0
    carry = 0
    for i in range(LIMBS):
        digit = digits[first + i] + carry
        carry = (digit + _HALF) >> DIGIT
        part = (digit - (carry << DIGIT)) * unit
        value += part
        near += abs(part)
        unit *= 4294967296.0
    return value + carry * unit, near + abs(carry * unit)


@inlined_device_function
def _may_pass(
    tests: Int64s,
    constants: Float64s,
    rows: int,
    numbers: Int64s,
    ways: Int64s,
    ends: Int64s,
    values: Float64s,
    base: int,
    group: int,
) -> bool:
    """Whether a group does not surely fail a test."""
    for test in range(len(constants)):
        near, constant = 0.0, constants[test]
        aggregate, operand, compare = tests[test, 0], tests[test, 1], tests[test, 2]
        if aggregate == COUNT:
            value = float(rows)
        elif aggregate == DISTINCT:
            value = float(_terms(numbers, operand, group))
        elif aggregate == VALUES:
            value = float(rows - numbers[operand, group, BOTH + NONE])
        elif aggregate == EXTREME:
            front = ends[group, 2 * operand]
            if front == 0 or numbers[ways[operand, 0], group, BOTH + OTHER] > 0:
                continue  # the slow way says it
            value = values[ways[operand, 0], front - 1 - base]
        elif numbers[operand, group, BOTH + NONE] > 0 or numbers[operand, group, BOTH + OTHER] > 0:
            continue
        else:
            # Sums as float64, nearer than _SAFE times the sums of their digits' magnitudes.
            value, near = _approximation(numbers, operand, group, 0, 2.0**-SCALE)
            if numbers[operand, group, BOTH + DECIMAL] > 0:
                more, most = _approximation(numbers, operand, group, LIMBS, 10.0**-PLACES)
                value, near = value + more, near + most
            near *= _SAFE
            if aggregate == AVERAGE and rows > 0:
                constant *= _terms(numbers, operand, group)
        near += _SAFE * (abs(value) + abs(constant))
        if compare == 0 and abs(value - constant) > near:  # =
            return False
        if compare == 1 and value < constant - near:  # >, >=
            return False
        if compare == 2 and value > constant + near:  # <, <=
            return False
    return True


@device_function
def carried(limbs: Int64s, digits: Int64s) -> bool:
    """Write the digits of a sum's magnitude, each below 2**32; whether the sum is negative."""
    carry = 0
    for i in range(LIMBS):
        digits[i] = (limbs[i] + carry) & MASK
        carry = (limbs[i] + carry) >> DIGIT
    if carry >= 0:
        return False
    borrow = 1
    for i in range(LIMBS):
        digits[i] = (digits[i] ^ MASK) + borrow
        borrow = digits[i] >> DIGIT
        digits[i] &= MASK
    return True


@lean_kernel
def digits_of_doubles(bits: Int64s, whole: Int64s, shift: Int16s, fits: Bools) -> None:
    """Write doubles [n], whose bits are given, as m and shift, and whether a sum has room.

    Numbers that a sum has no room for become 0.
    """
    for i in range(len(bits)):
        word = bits[i]
        exponent = (word >> 52) & 0x7FF
        m = (word & 0xFFFFFFFFFFFFF) | 0x10000000000000
        place = exponent - _EXPONENT
        is_zero = (word << 1) == 0
        has_room = place >= 0 and place <= _LAST_SHIFT  # not so for infinite ones and NaN
        whole[i] = (-m if word < 0 else m) if has_room else 0
        shift[i] = place if has_room else 0
        fits[i] = has_room or is_zero


@lean_kernel
def quotients(sums: Int64s, divisors: Int64s, found: Float64s, work: Int64s) -> None:
    """The exact quotients of sums, rounded once to the nearest double, ties to even.

    Args:
        sums: int64 [n, LIMBS], the digits of sums.
        divisors: int64 [n], from 1 to 2**31 - 1.
        found: float64 [n], the quotients.
        work: int64 [LIMBS + 3], room to work in.
    """
    for row in range(len(divisors)):
        negative = carried(sums[row], work)
        divisor, rest, top = divisors[row], 0, -1
        for i in range(LIMBS - 1, -1, -1):
            rest = (rest << DIGIT) | work[i]
            work[i + 3] = rest // divisor
            rest %= divisor
            if top < 0 and work[i + 3] > 0:
                top = i + 3
        for i in range(2, -1, -1):  # digits behind the unit
            rest <<= DIGIT
            work[i] = rest // divisor
            rest %= divisor
            if top < 0 and work[i] > 0:
                top = i
        value = 0.0 if top < 0 else _rounded(work, top, rest != 0)
        found[row] = -value if negative else value


@device_function
def _rounded(digits: Int64s, top: int, more: bool) -> float:
    """The digits from `top` down as a double; `more` says that something follows them."""
    bits = 0
    while digits[top] >> bits:
        bits += 1
    # The 62 leading bits: those of the top digit, then 62 - bits of the next ones.
    leading, room, place = digits[top], 62 - bits, top - 1
    while room > 0 and place >= 0:
        take = min(room, DIGIT)
        leading = (leading << take) | (digits[place] >> (DIGIT - take))
        if take < DIGIT and digits[place] & ((1 << (DIGIT - take)) - 1):
            more = True
        room -= take
        place -= 1
    leading <<= room
    while place >= 0:
        more = more or digits[place] != 0
        place -= 1
    whole, rest = leading >> 9, leading & 511
    if rest > 256 or (rest == 256 and (more or whole & 1)):
        whole += 1
    # The first bit of `leading` stands for 2**(32 * top + bits - 1), in units of 2**-(SCALE + 96).
    return float(whole) * 2.0 ** (DIGIT * top + bits - 53 - SCALE - 3 * DIGIT)


@lean_kernel
def rows_of_groups(
    heads: Int64s, counts: Int64s, base: int, following: Int64s, found: Int64s
) -> None:
    """The places [sum of counts] of the rows of groups, given the number of each group's head."""
    made = 0
    for group in range(len(heads)):
        row = heads[group]
        for i in range(counts[group]):
            found[made] = row - base
            made += 1
            if i + 1 < counts[group]:
                row = following[row - base]
