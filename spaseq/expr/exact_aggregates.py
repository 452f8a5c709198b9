"""Set functions that do not depend on the order of their operands (docs/windows.md).

SUM and AVG are exact, and rounded once; MIN and MAX take, of equal values, the term whose
N-Triples text is least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from spaseq.expr.aggregates import AGGREGATES, Elements, order_key
from spaseq.expr.env import ExpressionError
from spaseq.expr.numbers import Float, is_number, to_double, to_float32
from spaseq.expr.values import decode, encode


def total(elements: Elements) -> str:
    """SUM: the exact sum, rounded once to its type in SPARQL.

    >>> from spaseq.rdf.terms.term import XSD
    >>> values = [f'"{v}"^^<{XSD}double>' for v in ("1e16", "1", "-1e16")]
    >>> total(values) == encode(1.0)
    True
    """
    return _floating(elements, 1) or AGGREGATES["SUM"](elements)


def average(elements: Elements) -> str:
    """AVG: the exact quotient, rounded once."""
    return _floating(elements, len(elements)) or AGGREGATES["AVG"](elements)


def _floating(elements: Elements, divisor: int) -> str | None:
    """The sum of numbers, divided; None unless one of them is a double or a float."""
    values: list[Any] = [decode(e) for e in elements if e is not None]
    if len(values) != len(elements) or not any(isinstance(v, float) for v in values):
        return None
    if not all(map(is_number, values)):
        return None
    is_double = any(type(v) is float for v in values)
    return encode(rounded_sum(values, divisor, is_double))


def rounded_sum(values: Sequence[Any], divisor: int, is_double: bool) -> float:
    """The exact sum of numbers by a divisor, as a double or as a 32-bit float."""
    special = [float(v) for v in values if isinstance(v, float) and not math.isfinite(v)]
    if special:
        special_sum = sum(special)
        return special_sum if is_double else Float(special_sum)
    if is_double and all(isinstance(v, float) for v in values):
        return _double_sum(values, divisor)
    exact = sum(map(Fraction, values), Fraction(0)) / divisor
    return to_double(exact) if is_double else to_float32(exact)  # type: ignore[arg-type]


def _double_sum(values: Sequence[float], divisor: int) -> float:
    """The exact sum of finite doubles by a divisor, rounded once."""
    if divisor == 1:
        try:
            return math.fsum(values)
        except OverflowError:  # of a part of the sum
            return to_double(sum(map(Fraction, values)))  # type: ignore[arg-type]
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(denominator for _, denominator in ratios)  # all are powers of two
    total = sum(numerator * (unit // denominator) for numerator, denominator in ratios)
    try:
        return total / (unit * divisor)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def least(elements: Elements) -> str:
    """MIN in the order of ORDER BY, without errors."""
    return min(_keyed(elements))[1]


def greatest(elements: Elements) -> str:
    """MAX in the order of ORDER BY, without errors."""
    keyed = _keyed(elements)
    most = max(key for key, _ in keyed)
    return min(text for key, text in keyed if key == most)


def _keyed(elements: Elements) -> list[tuple[tuple[Any, ...], str]]:
    keyed = [(order_key(e), e) for e in elements if e is not None]
    if not keyed:
        raise ExpressionError("the aggregate has no value")
    return keyed


EXACT: dict[str, Callable[[Elements], str]] = {
    "SUM": total,
    "AVG": average,
    "MIN": least,
    "MAX": greatest,
}
"""The set functions that depend on the order of operands, or on that of a sum, by name."""
