"""The WHERE of a lift over columns: lanes of fields become lanes of all variables.

An expression without a form for columns is evaluated once for each distinct combination of the
terms that it reads, by the same functions that evaluate it row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.constants import constant_text
from spaseq.compiled.arrays import Bools, Bytes, Int64s
from spaseq.expr.casts import CASTS
from spaseq.expr.compile import Options, compile_filter
from spaseq.expr.env import DictEnv
from spaseq.expr.extension import known_functions
from spaseq.expr.uses import is_volatile
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.variables import variables_of, walk
from spaseq.lift.cells import read_time, time_format
from spaseq.lift.lanes import DATATYPES, Lane, LaneForm, NotColumns
from spaseq.lift.lift_plan import LiftPlan, LostValue, cast_of, shown_term, watched_where
from spaseq.lift.row_solutions import checked_term
from spaseq.rdf.columns.term_columns import text_array
from spaseq.rdf.terms.term import XSD, XSD_STRING, split_literal

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


Lanes = dict[str, Lane]
Test = Callable[[Lanes, int], Bools]
Maker = Callable[[Lanes, int], "Lane | None"]
_SAFE = "^[A-Za-z0-9_~-][A-Za-z0-9_.~-]*$"
"""Texts that make a valid IRI after any prefix that `_iri_parts` accepts."""

_COMPARE: dict[str, Callable[..., Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_SAME = {**DATATYPES, LaneForm.STRING: "string"}
"""The casts that change nothing."""

_MOST_EXACT = 2**53
_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


class LaneSolutions:
    """The WHERE of a lift, ready to run over lanes. A row has at most one solution."""

    def __init__(self, plan: LiftPlan, types: Mapping[str, str], decimal: str = ".") -> None:
        """NotColumns if the lift has more than BIND and FILTER, or a function that has a state.

        `lost` has the values that casts lost in the last block.
        """
        self._options = Options(base=plan.base, functions=known_functions())
        where = watched_where(plan, decimal)
        elements, self._watched = where.elements, where.casts
        self.lost: list[LostValue] = []
        if not all(isinstance(e, ast.Bind | ast.Filter) and _repeatable(e) for e in elements):
            raise NotColumns
        self._binds = [
            (e.var.name, self._bind(e.expr)) for e in elements if isinstance(e, ast.Bind)
        ]
        self._filters = [
            self._test(part)
            for e in elements
            if isinstance(e, ast.Filter)
            for part in (e.expr.operands if isinstance(e.expr, ast.And) else (e.expr,))
        ]

        self._casts = {
            name: self._cast(name, datatype, decimal)
            for name, datatype in types.items()
            if name in plan.fields.terms
        }

    def _cast(self, name: str, datatype: str, decimal: str) -> Maker:
        form = time_format(datatype)
        if form is None:
            return self._bind(cast_of(name, datatype, decimal))
        return lambda lanes, _: _formatted(lanes[name], form)

    def typed(self, lanes: Lanes, size: int) -> Lanes:
        """The lanes of fields, cast to the types that a user gave them.

        Raises:
            NotColumns: a value cannot be cast.
        """
        cast = {name: make(lanes, size) for name, make in self._casts.items()}
        for name, lane in cast.items():
            nulls = size if lane is None else lane.values.null_count
            if nulls != lanes[name].values.null_count:
                raise NotColumns
        return {**lanes, **{name: lane for name, lane in cast.items() if lane is not None}}

    def solutions(self, lanes: Lanes, size: int) -> tuple[Lanes, Int64s]:
        """(lanes of the rows with a solution, those rows); a missing variable is unbound.

        A FILTER is evaluated as soon as its variables are known, so that fewer rows have terms.
        """
        self.lost = []
        rows = np.arange(size, dtype=np.int64)
        bound = {name for name, _ in self._binds}
        waiting = self._filters
        steps: list[tuple[str, Maker | None]] = [*self._binds, ("", None)]
        for name, bind in steps:
            early = bind is not None and name in self._watched  # sees all rows
            ready = [test for test, names in waiting if not names & bound and not early]
            waiting = [(test, names) for test, names in waiting if names & bound or early]
            for test in ready:
                kept = test(lanes, len(rows))
                if not kept.all():
                    places = pa.array(np.flatnonzero(kept))
                    lanes = {v: lane.take(places) for v, lane in lanes.items()}
                    rows = rows[kept]
            if bind is not None:
                lane = bind(lanes, len(rows))
                if lane is not None:
                    lanes = {**lanes, name: lane}
                if name in self._watched:
                    self._count_lost(lanes, lane, *self._watched[name])
                bound.discard(name)
        return lanes, rows

    def _count_lost(self, lanes: Lanes, made: Lane | None, field: str, datatype: str) -> None:
        """Note the rows in which a field has a value and its cast has none."""
        given = lanes.get(field)
        if given is None or (made and made.values.null_count == given.values.null_count):
            return
        lost = given.values.is_valid()
        if made is not None:
            lost = pc.and_(lost, made.values.is_null())
        rows = np.flatnonzero(lost.to_numpy(zero_copy_only=False))
        if len(rows):
            (text,) = given.take(pa.array(rows[:1])).row_texts()
            value = LostValue(field, datatype, int(rows[0]), shown_term(text), len(rows))
            self.lost.append(value)

    def _bind(self, expr: ast.Expr) -> Maker:
        if isinstance(expr, ast.Var):
            return lambda lanes, _: lanes.get(expr.name)
        general = self._general(expr)
        if isinstance(expr, ast.FunctionCall) and expr.args and isinstance(expr.args[0], ast.Var):
            kind, name = expr.function.value.removeprefix(XSD), expr.args[0].name

            def cast(lanes: Lanes, size: int) -> Lane | None:
                lane = lanes.get(name)
                if lane is not None and _SAME.get(lane.form) == kind:
                    return lane
                made = None if lane is None else cast_of_strings(lane, kind)
                return general(lanes, size) if made is None else made

            return cast
        parts = self._iri_parts(expr)
        if parts is None:
            return general
        prefix, variable, suffix, text = parts

        def iri(lanes: Lanes, size: int) -> Lane | None:
            lane = lanes.get(variable)
            if lane is None:
                return None
            if lane.form is LaneForm.STRING or (text and lane.form is LaneForm.INTEGER):
                if lane.form is LaneForm.STRING and not _all_safe(lane.values):
                    return general(lanes, size)
                return Lane(LaneForm.IRI, lane.values, prefix, suffix)
            return general(lanes, size)

        return iri

    def _iri_parts(self, expr: ast.Expr) -> tuple[str, str, str, bool] | None:
        """(prefix, variable, suffix, whether in STR) of `IRI(CONCAT("...", ?f, "..."))`."""
        match expr:
            case ast.Call("IRI" | "URI", (ast.Call("CONCAT", args),)):
                pass
            case _:
                return None
        texts, variable, in_str = ["", ""], None, False
        for arg in args:
            match arg:
                case ast.Literal():
                    lexical, datatype, language = split_literal(constant_text(arg))
                    if datatype != XSD_STRING or language is not None:
                        return None
                    texts[variable is not None] += lexical
                case ast.Var(name) | ast.Call("STR", (ast.Var(name),)) if variable is None:
                    variable, in_str = name, isinstance(arg, ast.Call)
                case _:
                    return None
        if variable is None:
            return None
        term = checked_term(expr, self._options)
        for sample in ("x", "-1", "A.~_9"):
            text = term(DictEnv({variable: f'"{sample}"'}))
            if text != f"<{texts[0]}{sample}{texts[1]}>" or texts[0][-1:] not in ("/", "#"):
                return None
        return texts[0], variable, texts[1], in_str

    def _general(self, expr: ast.Expr) -> Maker:
        """Evaluate an expression once for each distinct combination of its terms."""
        term, names = checked_term(expr, self._options), sorted(variables_of(expr))

        def bind(lanes: Lanes, size: int) -> Lane | None:
            which, solutions = _distinct(lanes, names, size)
            known: dict[str, int] = {}
            codes = []
            for solution in solutions:
                text = term(DictEnv(solution))
                codes.append(-1 if text is None else known.setdefault(text, len(known)))
            if not known:
                return None
            row_codes = np.array(codes, np.int32)[which]
            indices = pa.array(row_codes, mask=row_codes < 0)
            return Lane(
                LaneForm.TEXT, pa.DictionaryArray.from_arrays(indices, text_array([*known]))
            )

        return bind

    def _test(self, expr: ast.Expr) -> tuple[Test, frozenset[str]]:
        test, names = compile_filter(expr, self._options), sorted(variables_of(expr))

        def general(lanes: Lanes, size: int) -> Bools:
            which, solutions = _distinct(lanes, names, size)
            passed: Bools = np.array([test(DictEnv(s)) for s in solutions], np.bool_)[which]
            return passed

        comparison = _comparison(expr)
        if comparison is None:
            return general, variables_of(expr)
        operand, compare, constant = comparison
        value = self._bind(operand)

        def compared(lanes: Lanes, size: int) -> Bools:
            lane = value(lanes, size)
            if lane is None or lane.form not in (LaneForm.INTEGER, LaneForm.DOUBLE):
                return general(lanes, size)
            values = lane.values.fill_null(0).to_numpy(zero_copy_only=False)
            valid = lane.values.is_valid().to_numpy(zero_copy_only=False)
            passed: Bools = compare(values, constant) & valid
            return passed

        return compared, variables_of(expr)


def _repeatable(element: ast.Node) -> bool:
    """Whether equal terms always give equal results."""
    for node in walk(element):
        if isinstance(node, ast.FunctionCall):
            if node.function.value not in CASTS and node.function.value != XSD_STRING:
                return False
        elif isinstance(node, ast.Call) and is_volatile(node):
            return False
    return True


def _all_safe(values: Any) -> bool:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary
    if pc.all(pc.ascii_is_alnum(values)).as_py() is True:
        return True
    safe = pc.all(pc.match_substring_regex(values, _SAFE)).as_py()
    return safe is None or bool(safe)


def _comparison(expr: ast.Expr) -> tuple[ast.Expr, Callable[..., Any], int] | None:
    """(operand, function, integer) of a comparison with an integer that float64 has exactly.

    The operand is a variable or its cast.
    """
    match expr:
        case ast.Compare(op, ast.Var() | ast.FunctionCall() as operand, ast.Literal() as constant):
            pass
        case ast.Compare(op, ast.Literal() as constant, ast.Var() | ast.FunctionCall() as operand):
            pass
        case _:
            return None
    if isinstance(operand, ast.FunctionCall) and not (
        len(operand.args) == 1 and isinstance(operand.args[0], ast.Var)
    ):
        return None
    value = decode(constant_text(constant))
    if type(value) is not int or abs(value) > _MOST_EXACT:
        return None
    swapped = isinstance(expr.left, ast.Literal)
    return operand, _COMPARE[_SWAPPED[op] if swapped else op], value


def _distinct(
    lanes: Lanes, names: Sequence[str], size: int
) -> tuple[Int64s, list[dict[str, str | None]]]:
    """(the number of each row's combination, combinations of the terms of some variables)."""
    bound = [name for name in names if name in lanes]
    which = np.zeros(size, np.int64)
    read: list[tuple[str, Any, list[str | None]]] = []
    for name in bound:
        codes, lane = lanes[name].encoded()
        read.append((name, codes, [*lane.texts().to_pylist(), None]))
        _, which = np.unique(which, return_inverse=True)
        which = which * (len(lane) + 1) + codes + 1
    _, first, which = np.unique(which, return_index=True, return_inverse=True)
    solutions: list[dict[str, str | None]] = [{} for _ in first]
    for name, codes, texts in read:
        for solution, code in zip(solutions, codes[first].tolist(), strict=True):
            solution[name] = texts[code]
    return which.astype(np.int64), solutions


def _formatted(lane: Lane, form: str) -> Lane:
    """The times in strings of a format; null where there is none."""
    if lane.form is not LaneForm.STRING:
        raise NotColumns
    codes, distinct = lane.encoded()
    times = [read_time(text, form) for text in distinct.values.to_pylist()]
    moments = [None if t is None else (t - _EPOCH) // _MICROSECOND for t in times]
    indices = pa.array(codes, mask=codes < 0)
    return Lane(LaneForm.MOMENT, pa.array(moments, pa.int64()).take(indices))
