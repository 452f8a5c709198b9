"""Durations as users write them in options."""

from __future__ import annotations

import re

from spaseq.errors import UsageError
from spaseq.rdf.terms.times import LONGEST_MS, UNITS, in_largest_unit

_DIGITS = 20  # no longer number is short enough


def milliseconds(text: str) -> int:
    """`5 SECONDS` as milliseconds; UsageError if the text is no duration."""
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+?)[sS]?\s*", text)
    unit = UNITS.get(f"{match[2].upper()}S") if match else None
    if match is None or unit is None:
        raise UsageError(f"{text!r}: expected a duration such as '5 SECONDS'")
    digits = match[1].lstrip("0") or "0"
    if len(digits) > _DIGITS or int(digits) * unit > LONGEST_MS:
        raise UsageError(f"{text[:40]!r}: longer than 36 million years (2**60 milliseconds)")
    return int(digits) * unit


def duration_text(ms: int) -> str:
    """Milliseconds as text that `milliseconds` reads, in the largest unit that needs no fraction.

    >>> duration_text(90_000), duration_text(7_200_000), duration_text(1_500)
    ('90 SECONDS', '2 HOURS', '1500 MILLISECONDS')
    """
    amount, unit = in_largest_unit(ms)
    return f"{amount} {unit}"
