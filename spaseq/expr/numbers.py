"""The numeric tower of SPARQL: integer, decimal, float, double (SPARQL 1.1 section 17.1).

Python's `int` is xsd:integer (and the types derived from it), `Decimal` is xsd:decimal, `Float` is
xsd:float and `float` is xsd:double. Integers and decimals are exact; longer ones than `MOST_DIGITS`
have no value, because arithmetic on them would take too long.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from ctypes import c_float
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import Any, TypeAlias

from spaseq.expr.env import ExpressionError
from spaseq.text_patterns import late_pattern


class Float(float):
    """An xsd:float: a double that a 32-bit float represents."""

    __slots__ = ()


Number: TypeAlias = int | Decimal | Float | float

MOST_DIGITS = 4_000
"""Most significant digits, and most fractional digits, of an integer or decimal."""

_TRAPS = [InvalidOperation, DivisionByZero, Overflow, Inexact]

EXACT = Context(prec=100_000, traps=_TRAPS)
"""Exact decimal arithmetic. One operation on numbers of `MOST_DIGITS` never exceeds it."""

_BOUNDED = Context(prec=MOST_DIGITS, Emax=MOST_DIGITS - 1, Emin=-1, traps=_TRAPS)
"""Exact decimal arithmetic with results of at most `MOST_DIGITS`."""

DIGITS, FRACTION_DIGITS = 28, 18
"""A quotient has at least this many significant and fractional digits."""

_INTEGER = late_pattern(r"[+-]?[0-9]+")
_DECIMAL = late_pattern(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = late_pattern(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_END = 10**MOST_DIGITS

INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}
"""Least and greatest value of xsd:integer and the types derived from it (XSD 1.1 part 2, 3.4)."""


# --- lexical forms -------------------------------------------------------------------------------


def parse_integer(lexical: str) -> int:
    """The value of an xsd:integer lexical form; ValueError for other texts and for long numbers."""
    if not _INTEGER.fullmatch(lexical):
        raise ValueError(lexical)
    if len(lexical) <= MOST_DIGITS:
        return int(lexical)
    digits = lexical.lstrip("+-").lstrip("0")
    if len(digits) > MOST_DIGITS:
        raise ValueError("more digits than an integer may have")
    return int(lexical[0] + digits) if lexical[0] in "+-" else int(digits)


def in_range(value: int, datatype: str) -> bool:
    """Whether an integer lies in the value space of a type of `INTEGER_RANGES`."""
    low, high = INTEGER_RANGES[datatype]
    return (low is None or low <= value) and (high is None or value <= high)


def parse_decimal(lexical: str) -> Decimal:
    """The value of an xsd:decimal lexical form; ValueError for other texts and for long numbers."""
    if not _DECIMAL.fullmatch(lexical):
        raise ValueError(lexical)
    value = Decimal(lexical) or Decimal(0)  # xsd:decimal has no negative zero
    return value if len(lexical) <= MOST_DIGITS else bounded(value)


def parse_double(lexical: str) -> float:
    """The value of an xsd:double lexical form; ValueError for other texts."""
    if _DOUBLE.fullmatch(lexical):
        return float(lexical)
    if lexical in _SPECIAL:
        return _SPECIAL[lexical]
    raise ValueError(lexical)


def parse_float(lexical: str) -> Float:
    """The value of an xsd:float lexical form, rounded once; ValueError for other texts."""
    double = parse_double(lexical)
    if double and math.isfinite(double):
        return to_float32(Decimal(lexical))
    return Float(double)


def write_integer(value: int) -> str:
    """The canonical lexical form of an xsd:integer."""
    return str(value)


def write_decimal(value: Decimal) -> str:
    """The canonical lexical form of an xsd:decimal (XSD 1.1: `1`, `0.5`, `-12.25`)."""
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


def write_double(value: float) -> str:
    """The canonical lexical form of an xsd:double or xsd:float: `1.0E0`, `-1.25E-7`, `INF`."""
    if not math.isfinite(value):
        return "NaN" if value != value else "INF" if value > 0 else "-INF"
    if type(value) is Float:
        import numpy as np  # most programs that compile expressions write no float

        shortest = np.format_float_scientific(np.float32(value), unique=True)
    else:
        shortest = repr(float(value))
    sign = "-" if shortest[0] == "-" else ""
    number, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = number.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0E0"
    power = len(digits) - len(fraction) - 1 + int(exponent or 0)
    return f"{sign}{digits[0]}.{digits[1:].rstrip('0') or '0'}E{power}"


# --- promotion -----------------------------------------------------------------------------------


def to_double(value: Number) -> float:
    """Promotion to xsd:double; a number beyond its range becomes an infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_float32(value: Number) -> Float:
    """The nearest 32-bit float, ties to even, rounded once."""
    double = to_double(value)
    near: float = c_float(double).value
    if near == double or value == double or not math.isfinite(near):
        return Float(near)
    import numpy as np

    beyond = math.inf if double > near else -math.inf
    with np.errstate(over="ignore"):
        other = float(np.nextafter(np.float32(near), np.float32(beyond)))
    if (
        double - near == other - double
    ):  # `double` is halfway between two floats: the exact value decides
        return Float(other if (value > double) == (other > double) else near)
    return Float(near)


