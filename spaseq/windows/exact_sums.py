"""Numbers as whole multiples of a small unit, and exact sums of them as terms."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bools, Float64s, Int16s, Int64s
from spaseq.windows.kernels.group_runs import DIGIT, LIMBS, SCALE, quotients

_LAST_SHIFT = DIGIT * (LIMBS - 2) - 1
_WHOLE_END = 2**53


def of_doubles(values: Float64s) -> tuple[Int64s, Int16s, Bools]:
    """(m, shift, whether a sum has room for it), each [n], of doubles [n].

    >>> m, shift, fits = of_doubles(np.array([0.75, -2.0, 1e-40]))
    >>> (m[:2] * 2.0 ** (shift[:2] - SCALE)).tolist(), fits.tolist()
    ([0.75, -2.0], [True, True, False])
    """
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(values)
        m = np.ldexp(mantissa, 53)
        shift = exponent.astype(np.int64) - 53 + SCALE
        shift[values == 0] = 0
        fits: Bools = np.isfinite(values) & (shift >= 0) & (shift <= _LAST_SHIFT)
        whole = np.where(fits, m, 0).astype(np.int64)
    return whole, np.where(fits, shift, 0).astype(np.int16), fits


def fits_whole(values: Int64s) -> Bools:
    """Which integers [n] a sum has room for: their m is the integer, their shift SCALE."""
    found: Bools = np.abs(values) < _WHOLE_END
    return found


def rounded_quotients(sums: Int64s, divisors: Int64s) -> Float64s:
    """The quotients of sums [n, LIMBS] by positive integers [n], each rounded once."""
    found = np.empty(len(divisors))
    quotients(np.ascontiguousarray(sums), divisors, found, np.zeros(LIMBS + 3, np.int64))
    return found


def whole_sums(sums: Int64s) -> list[int]:
    """The sums [n, LIMBS] of integers."""
    units = [1 << (DIGIT * limb) for limb in range(LIMBS)]
    return [
        sum(digit * unit for digit, unit in zip(own, units, strict=True)) >> SCALE
        for own in sums.tolist()
    ]
