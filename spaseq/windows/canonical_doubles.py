"""A term table of doubles whose texts are made only when somebody reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Float64s, Int32s
from spaseq.expr.values import decode, encode
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.rdf.columns.term_tables import ABSENT, Numbers, TermTable
from spaseq.rdf.terms.number_kinds import DOUBLE, OTHER
from spaseq.rdf.terms.term import XSD

_TYPE = f'"^^<{XSD}double>'

_TEXT = pa.large_string()


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
