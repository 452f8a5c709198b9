"""What a float64 stands for, where numbers and dateTimes are compared as float64.

A comparison in float64 is right for two numbers that are exact in it; for those of which SPARQL
promotes both to double; and for rounded ones that come out different, as rounding keeps order.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = -1
"""Nobody has looked."""
OTHER: Final = 0
"""Nothing: unbound, or neither number nor dateTime."""
EXACT: Final = 1
"""An integer or decimal that float64 represents."""
ROUNDED: Final = 2
"""An integer or decimal that it does not represent."""
DOUBLE: Final = 3
"""An xsd:double."""
FLOAT: Final = 4
"""An xsd:float."""
MOMENT: Final = 5
"""An xsd:dateTime, in seconds since the epoch, rounded."""
