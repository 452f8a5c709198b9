"""The operators of SPARQL 1.1 section 17.3: effective boolean values, comparison, arithmetic; and
closures for three-valued logic, IF, COALESCE and IN (section 17.4.1).

Two literals with known and disjoint value spaces (`"1"` and `1`, `"a"` and `"a"@en`) are unequal.
RDFterm-equal is an error only if the value of a literal is unknown; a language-tagged string is
never equal to such a literal. Beyond the table, dates, times, durations and their sums work as in
XPath functions 3.1. An xsd:date with a time zone and one without are ordered only if the order is
the same for every missing zone (XML Schema 1.0 Datatypes, section 3.2.7.4). The same holds for all
moments but xsd:dateTime.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from spaseq.expr import numbers, temporal
from spaseq.expr.env import Env, ExpressionError
from spaseq.expr.numbers import Float, is_number
from spaseq.expr.temporal import Duration, Moment
from spaseq.expr.values import (
    BlankNodeValue,
    IriValue,
    LangString,
    Opaque,
    TripleTermValue,
    Value,
    decode,
)

_ORDERED = frozenset((int, Decimal, Float, float, str, bool))  # Python's own order is SPARQL's

R = TypeVar("R")
Test: TypeAlias = Callable[[Env], bool]
ValueOf: TypeAlias = Callable[[Env], Value]


def boolean(value: Value) -> bool:
    """The effective boolean value (section 17.2.2); ExpressionError if there is none."""
    kind = type(value)
    if kind is bool or kind is int or kind is str or kind is Decimal:
        return bool(value)
    if kind is float or kind is Float:
        return value == value and value != 0
    raise ExpressionError("no effective boolean value")


# --- comparison ----------------------------------------------------------------------------------


def equal(a: Value, b: Value) -> bool:
    """`a = b`: by value where both values are known, else RDFterm-equal."""
    kind = type(a)
    if kind is type(b) and kind in _ORDERED:
        return a == b
    if is_number(a) and is_number(b):
        x, y = numbers.promote(a, b)
        return x == y
    if isinstance(a, Moment) and isinstance(b, Moment):
        return a.kind == b.kind and operator.eq(*temporal.instants(a, b))
    if isinstance(a, Duration) and isinstance(b, Duration):
        return a.months == b.months and a.seconds == b.seconds
    if isinstance(a, TripleTermValue) and isinstance(b, TripleTermValue):
        pairs = zip(a.terms, b.terms, strict=True)
        return all(equal(decode(x), decode(y)) for x, y in pairs)
    return _same_term(a, b)


def _same_term(a: Value, b: Value) -> bool:
    if a == b and type(a) is type(b):
        return True
    unknown = isinstance(a, Opaque) or isinstance(b, Opaque)
    apart = (IriValue, BlankNodeValue, TripleTermValue, LangString)
    if unknown and not isinstance(a, apart) and not isinstance(b, apart):
        raise ExpressionError("literals of unknown value")
    return False


def not_equal(a: Value, b: Value) -> bool:
    """`a != b`"""
    return not equal(a, b)


def comparable(a: Value, b: Value) -> tuple[Any, Any]:
    """Both as Python values in the order of SPARQL's `<`; ExpressionError if they have none.

    Triple terms are ordered by the first terms that are not equal.
    """
    if isinstance(a, TripleTermValue) and isinstance(b, TripleTermValue):
        for x, y in zip(map(decode, a.terms), map(decode, b.terms), strict=True):
            if not equal(x, y):
                return (x, y) if type(x) is type(y) and type(x) in _ORDERED else comparable(x, y)
        return 0, 0
    if isinstance(a, Moment) and isinstance(b, Moment) and a.kind == b.kind:
        return temporal.instants(a, b)
    if isinstance(a, Duration) and isinstance(b, Duration):
        return _comparable_durations(a, b)
    return numbers.promote(a, b)


def _comparable_durations(a: Duration, b: Duration) -> tuple[Any, Any]:
    if not a.months and not b.months:
        return a.seconds, b.seconds
    if not a.seconds and not b.seconds:
        return a.months, b.months
    raise ExpressionError("durations of months and of seconds have no order")


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def apply(a: Value, b: Value) -> bool:
        kind = type(a)
        if kind is type(b) and kind in _ORDERED:
            return compare(a, b)
        return compare(*comparable(a, b))

    return apply


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": equal,
    "!=": not_equal,
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
}

# --- arithmetic ----------------------------------------------------------------------------------


def add(a: Any, b: Any) -> Value:
    """`a + b`: numbers, moment + duration, durations."""
    if isinstance(b, Duration):
        if isinstance(a, Duration):
            return temporal.add_durations(a, b)
        if isinstance(a, Moment):
            return temporal.add_duration(a, b)
    if isinstance(a, Duration) and isinstance(b, Moment):
        return temporal.add_duration(b, a)
    return numbers.add(a, b)


def subtract(a: Any, b: Any) -> Value:
    """`a - b`: numbers, moment - moment, moment - duration, durations."""
    if isinstance(a, Moment):
        if isinstance(b, Moment):
            return temporal.between(a, b)
        if isinstance(b, Duration):
            return temporal.add_duration(a, b, -1)
    if isinstance(a, Duration) and isinstance(b, Duration):
        return temporal.add_durations(a, b, -1)
    return numbers.subtract(a, b)


def multiply(a: Any, b: Any) -> Value:
    """`a * b`: numbers, a duration and a number."""
    if isinstance(a, Duration):
        return temporal.times_number(a, b)
    if isinstance(b, Duration):
        return temporal.times_number(b, a)
    return numbers.multiply(a, b)


def divide(a: Any, b: Any) -> Value:
    """`a / b`: numbers, duration / number, durations."""
    if isinstance(a, Duration):
        if isinstance(b, Duration):
            return temporal.ratio(a, b)
        return temporal.divided_by_number(a, b)
    return numbers.divide(a, b)


ARITHMETIC: dict[str, Callable[[Any, Any], Value]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
}


def plus(a: Any) -> Value:
    """Unary plus: the number, unchanged."""
    if not is_number(a):
        raise ExpressionError("not a number")
    return a  # type: ignore[no-any-return]


SIGNS: dict[str, Callable[[Any], Value]] = {"+": plus, "-": numbers.negate}


def conjunction(tests: Sequence[Test]) -> Test:
    """`&&`: false if an operand is false, else an error if an operand is an error, else true."""
    return _connective(tests, decisive=False)


def disjunction(tests: Sequence[Test]) -> Test:
    """`||`: true if an operand is true, else an error if an operand is an error, else false."""
    return _connective(tests, decisive=True)


def _connective(tests: Sequence[Test], decisive: bool) -> Test:
    def run(env: Env) -> bool:
        failure = None
        for test in tests:
            try:
                if test(env) is decisive:
                    return decisive
            except ExpressionError as error:
                failure = error
        if failure is not None:
            raise failure
        return not decisive

    return run


def negation(test: Test) -> Test:
    """`!`: an error stays an error."""
    return lambda env: not test(env)


def conditional(
    test: Test, then: Callable[[Env], R], otherwise: Callable[[Env], R]
) -> Callable[[Env], R]:
    """IF: it evaluates only one of the branches."""
    return lambda env: then(env) if test(env) else otherwise(env)


def coalescence(operands: Sequence[Callable[[Env], R]]) -> Callable[[Env], R]:
    """COALESCE: the first operand without an error."""

    def run(env: Env) -> R:
        for operand in operands:
            try:
                return operand(env)
            except ExpressionError:
                continue
        raise ExpressionError("every operand of COALESCE is an error")

    return run


def membership(operand: ValueOf, options: Sequence[ValueOf]) -> Test:
    """IN: true if an option is equal, else an error if a comparison is an error, else false."""

    def run(env: Env) -> bool:
        value = operand(env)
        failure = None
        for option in options:
            try:
                if equal(value, option(env)):
                    return True
            except ExpressionError as error:
                failure = error
        if failure is not None:
            raise failure
        return False

    return run
