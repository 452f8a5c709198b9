"""What a float64 stands for, where numbers and dateTimes are compared as float64.

A comparison in float64 is right for two numbers that are exact in it or short; for those that
SPARQL promotes to double; and for rounded ones that come out different, as rounding keeps order.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = -1
"""Nobody has looked."""
OTHER: Final = 0
"""Nothing: unbound, or neither number nor dateTime."""
EXACT: Final = 1
"""An integer that float64 represents, or such a decimal whose digits make less than 2^53."""
ROUNDED: Final = 2
"""An integer or decimal that is neither EXACT nor SHORT."""
DOUBLE: Final = 3
"""An xsd:double."""
FLOAT: Final = 4
"""An xsd:float."""
DATE_TIME: Final = 5
"""An xsd:dateTime, in seconds since the epoch, rounded."""
SHORT: Final = 6
"""A decimal of at most 15 digits that float64 does not represent. No two of them have the same
float64, and none has that of an EXACT number: its digits would be too few."""
