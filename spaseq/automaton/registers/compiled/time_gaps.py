"""Comparisons of two times of events, as one bound on the milliseconds between them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from spaseq.algebra.constants import constant_text
from spaseq.expr.temporal import Duration
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.variables import is_now
from spaseq.records import record

Operator: TypeAlias = Literal["<", "<=", ">", ">=", "=", "!="]

FLIPPED: dict[str, Operator] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "=": "=",
    "!=": "!=",
}

Time: TypeAlias = ast.Timestamp | ast.Call
"""TIMESTAMP of a GPM, or NOW."""

_LONGEST_MS = 2**52
"""float64 computes exactly with times and gaps that are shorter."""


@record
class TimeGap:
    """The comparison `left operator right + ms` of two times."""

    left: Time
    operator: Operator
    right: Time
    ms: int


def gap_of(operator: Operator, left: ast.Expr, right: ast.Expr) -> TimeGap | None:
    """A comparison of two times, or of their difference with a constant duration; else None."""
    match _time(left), _time(right):
        case (a, before), (b, after):
            return _gap(a, operator, b, after - before)
    if isinstance(left, ast.Literal):
        left, operator, right = right, FLIPPED[operator], left
    length = _length_ms(right)
    match left:
        case ast.Arithmetic("-", later, earlier) if length is not None:
            match _time(later), _time(earlier):
                case (a, before), (b, after):
                    return _gap(a, operator, b, length + after - before)
    return None


def _gap(left: Time, operator: Operator, right: Time, ms: int) -> TimeGap | None:
    return TimeGap(left, operator, right, ms) if abs(ms) < _LONGEST_MS else None


def _time(expr: ast.Expr) -> tuple[Time, int] | None:
    """(a time, the milliseconds after it) of a time plus or minus constant durations."""
    match expr:
        case ast.Timestamp():
            return expr, 0
        case ast.Call() if is_now(expr):
            return expr, 0
        case ast.Arithmetic("+" | "-" as op, left, right):
            if op == "+" and isinstance(left, ast.Literal):
                left, right = right, left
            time, length = _time(left), _length_ms(right)
            if time is not None and length is not None:
                return time[0], time[1] + (length if op == "+" else -length)
    return None


def _length_ms(expr: ast.Expr) -> int | None:
    """The milliseconds of a constant xsd:dayTimeDuration, if they are a whole number."""
    if not isinstance(expr, ast.Literal):
        return None
    value = decode(constant_text(expr))
    if not isinstance(value, Duration) or value.kind != "dayTimeDuration":
        return None
    ms = value.seconds * 1000
    return int(ms) if ms == int(ms) else None
