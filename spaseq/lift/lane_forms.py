"""Expressions over whole lanes: casts of usual texts, IRIs of a field, comparisons with integers.

Each gives the terms that the same expression gives row by row, or None if a value is not usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Bools, Bytes
from spaseq.expr.env import DictEnv, Env
from spaseq.lang import ast
from spaseq.lift.lanes import DATATYPES, Column, Lane, LaneForm
from spaseq.lift.pruned_lifts import comparison, spelled_iri
from spaseq.rdf.terms.term import XSD, literal_text

_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_CASTS: dict[str, tuple[LaneForm, str, Any]] = {
    "integer": (LaneForm.INTEGER, "-?[0-9]{1,18}", pa.int64()),
    "double": (LaneForm.DOUBLE, "-?[0-9]{1,30}([.][0-9]{1,30})?(e-?[0-9]{1,2})?", pa.float64()),
    "decimal": (LaneForm.DECIMAL, "-?[0-9]{1,15}([.][0-9]{1,9})?", pa.decimal128(24, 9)),
    "dateTime": (
        LaneForm.MOMENT,
        f"[12][0-9]{{3}}-[01][0-9]-[0-3][0-9]T{_TIME}([.][0-9]{{1,6}})?Z",
        pa.timestamp("us", "UTC"),
    ),
}
"""(form, the texts that are cast as a whole, type) by datatype."""

_MOST_DIGITS = 15
"""Number of digits that fit an int64, and the whole part of the decimals above."""


def _match(texts: Any, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, f"^({pattern})$")).as_py() is not False


def _are_plain(form: LaneForm, texts: Any) -> bool:
    """Whether all texts have a form that is recognised fast: `17`, `2026-01-05T09:00:00.5Z`."""
    if form is LaneForm.MOMENT:
        return _are_moments(texts)
    if form not in (LaneForm.INTEGER, LaneForm.DECIMAL):
        return False
    if pc.all(pc.ascii_is_decimal(texts)).as_py() is not True:
        return False
    return bool(pc.max(pc.binary_length(texts)).as_py() <= _MOST_DIGITS)


def _are_moments(texts: Any) -> bool:
    """Whether all texts are dateTimes in UTC with equally many digits, in years 1000 to 2999."""
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    size = lengths["min"]
    form = _MOMENTS.get(size or 0)
    if texts.null_count or form is None or size != lengths["max"]:
        return False
    offsets = np.frombuffer(texts.buffers()[1], np.int64)  # large strings
    begin = int(offsets[texts.offset])
    data = np.frombuffer(texts.buffers()[2], np.uint8)[begin : begin + size * len(texts)]
    least, span = form
    return bool((data.reshape(-1, size) - least <= span).all())


def _moment_form(size: int) -> tuple[Bytes, Bytes]:
    """(least byte, range above it) at each position of a dateTime of this length."""
    text = "1000-00-00T00:00:00" + (f".{'0' * (size - 21)}" if size > 20 else "") + "Z"
    least = np.frombuffer(text.encode(), np.uint8)
    return least, np.where(least == ord("0"), 9, least == ord("1")).astype(np.uint8)


_MOMENTS = {size: _moment_form(size) for size in (20, *range(22, 28))}


def cast_of_strings(lane: Lane, datatype: str) -> Lane | None:
    """The values of strings cast to a datatype of XSD; None if a text is not usual."""
    known = _CASTS.get(datatype)
    if known is None or lane.form is not LaneForm.STRING:
        return None
    if pa.types.is_dictionary(lane.values.type):
        distinct = cast_of_strings(Lane(lane.form, lane.values.dictionary), datatype)
        return None if distinct is None else distinct.take(lane.values.indices)
    form, usual, kind = known
    if not (_are_plain(form, lane.values) or _match(lane.values, usual)):
        return None
    try:
        values = lane.values.cast(kind)
    except pa.ArrowInvalid:  # the 30th of February
        return None
    return Lane(form, values.cast(pa.int64()) if form is LaneForm.MOMENT else values)


Columns = Mapping[str, Column]
One = Callable[[str], "str | None"]
"""The term that an expression gives for a text."""

Term = Callable[[Env], "str | None"]
Form = Callable[[Columns], "Lane | None"]
_SAFE = r"[A-Za-z0-9_~\p{L}-][A-Za-z0-9_.~\p{L}-]*"
"""Texts that make a valid IRI after any prefix that `lane_form` accepts."""

_COMPARE: dict[str, Callable[..., Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}
_SAME = {**DATATYPES, LaneForm.STRING: "string"}
"""The casts that change nothing."""

_MOST_EXACT = 2**53


def _of_text(term: Term, name: str, text: str) -> str | None:
    """The value of an expression where a variable is a string."""
    return term(DictEnv({name: literal_text(text)}))


def _each(lane: Lane, usual: str, of_usual: Callable[[Lane], Lane | None], one: One) -> Lane | None:
    """The values of an expression over strings, of which not all are usual (a regular expression).

    The others are evaluated one by one. None if such a one gives a term that a lane of the usual
    ones cannot hold.
    """
    values = lane.values
    if pa.types.is_dictionary(values.type):
        distinct = _each(Lane(lane.form, values.dictionary), usual, of_usual, one)
        return None if distinct is None else distinct.take(values.indices)
    is_usual = pc.match_substring_regex(values, f"^({usual})$")
    made = of_usual(Lane(lane.form, pc.if_else(is_usual, values, pa.scalar(None, values.type))))
    if made is None:
        return None
    odd = values.filter(pc.invert(is_usual)).unique()
    return None if any(one(text) is not None for text in odd.to_pylist()) else made


def lane_form(expr: ast.Expr, term: Term) -> Form | None:
    """The form of an expression over lanes, if it has one; `term` evaluates it for one row."""
    if isinstance(expr, ast.FunctionCall) and expr.args and isinstance(expr.args[0], ast.Var):
        kind, name = expr.function.value.removeprefix(XSD), expr.args[0].name

        def cast(columns: Columns) -> Lane | None:
            lane = columns.get(name)
            if not isinstance(lane, Lane):
                return None
            if _SAME.get(lane.form) == kind:
                return lane
            whole = cast_of_strings(lane, kind)
            if whole is not None or kind not in _CASTS or lane.form is not LaneForm.STRING:
                return whole
            of_usual = partial(cast_of_strings, datatype=kind)
            return _each(lane, _CASTS[kind][1], of_usual, partial(_of_text, term, name))

        return cast
    parts = spelled_iri(expr)
    if parts is None or parts.prefix[-1] not in "/#":
        return None
    prefix, suffix = parts.prefix, parts.suffix
    for sample in ("x", "-1", "A.~_9", "\u00e9\u4e2d"):
        if term(DictEnv({parts.field: f'"{sample}"'})) != f"<{prefix}{sample}{suffix}>":
            return None

    def of_safe(lane: Lane) -> Lane:
        return Lane(LaneForm.IRI, lane.values, prefix, suffix)

    def iri(columns: Columns) -> Lane | None:
        lane = columns.get(parts.field)
        if not isinstance(lane, Lane):
            return None
        if lane.form is LaneForm.STRING:
            if _all_safe(lane.values):
                return of_safe(lane)
            return _each(lane, _SAFE, of_safe, partial(_of_text, term, parts.field))
        if lane.form is LaneForm.INTEGER and parts.in_str:
            return Lane(LaneForm.IRI, lane.values, prefix, suffix)
        return None

    return iri


def lane_test(expr: ast.Expr) -> Callable[[Columns], Bools | None] | None:
    """The test [n] of a comparison over a lane, if it is one with an integer; None: not usual."""
    found = comparison(expr)
    if found is None or type(found[2]) is not int or abs(found[2]) > _MOST_EXACT:
        return None
    operator, operand, constant = found
    form = lane_form(operand, lambda _: None)
    if form is None and not isinstance(operand, ast.Var):
        return None
    compare = _COMPARE[operator]

    def compared(columns: Columns) -> Bools | None:
        lane = columns.get(operand.name) if isinstance(operand, ast.Var) else None
        if form is not None:
            lane = form(columns)
        if not isinstance(lane, Lane) or lane.form not in (LaneForm.INTEGER, LaneForm.DOUBLE):
            return None
        values = lane.values.fill_null(0).to_numpy(zero_copy_only=False)
        passed: Bools = compare(values, constant) & lane.bound()
        return passed

    return compared


def _all_safe(values: Any) -> bool:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary
    if pc.all(pc.ascii_is_alnum(values)).as_py() is True:
        return True
    return _match(values, _SAFE)
