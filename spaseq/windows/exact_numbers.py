"""Numbers of groups: a term table of doubles with lazy texts, and exact sums as terms.

A sum is a whole multiple of a small unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Float64s, Int16s, Int32s, Int64s
from spaseq.expr.numbers import EXACT
from spaseq.expr.values import decode, encode
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.rdf.columns.term_tables import ABSENT, Numbers, TermTable
from spaseq.rdf.terms.number_kinds import DOUBLE, OTHER
from spaseq.rdf.terms.term import XSD
from spaseq.windows.kernels.group_runs import (
    DIGIT,
    LIMBS,
    PLACES,
    SCALE,
    digits_of_doubles,
    quotients,
)

_TYPE = f'"^^<{XSD}double>'

_TEXT = pa.large_string()

_WHOLE_END = 2**60


class CanonicalDoubles(TermTable):
    """The canonical terms of finite doubles [n], which ascend."""

    has_canonical_doubles = True
    has_blank = False

    def __init__(self, values: Float64s) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def text(self, code: int) -> str:
        return encode(float(self.values[code]))

    def take(self, codes: Int32s) -> list[str]:
        return self.strings(codes).to_pylist()  # type: ignore[no-any-return]

    def strings(self, codes: Int32s) -> TextArray:
        return double_strings(self.values[codes])

    def find(self, texts: Sequence[str]) -> Int32s:
        codes = np.full(len(texts), ABSENT, np.int32)
        rows = [row for row, text in enumerate(texts) if text.endswith(_TYPE)]
        for row in rows if len(self.values) else ():
            value = decode(texts[row])
            if isinstance(value, float):
                code = min(int(np.searchsorted(self.values, value)), len(self.values) - 1)
                if self.text(code) == texts[row]:
                    codes[row] = code
        return codes

    def numbers(self, codes: Int32s) -> Numbers:
        bound = codes >= 0
        values = np.full(len(codes), np.nan)
        values[bound] = self.values[codes[bound]]
        return values, np.where(bound, np.int8(DOUBLE), np.int8(OTHER))


def double_strings(values: Float64s) -> TextArray:
    """The canonical terms of finite doubles [n].

    >>> double_strings(np.array([-60.0, 1e-7, 0.5, 12.25])).to_pylist()[3]
    '"1.225E1"^^<http://www.w3.org/2001/XMLSchema#double>'
    """
    size = np.abs(values)
    plain = (size >= 1) & (size < 1e10)
    if len(values) < thresholds.current.summed_rows or not plain.any():
        return text_array([*map(encode, values.tolist())])
    short = pa.array(size).cast(_TEXT)  # the shortest digits; with a point, or none
    points = pc.find_substring(short, ".").to_numpy()
    points = np.where(points < 0, pc.binary_length(short).to_numpy(), points)
    points = np.where(plain, np.where(values < 0, -points, points), 0)
    parts, places = list[TextArray](), []
    for point in np.unique(points).tolist():
        rows = np.flatnonzero(points == point)
        places.append(rows)
        if point:
            parts.append(_with_exponent(short.take(pa.array(rows)), abs(point), point < 0))
        else:
            parts.append(text_array([*map(encode, values[rows].tolist())]))
    back = np.empty(len(values), np.int64)
    back[np.concatenate(places)] = np.arange(len(values))
    return pa.concat_arrays(parts).take(pa.array(back))


def _with_exponent(short: TextArray, point: int, negative: bool) -> TextArray:
    """The terms of numbers from 1 on with `point` digits before the point."""
    first, more = pc.utf8_slice_codeunits(short, 0, 1), pc.utf8_slice_codeunits(short, 1, point)
    fraction = pc.utf8_slice_codeunits(short, point + 1)
    rest = pc.utf8_rtrim(_joined(more, fraction), "0")
    rest = pc.if_else(pc.equal(rest, ""), pa.scalar("0", _TEXT), rest)
    return _joined('"-' if negative else '"', first, ".", rest, f"E{point - 1}{_TYPE}")


def _joined(*parts: TextArray | str) -> TextArray:
    columns = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar("", _TEXT))


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
