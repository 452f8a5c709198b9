"""Rows enter and leave the groups of a window, and the groups that change are given out.

A number is m * 2**(shift - SCALE) with a whole m below 2**60. Its group adds it to a sum of whole
multiples of 2**-SCALE, in LIMBS digits of 32 bits. An int64 holds each digit, so carries wait until
somebody reads the sum: rows add and leave exactly, in any order. This is the small superaccumulator
of Neal (arXiv:1505.05571), for the exponents that measurements have. Decimals have a sum of their
own, of whole multiples of 10**-PLACES. Numbers beyond count as OTHER.
"""

from __future__ import annotations

from typing import Final

from spaseq.compiled.arrays import Float64s, Int8s, Int16s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, lean_kernel

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

COUNT: Final = 0
"""Aggregate of a test: the number of rows."""
VALUES: Final = 1
"""The number of rows with a value."""
SUM: Final = 2
AVERAGE: Final = 3

_SAFE: Final = 1e-12
"""Approximations are nearer than this to their values, relatively."""


@lean_kernel
def advanced(
    entered: Int64s,
    left: Int64s,
    enter: Int64s,
    leave: Int64s,
    base: int,
    begins: bool,
    keyless: bool,
    rows: tuple[Int32s, Int64s],
    values: tuple[Int8s, Int64s, Int16s],
    groups: tuple[Int64s, Int64s, Int64s, Int64s],
    sums: tuple[Int64s, Int64s],
    seen: tuple[Int8s, Int64s],
    tests: tuple[Int64s, Float64s],
    touched: Int64s,
    out: tuple[Int64s, Int64s, Int64s],
) -> int:
    """The number of groups that changed at some window events.

    Args:
        entered, left: int64 [1] absolute numbers of the next row to enter and to leave; they move.
        enter, leave: int64 [t] rows before these have entered, and left, at each window event.
        base: the absolute number of the row at place 0 of `rows`.
        begins: whether group 0 is looked at although no row touches it, at the first event.
        keyless: whether group 0 is the only one, which is there without rows, too.
        rows: (group int32 [n], -1 for none; next row of the group int64 [n], absolute).
        values: (kind int8, m int64, shift int16), each [operands, n].
        groups: (rows, head, tail, mark), int64 [g]; head and tail are absolute numbers of rows.
        sums: (digits int64 [operands, g, BOTH], rows by kind int64 [operands, g, 5]).
        seen: (whether a group was given out int8 [g]; the number of the last mark int64 [1]).
        tests: (aggregate, operand, comparison) int64 [c, 3] and constants float64 [c]; a group that
            surely fails one is given out only if it was before.
        touched: int64 [g]: room to work in.
        out: (event, group, rows, head, whether it may pass) int64 [m, 5], the digits of its sums
            int64 [m, operands, BOTH], and its rows by kind int64 [m, operands, 5].
    """
    group_of, following = rows
    size, head, tail, mark = groups
    held, last = seen
    made = 0
    for event in range(len(enter)):
        last[0] += 1
        count = 0
        if begins and event == 0:
            mark[0] = last[0]
            touched[0] = 0
            count = 1
        while left[0] < min(leave[event], entered[0]):
            place = left[0] - base
            group = group_of[place]
            left[0] += 1
            if group < 0:
                continue
            size[group] -= 1
            head[group] = following[place]
            _count(values, sums, place, group, -1)
            if mark[group] != last[0]:
                mark[group] = last[0]
                touched[count] = group
                count += 1
        left[0] = max(left[0], leave[event])
        entered[0] = max(entered[0], leave[event])
        while entered[0] < enter[event]:
            row = entered[0]
            place = row - base
            group = group_of[place]
            entered[0] += 1
            if group < 0:
                continue
            if size[group] == 0:
                head[group] = row
            else:
                following[tail[group] - base] = row
            tail[group] = row
            size[group] += 1
            _count(values, sums, place, group, 1)
            if mark[group] != last[0]:
                mark[group] = last[0]
                touched[count] = group
                count += 1
        for i in range(count):
            group = touched[i]
            passes = keyless or size[group] > 0
            if passes and not _may_pass(tests, size[group], sums, group):
                passes = False
            if passes or held[group]:
                held[group] = 1 if passes else 0
                own = out[0][made]
                own[0], own[1], own[2], own[3] = event, group, size[group], head[group]
                own[4] = 1 if passes else 0
                for operand in range(sums[0].shape[0]):
                    for limb in range(BOTH):
                        out[1][made, operand, limb] = sums[0][operand, group, limb]
                    for kind in range(OTHER + 1):
                        out[2][made, operand, kind] = sums[1][operand, group, kind]
                made += 1
    return made


@device_function
def _count(
    values: tuple[Int8s, Int64s, Int16s],
    sums: tuple[Int64s, Int64s],
    place: int,
    group: int,
    sign: int,
) -> None:
    """Add the operands of a row to its group, or with sign -1 take them away."""
    kinds, whole, shifts = values
    for operand in range(kinds.shape[0]):
        kind = kinds[operand, place]
        sums[1][operand, group, kind] += sign
        if kind != NONE and kind != OTHER:
            m = whole[operand, place] * sign
            limb, bits = shifts[operand, place] >> 5, shifts[operand, place] & 31
            if kind == DECIMAL:
                limb += LIMBS
            own = sums[0][operand, group]
            low, high = (m & MASK) << bits, (m >> DIGIT) << bits
            own[limb] += low & MASK
            own[limb + 1] += (low >> DIGIT) + (high & MASK)
            own[limb + 2] += high >> DIGIT


@device_function
def _may_pass(
    tests: tuple[Int64s, Float64s],
    rows: int,
    sums: tuple[Int64s, Int64s],
    group: int,
) -> bool:
    """Whether a group does not surely fail a test."""
    for test in range(len(tests[1])):
        near = 0.0
        aggregate, operand, compare = tests[0][test, 0], tests[0][test, 1], tests[0][test, 2]
        if aggregate == COUNT:
            value = float(rows)
        else:
            kinds = sums[1][operand, group]
            if aggregate == VALUES:
                value = float(rows - kinds[NONE])
            elif kinds[NONE] > 0 or kinds[OTHER] > 0:
                continue  # the slow way says it
            else:
                value, near = _approximation(sums[0][operand, group, :LIMBS])
                if kinds[DECIMAL] > 0:
                    more, size = _approximation(sums[0][operand, group, LIMBS:])
                    value += more * (2.0**SCALE / 10.0**PLACES)
                    near += size * (2.0**SCALE / 10.0**PLACES)
                near *= _SAFE
                if aggregate == AVERAGE and rows > 0:
                    value, near = value / rows, near / rows
        constant = tests[1][test]
        near += _SAFE * (abs(value) + abs(constant))
        if compare == 0 and abs(value - constant) > near:  # =
            return False
        if compare == 1 and value < constant - near:  # >, >=
            return False
        if compare == 2 and value > constant + near:  # <, <=
            return False
    return True


@device_function
def _approximation(limbs: Int64s) -> tuple[float, float]:
    """(a sum as a float64, the sum of its digits' magnitudes).

    The first is nearer to the sum than _SAFE of the second.
    """
    value = size = 0.0
    for i in range(LIMBS - 1, -1, -1):
        value = value * 4294967296.0 + limbs[i]
        size = size * 4294967296.0 + abs(limbs[i])
    return value * 2.0**-SCALE, size * 2.0**-SCALE


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
