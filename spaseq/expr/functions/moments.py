"""Functions on dates and times (SPARQL 1.1 section 17.4.5).

They also take xsd:date and xsd:time, if these have the component.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.temporal import Duration, Moment, write_zone
from spaseq.expr.values import Value

_DATE = ("dateTime", "date")
_TIME = ("dateTime", "time")


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
