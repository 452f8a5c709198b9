"""Durations as users write them in options."""

from __future__ import annotations

import re

from spaseq.errors import UsageError
from spaseq.rdf.terms.times import LONGEST_MS

_UNITS = {"MILLISECOND": 1, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}


_DIGITS = 20  # no longer number is short enough


def milliseconds(text: str) -> int:
    """`5 SECONDS` as milliseconds; UsageError if the text is no duration."""
    found = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+?)[sS]?\s*", text)
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise UsageError(f"{text!r}: expected a duration such as '5 SECONDS'")
    digits = found[1].lstrip("0") or "0"
    if len(digits) > _DIGITS or int(digits) * unit > LONGEST_MS:
        raise UsageError(f"{text[:40]!r}: longer than 36 million years (2**60 milliseconds)")
    return int(digits) * unit


def duration_text(ms: int) -> str:
    """Milliseconds as text that `milliseconds` reads, in the largest unit that needs no fraction.

    >>> duration_text(90_000), duration_text(7_200_000), duration_text(1_500)
    ('90 SECONDS', '2 HOURS', '1500 MILLISECONDS')
    """
    unit, length = next((u, n) for u, n in reversed(_UNITS.items()) if ms % n == 0)
    return f"{ms // length} {unit}S"
