"""float64 approximations of numbers and dateTimes, each with a kind that says how exact it is.

float64 compares two terms correctly if both numbers are exact in float64, if SPARQL itself promotes
the pair to double, or if both are rounded and differ, because rounding keeps order.
`decided` says where; all other rows need the comparison of the terms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Float64s, Int8s, Int32s, Int64s
from spaseq.expr.numbers import Float, to_double
from spaseq.expr.temporal import Moment
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import (
    DECIMAL_PLACES,
    DECIMAL_TYPE,
    INTEGER_TYPE,
    NumberColumn,
    distinct_codes,
)
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.terms.number_kinds import (
    DATE_TIME,
    DOUBLE,
    EXACT,
    FLOAT,
    KINDS,
    OTHER,
    ROUNDED,
    SHORT,
    UNKNOWN,
)
from spaseq.rdf.terms.term import XSD

_DIGITS = 15
"""Maximum number of digits of a number here; a sum of two is exact in float64."""

_SMALL = rf'^"-?[0-9]{{1,{_DIGITS}}}"\^\^<{XSD}integer>$'

_WHOLE_DIGITS = _DIGITS - DECIMAL_PLACES
_SHORT = rf'^"-?[0-9]{{1,{_WHOLE_DIGITS}}}(\.[0-9]{{1,{DECIMAL_PLACES}}})?"\^\^<{XSD}decimal>$'
"""A decimal of at most `_DIGITS` digits, at most `DECIMAL_PLACES` of them behind the point."""


def whole_numbers(texts: Sequence[str | None]) -> tuple[Bools, Int64s]:
    """(which texts [n] are small xsd:integers, their values [n], 0 for the others)."""
    is_small, values = _read(texts, _SMALL, INTEGER_TYPE, pa.int64())
    integers = np.zeros(len(texts), np.int64)
    integers[is_small] = values
    return is_small, integers


def _read(
    texts: Sequence[str | None], form: str, datatype: str, kind: pa.DataType
) -> tuple[Bools, Any]:
    """(which texts [n] have a form, their values, as an array of an Arrow type)."""
    array = pa.array(texts, pa.large_string())
    has_form = pc.fill_null(pc.match_substring_regex(array, form), False)
    digits = pc.utf8_slice_codeunits(array.filter(has_form), 1, -len(datatype) - 1)
    values = pc.cast(digits, kind).to_numpy(zero_copy_only=False)
    return has_form.to_numpy(zero_copy_only=False), values


def of_decimals(values: Float64s, places: int = DECIMAL_PLACES) -> tuple[Int64s, Bools]:
    """(m, whether m / 10**places is the decimal), each [n], of decimals of at most 15 digits.

    The float64 nearest to such a decimal is that of no other one. So m is right if m / 10**places,
    which has at most 15 digits, too, has the same float64.

    >>> m, fits = of_decimals(np.array([0.1, -2.5, 1e-10]))
    >>> m[:2].tolist(), fits.tolist()
    ([100000, -2500000], [True, True, False])
    """
    with np.errstate(invalid="ignore", over="ignore"):
        m = np.rint(values * 10**places)
        fits: Bools = (np.abs(m) < 10**_DIGITS) & (m / 10**places == values)
        return np.where(fits, m, 0).astype(np.int64), fits


def are_short(values: Int64s) -> bool:
    """Whether decimals, given times 10**DECIMAL_PLACES, have at most 15 digits."""
    return bool((np.abs(values) < 10**_DIGITS).all())


def sum_of(expr: ast.Expr) -> ast.Arithmetic | None:
    """The sum or difference of two variables that an expression is, unless it is an error."""
    match expr:
        case ast.Call("COALESCE", (ast.Arithmetic() as first, *_)):
            return sum_of(first)
        case ast.Arithmetic(op, ast.Var(), ast.Var()) if op in "+-":
            return expr
    return None


COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _decisive() -> tuple[Bools, Bools]:
    """Tables [kind, kind]: pairs that float64 decides always, and if their values differ."""
    always = np.zeros((len(KINDS), len(KINDS)), dtype=np.bool_)
    for number in (EXACT, ROUNDED, DOUBLE, FLOAT, SHORT):
        always[DOUBLE, number] = always[number, DOUBLE] = True
    always[np.ix_((EXACT, SHORT), (EXACT, SHORT))] = True
    always[FLOAT, FLOAT] = True
    untied = always.copy()
    untied[np.ix_((EXACT, ROUNDED, SHORT), (EXACT, ROUNDED, SHORT))] = True
    untied[DATE_TIME, DATE_TIME] = True
    return always, untied


_ALWAYS, _UNTIED = _decisive()


def doubles_of_constant(term: str, rows: int) -> NumberColumn:
    """The same N-Triples text in every row; the arrays are read-only."""
    value, kind = double_of(term)
    return NumberColumn(np.broadcast_to(value, rows), np.broadcast_to(np.int8(kind), rows))


def always_decide(left: NumberColumn, right: NumberColumn) -> bool:
    """Whether comparing any two values always equals comparing the two terms."""
    left_kinds, others = (np.flatnonzero(np.bincount(n.kind)) for n in (left, right))
    return bool(_ALWAYS[np.ix_(left_kinds, others)].all())


def decided(left: NumberColumn, right: NumberColumn) -> Bools:
    """[n] whether comparing the two values equals comparing the two terms."""
    pair = left.kind * np.int8(len(KINDS)) + right.kind
    always: Bools = _ALWAYS.take(pair)
    if always.all():
        return always
    is_decided: Bools = always | (_UNTIED.take(pair) & (left.value != right.value))
    return is_decided


def doubles_of(codes: Int32s, terms: Sequence[str]) -> NumberColumn:
    """The terms of codes [n] into `terms`, -1 for unbound; each distinct one decoded once."""
    table = term_table(terms)
    value, kind = table.numbers(codes)
    rest = np.flatnonzero(kind == UNKNOWN)
    if len(rest):
        used, which = distinct_codes(codes[rest], len(table))
        doubles, kinds = _decoded(table.take(used.astype(np.int32)))
        value[rest], kind[rest] = doubles[which], kinds[which]
    return NumberColumn(value, kind)


def _decoded(texts: Sequence[str]) -> tuple[Float64s, Int8s]:
    """(values, kinds) [n] of n terms."""
    value, kind = np.zeros(len(texts)), np.full(len(texts), EXACT, np.int8)
    rest: Sequence[int] = range(len(texts))
    if len(texts) >= thresholds.current.summed_rows:
        is_whole, value[:] = whole_numbers(texts)
        is_short, values = _read(texts, _SHORT, DECIMAL_TYPE, pa.float64())
        value[is_short] = values + 0.0  # no decimal is -0.0
        kind[is_short] = np.where(of_decimals(values)[0] % 5**DECIMAL_PLACES == 0, EXACT, SHORT)
        rest = np.flatnonzero(~(is_whole | is_short)).tolist()
    for i in rest:
        value[i], kind[i] = double_of(texts[i])
    return value, kind


def double_of(term: str) -> tuple[float, int]:
    """float64 approximation of a term, with its kind; NaN and OTHER for a term without a number."""
    value = decode(term)
    kind = type(value)
    if kind is float:
        return value, DOUBLE  # type: ignore[return-value]
    if kind is Float:
        return float(value), FLOAT  # type: ignore[arg-type]
    if isinstance(value, int) and kind is int:
        double = to_double(value)
        return double, EXACT if double == value else ROUNDED
    if isinstance(value, Decimal):
        return _of_decimal(value)
    if isinstance(value, Moment) and value.kind == "dateTime":
        return float(value.instant), DATE_TIME
    return np.nan, OTHER


def _of_decimal(value: Decimal) -> tuple[float, int]:
    double = to_double(value)
    digits = value.as_tuple().digits
    if double != value:
        return double, SHORT if len(digits) <= 15 else ROUNDED
    is_exact = len(digits) <= 15 or int("".join(map(str, digits))) < 2**53
    return double, EXACT if is_exact else ROUNDED
