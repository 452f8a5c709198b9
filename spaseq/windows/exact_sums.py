"""Numbers as whole multiples of a small unit, and exact sums of them as terms."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from spaseq.compiled.arrays import Bools, Float64s, Int16s, Int64s
from spaseq.expr.numbers import EXACT
from spaseq.windows.kernels.group_runs import (
    DIGIT,
    LIMBS,
    PLACES,
    SCALE,
    digits_of_doubles,
    quotients,
)

_WHOLE_END = 2**60


def of_doubles(values: Float64s) -> tuple[Int64s, Int16s, Bools]:
    """(m, shift, whether a sum has room for it), each [n], of doubles [n].

    >>> m, shift, fits = of_doubles(np.array([0.75, -2.0, 1e-40]))
    >>> (m[:2] * 2.0 ** (shift[:2] - SCALE)).tolist(), fits.tolist()
    ([0.75, -2.0], [True, True, False])
    """
    whole, shift = np.empty(len(values), np.int64), np.empty(len(values), np.int16)
    fits = np.empty(len(values), np.bool_)
    bits = np.require(values, np.float64, ["C", "W"]).view(np.int64)
    digits_of_doubles(bits, whole, shift, fits)
    return whole, shift, fits


def fits_whole(values: Int64s) -> Bools:
    """Which integers [n] a sum has room for: their m is the integer, their shift SCALE."""
    fits: Bools = np.abs(values) < _WHOLE_END
    return fits


def rounded_quotients(sums: Int64s, divisors: Int64s) -> Float64s:
    """The quotients of sums [n, LIMBS] by positive integers [n], each rounded once."""
    rounded = np.empty(len(divisors))
    quotients(np.ascontiguousarray(sums), divisors, rounded, np.zeros(LIMBS + 3, np.int64))
    return rounded


def whole_sums(sums: Int64s) -> list[int]:
    """The sums [n, LIMBS] of integers."""
    return [units >> SCALE for units in _units(sums)]


def decimal_sums(sums: Int64s) -> list[Decimal]:
    """The sums [n, BOTH] of integers and decimals."""
    wholes, decimals = whole_sums(sums[:, :LIMBS]), _units(sums[:, LIMBS:])
    return [
        EXACT.scaleb(Decimal(whole * 10**PLACES + units), -PLACES)
        for whole, units in zip(wholes, decimals, strict=True)
    ]


def _units(sums: Int64s) -> list[int]:
    """The sums [n, LIMBS] as numbers of units."""
    weights = [1 << (DIGIT * limb) for limb in range(LIMBS)]
    return [
        sum(digit * weight for digit, weight in zip(digits, weights, strict=True))
        for digits in sums.tolist()
    ]
