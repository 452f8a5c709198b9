"""Times as programs give them: Python's, NumPy's and pandas', and ISO 8601 text."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, Union

from spaseq.errors import UsageError
from spaseq.rdf.terms.times import LIMIT_MS, parse_datetime

if TYPE_CHECKING:
    import numpy as np

Time: TypeAlias = Union[datetime, SupportsIndex, str, "np.datetime64"]
"""A time of a program: a datetime, milliseconds since the epoch, ISO 8601 text, `np.datetime64`.

A pandas Timestamp is a datetime. A time without a zone is in UTC.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_DATE = re.compile(r"[0-9]{4}-")
_TICKS = {"ns": 1_000_000, "ps": 1_000_000_000, "fs": 10**12, "as": 10**15}
"""How many ticks a millisecond has, in units below the microsecond."""


def time_ms(when: Time, scale: int = 1) -> int:
    """Milliseconds since the epoch of a time; what is below the millisecond is cut off.

    An integer counts `scale` milliseconds.

    Raises:
        UsageError: it is no time, or too far from the epoch.

    >>> time_ms("2014-08-01T07:50:00Z") == time_ms(datetime(2014, 8, 1, 7, 50))
    True
    """
    if type(when) is int and -LIMIT_MS < when * scale < LIMIT_MS:  # the usual case
        return when * scale
    try:
        time = _ms(when, scale)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise UsageError(_no_time(when)) from None
    if abs(time) >= LIMIT_MS:
        shown = f"{time} ms" if time.bit_length() < 128 else f"of {time.bit_length()} bits"
        raise UsageError(f"a time {shown} is too far from the epoch")
    return time


def _ms(when: Any, scale: int = 1) -> int:
    if isinstance(when, datetime):
        aware = when if when.utcoffset() is not None else when.replace(tzinfo=UTC)
        return index((aware - _EPOCH) // timedelta(milliseconds=1))
    if isinstance(when, str):
        return _ms_of_text(when.strip())
    if isinstance(when, bool):
        raise TypeError
    if type(when).__name__ == "datetime64" and type(when).__module__ == "numpy":
        return _ms_of_numpy(when)
    return index(when) * scale


def _ms_of_text(text: str) -> int:
    """The time of an `xsd:dateTime`, or of ISO 8601 text with dashes: a date, a space for the T."""
    ms = parse_datetime(text)
    if ms is not None:
        return ms
    if _ISO_DATE.match(text) is None:
        raise ValueError
    return _ms(datetime.fromisoformat(text))


def _ms_of_numpy(when: np.datetime64) -> int:
    """Milliseconds of a NumPy time, in Python's integers, which do not overflow."""
    if str(when) == "NaT":
        raise ValueError
    match = re.fullmatch(r"datetime64\[(\d*)(\w+)\]", str(when.dtype))
    if match is None:
        raise ValueError
    unit, count = match[2], int(match[1] or 1)
    ticks = int(when.astype("int64")) * count
    if unit in _TICKS:
        return ticks // _TICKS[unit]
    if unit in ("Y", "M"):  # of different lengths
        return int(when.astype("datetime64[D]").astype("int64")) * 86_400_000
    sizes = {"W": 604_800_000, "D": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    return ticks * sizes[unit] if unit in sizes else ticks // 1000


def _no_time(when: object) -> str:
    """The message about a value that is no time, with a hint."""
    shown = f"{str(when)[:50]!r}"
    known = "a time is a datetime, milliseconds as int, ISO 8601 text or np.datetime64"
    if isinstance(when, float) or type(when).__name__.startswith("float"):
        return (
            f"{known}, not the float {shown}: "
            "say int(t) if it is milliseconds, round(t * 1000) if it is seconds"
        )
    if isinstance(when, date) and not isinstance(when, datetime):
        return f"{known}, not the date {shown}: say its time of day, or str(date) for midnight"
    if isinstance(when, str):
        return f"{known}, and the text {shown} is none, such as '2014-08-01T07:50:00Z'"
    return f"{known}, not {shown}"
