"""Casts of columns of strings, such as the cells of CSV, as a whole."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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


def cast_of_strings(lane: Lane, datatype: str) -> Lane | None:
    """The values of strings cast to a datatype of XSD; None if a text is not usual."""
    known = _CASTS.get(datatype)
    if known is None or lane.form is not LaneForm.STRING:
        return None
    if pa.types.is_dictionary(lane.values.type):
        distinct = cast_of_strings(Lane(lane.form, lane.values.dictionary), datatype)
        return None if distinct is None else distinct.take(lane.values.indices)
    form, usual, kind = known
    if pc.all(pc.match_substring_regex(lane.values, f"^({usual})$")).as_py() is False:
        return None
    try:
        values = lane.values.cast(kind)
    except pa.ArrowInvalid:  # the 30th of February
        return None
    return Lane(form, values.cast(pa.int64()) if form is LaneForm.MOMENT else values)
