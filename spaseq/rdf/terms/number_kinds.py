"""Kinds of float64 values: the exactness of a float64 approximation of a number or dateTime.

Comparing two float64 values gives the right answer in three cases: both numbers are EXACT or SHORT;
SPARQL promotes one of them to double; or the two float64 values differ, as rounding keeps order.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = -1
"""Not determined yet."""
OTHER: Final = 0
"""No value: unbound, or neither a number nor a dateTime."""
EXACT: Final = 1
"""An integer or decimal that float64 represents exactly; the digits of a decimal are below 2^53."""
ROUNDED: Final = 2
"""An integer or decimal that is neither EXACT nor SHORT."""
DOUBLE: Final = 3
"""An xsd:double."""
FLOAT: Final = 4
"""An xsd:float."""
DATE_TIME: Final = 5
"""An xsd:dateTime, in seconds since the epoch, rounded."""
SHORT: Final = 6
"""A decimal of at most 15 digits that float64 does not represent exactly. Two different SHORT
decimals have different float64 values, and a SHORT decimal never shares its value with an EXACT
number."""
KINDS: Final = range(SHORT + 1)
"""All kinds that are determined."""
