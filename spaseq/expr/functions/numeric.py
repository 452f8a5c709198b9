"""Functions on numbers (SPARQL 1.1 section 17.4.4), whose result has the argument's type, and on
dates and times (section 17.4.5). These also take xsd:date and xsd:time, if they have the component.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.numbers import EXACT, Float, Number, is_number
from spaseq.expr.temporal import Duration, Moment, write_zone
from spaseq.expr.values import Value

_DATE = ("dateTime", "date")
_TIME = ("dateTime", "time")


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


def _rounding(
    decimal: Callable[[Decimal], Decimal], double: Callable[[float], float]
) -> Callable[[Any], Number]:
    """A function from a number to a whole one, given the rounding of decimals and doubles."""

    def apply(value: Any) -> Number:
        number = _number(value)
        match number:
            case int():
                return number
            case Decimal():
                return decimal(number) or Decimal(0)
        if not math.isfinite(number) or not number:
            return number
        whole = math.copysign(double(number), number)
        return Float(whole) if type(number) is Float else whole

    return apply


def _nearest_decimal(number: Decimal) -> Decimal:
    """The nearest whole decimal; of two, the greater (fn:round)."""
    return EXACT.add(number, Decimal("0.5")).to_integral_value(ROUND_FLOOR, EXACT)


def _nearest_double(number: float) -> float:
    """The nearest whole double; of two, the greater (fn:round)."""
    whole = math.floor(number)
    return whole + (number - whole >= 0.5)


ceiling = builtin("CEIL", 1)(
    _rounding(lambda number: number.to_integral_value(ROUND_CEILING, EXACT), math.ceil)
)
floor = builtin("FLOOR", 1)(
    _rounding(lambda number: number.to_integral_value(ROUND_FLOOR, EXACT), math.floor)
)
rounded = builtin("ROUND", 1)(_rounding(_nearest_decimal, _nearest_double))


@builtin("RAND", 0, volatile=True)
def random_double() -> float:
    return random.random()


def _moment(value: Value, kinds: tuple[str, ...]) -> Moment:
    if not isinstance(value, Moment) or value.kind not in kinds:
        raise ExpressionError("not a dateTime")
    return value


def _component(
    name: str, kinds: tuple[str, ...], component: Callable[[Moment], Any]
) -> Callable[[Value], Any]:
    return builtin(name, 1)(lambda value: component(_moment(value, kinds)))


year = _component("YEAR", _DATE, lambda m: m.year)
month = _component("MONTH", _DATE, lambda m: m.month)
day = _component("DAY", _DATE, lambda m: m.day)
hours = _component("HOURS", _TIME, lambda m: m.hour)
minutes = _component("MINUTES", _TIME, lambda m: m.minute)
seconds = _component("SECONDS", _TIME, lambda m: m.second)


@builtin("TIMEZONE", 1)
def timezone(value: Value) -> Duration:
    """The offset from UTC as a dayTimeDuration; an error if there is none."""
    zone = _moment(value, ("dateTime", "date", "time")).zone
    if zone is None:
        raise ExpressionError("no time zone")
    return Duration("dayTimeDuration", 0, Decimal(60 * zone))


@builtin("TZ", 1)
def timezone_text(value: Value) -> str:
    """The time zone as written, or the empty string."""
    return write_zone(_moment(value, ("dateTime", "date", "time")).zone)
