"""Casts of columns of strings, such as the cells of CSV, as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Bytes
from spaseq.lift.lanes import Lane, LaneForm

_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_CASTS: dict[str, tuple[LaneForm, str, Any]] = {
    "integer": (LaneForm.INTEGER, "-?[0-9]{1,18}", pa.int64()),
    "double": (LaneForm.DOUBLE, "-?[0-9]{1,30}([.][0-9]{1,30})?(e-?[0-9]{1,2})?", pa.float64()),
    "decimal": (LaneForm.DECIMAL, "-?[0-9]{1,15}([.][0-9]{1,9})?", pa.decimal128(24, 9)),
    "dateTime": (
        LaneForm.MOMENT,
        f"[12][0-9]{{3}}-[01][0-9]-[0-3][0-9]T{_TIME}([.][0-9]{{1,6}})?Z",
        pa.timestamp("us", "UTC"),
    ),
}
"""(form, the texts that are cast as a whole, type) by datatype."""


_MOST_DIGITS = 15
"""So many digits are an int64, and the whole part of the decimals above."""


def _match(texts: Any, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, f"^({pattern})$")).as_py() is not False


def _are_plain(form: LaneForm, texts: Any) -> bool:
    """Whether all texts have a form that is recognised fast: `17`, `2026-01-05T09:00:00.5Z`."""
    if form is LaneForm.MOMENT:
        return _are_moments(texts)
    if form not in (LaneForm.INTEGER, LaneForm.DECIMAL):
        return False
    if pc.all(pc.ascii_is_decimal(texts)).as_py() is not True:
        return False
    return bool(pc.max(pc.binary_length(texts)).as_py() <= _MOST_DIGITS)


def _are_moments(texts: Any) -> bool:
    """Whether all texts are dateTimes in UTC with equally many digits, in years 1000 to 2999."""
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    size = lengths["min"]
    form = _MOMENTS.get(size or 0)
    if texts.null_count or form is None or size != lengths["max"]:
        return False
    offsets = np.frombuffer(texts.buffers()[1], np.int64)  # large strings
    begin = int(offsets[texts.offset])
    data = np.frombuffer(texts.buffers()[2], np.uint8)[begin : begin + size * len(texts)]
    least, span = form
    return bool((data.reshape(-1, size) - least <= span).all())


def _moment_form(size: int) -> tuple[Bytes, Bytes]:
    """(least byte, how much more it may be) at each place of a dateTime of this length."""
    text = "1000-00-00T00:00:00" + (f".{'0' * (size - 21)}" if size > 20 else "") + "Z"
    least = np.frombuffer(text.encode(), np.uint8)
    return least, np.where(least == ord("0"), 9, least == ord("1")).astype(np.uint8)


_MOMENTS = {size: _moment_form(size) for size in (20, *range(22, 28))}


def cast_of_strings(lane: Lane, datatype: str) -> Lane | None:
    """The values of strings cast to a datatype of XSD; None if a text is not usual."""
    known = _CASTS.get(datatype)
    if known is None or lane.form is not LaneForm.STRING:
        return None
    if pa.types.is_dictionary(lane.values.type):
        distinct = cast_of_strings(Lane(lane.form, lane.values.dictionary), datatype)
        return None if distinct is None else distinct.take(lane.values.indices)
    form, usual, kind = known
    if not (_are_plain(form, lane.values) or _match(lane.values, usual)):
        return None
    try:
        values = lane.values.cast(kind)
    except pa.ArrowInvalid:  # the 30th of February
        return None
    return Lane(form, values.cast(pa.int64()) if form is LaneForm.MOMENT else values)
