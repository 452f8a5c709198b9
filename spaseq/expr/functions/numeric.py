"""Functions on numbers (SPARQL 1.1 section 17.4.4); the result has the argument's type."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from spaseq.expr.errors import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.numbers import EXACT, Float, Number, is_number


def _number(value: Any) -> Number:
    if not is_number(value):
        raise ExpressionError("not a number")
    return value  # type: ignore[no-any-return]


@builtin("ABS", 1)
def absolute(value: Any) -> Number:
    match _number(value):
        case Decimal() as number:
            return number.copy_abs()
        case Float() as number:
            return Float(abs(number))
        case number:
            return abs(number)


def _rounding(double: Callable[[float], float], mode: str) -> Callable[[Any], Number]:
    def apply(value: Any) -> Number:
        number = _number(value)
        match number:
            case int():
                return number
            case Decimal():
                return number.to_integral_value(mode, EXACT) or Decimal(0)
        if not math.isfinite(number) or not number:
            return number
        rounded = math.copysign(double(number), number)
        return Float(rounded) if type(number) is Float else rounded

    return apply


ceiling = builtin("CEIL", 1)(_rounding(math.ceil, ROUND_CEILING))
floor = builtin("FLOOR", 1)(_rounding(math.floor, ROUND_FLOOR))


@builtin("ROUND", 1)
def rounded(value: Any) -> Number:
    """The nearest whole number; of two, the greater (fn:round)."""
    number = _number(value)
    match number:
        case int():
            return number
        case Decimal():
            half_up = EXACT.add(number, Decimal("0.5"))
            return half_up.to_integral_value(ROUND_FLOOR, EXACT) or Decimal(0)
    if not math.isfinite(number) or not number:
        return number
    whole = math.floor(number)
    nearest = math.copysign(whole + (number - whole >= 0.5), number)
    return Float(nearest) if type(number) is Float else nearest


@builtin("RAND", 0, volatile=True)
def random_double() -> float:
    return random.random()