_RANK: dict[type, int] = {int: 0, Decimal: 1, Float: 2, float: 3}


def is_number(value: object) -> bool:
    """Whether a value is of one of the numeric types."""
    return type(value) in _RANK


def promote(a: Any, b: Any) -> tuple[Number, Number]:
    """Both operands in the wider of their types; ExpressionError if one is not a number.

    Integers and decimals stay as they are: Python compares them exactly.
    """
    try:
        rank = max(_RANK[type(a)], _RANK[type(b)])
    except KeyError:
        raise ExpressionError("not a number") from None
    if rank < 2:
        return a, b
    convert: Callable[[Number], Number] = to_float32 if rank == 2 else to_double
    return convert(a), convert(b)


# --- arithmetic ----------------------------------------------------------------------------------


def _arithmetic(
    exact: Callable[[Any, Any], Any],
    integer: Callable[[int, int], int],
    double: Callable[[float, float], float],
) -> Callable[[Any, Any], Number]:
    def apply(a: Any, b: Any) -> Number:
        a, b = promote(a, b)
        kind = type(a)
        if kind is float:
            return double(a, b)
        if kind is Float:
            # The double result of two floats, rounded again, is the float result: 53 >= 2 * 24 + 2.
            return Float(c_float(double(a, b)).value)
        if kind is int and type(b) is int:
            result = integer(a, b)
            if type(result) is not int or -_END < result < _END:  # a quotient is bounded already
                return result
            raise ExpressionError("the integer has too many digits")
        return _exactly(exact, a, b)

    return apply


def bounded(value: Decimal) -> Decimal:
    """The same decimal; ArithmeticError if it has more than `MOST_DIGITS`."""
    return _BOUNDED.plus(value) or Decimal(0)


def bounded_result(value: Decimal) -> Decimal:
    """The same decimal; ExpressionError if it has more than `MOST_DIGITS`."""
    try:
        return bounded(value)
    except ArithmeticError as error:
        raise ExpressionError("the number has too many digits") from error


def _exactly(operation: Callable[[Any, Any], Decimal], a: Any, b: Any) -> Decimal:
    try:
        return operation(a, b) or Decimal(0)
    except (Inexact, InvalidOperation, DivisionByZero, Overflow) as error:
        raise ExpressionError("decimal out of range") from error


def _divide_exact(a: int | Decimal, b: int | Decimal) -> Decimal:
    if not b:
        raise ExpressionError("division by zero")
    dividend, divisor = Decimal(a), Decimal(b)
    whole = dividend.adjusted() - divisor.adjusted() + 1
    if whole > MOST_DIGITS - FRACTION_DIGITS:
        raise ExpressionError("the quotient has too many digits")
    return Context(prec=max(DIGITS, whole + FRACTION_DIGITS)).divide(dividend, divisor)


def _divide_double(a: float, b: float) -> float:
    if b:
        return a / b
    if not a or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _divide_integer(a: int, b: int) -> Any:
    return _exactly(_divide_exact, a, b)


add = _arithmetic(_BOUNDED.add, operator.add, operator.add)
"""op:numeric-add"""
subtract = _arithmetic(_BOUNDED.subtract, operator.sub, operator.sub)
"""op:numeric-subtract"""
multiply = _arithmetic(_BOUNDED.multiply, operator.mul, operator.mul)
"""op:numeric-multiply"""
divide = _arithmetic(_divide_exact, _divide_integer, _divide_double)
"""op:numeric-divide: integers give a decimal; by zero is an error unless the type is floating."""


def negate(value: Any) -> Number:
    """op:numeric-unary-minus"""
    if type(value) is Decimal:
        return value.copy_negate() if value else value
    if type(value) is Float:
        return Float(-value)
    if type(value) in _RANK:
        return -value  # type: ignore[no-any-return]
    raise ExpressionError("not a number")
