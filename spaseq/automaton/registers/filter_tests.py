"""FILTERs between steps as edge tests: comparisons of two numbers.

A FILTER is partially evaluated for each edge of its GPM, because an edge knows whether a repetition
has begun. The rest must be a conjunction of comparisons. An error counts as false. A compared
number may be computed from the value of one variable, once for each solution. Or it is an aggregate
over the repetitions of a loop so far, which a register accumulates. Times of events (NOW and
TIMESTAMP) and their differences are compared in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from spaseq.automaton.program.nfa import NoKernel
from spaseq.automaton.registers.compiled.edge_tests import (
    FLIPPED,
    EdgeTest,
    EdgeTests,
    Number,
    Operator,
    Place,
    Read,
    RunningValue,
    RunValue,
    SolutionValue,
)
from spaseq.expr.temporal import Duration
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import is_now
from spaseq.records import record

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


_NUMERIC = ("ABS", "CEIL", "FLOOR", "ROUND")


Lookup: TypeAlias = Callable[[Read], Place]
"""Finds the place of a value at one edge."""


def tests_of(condition: ast.Expr, lookup: Lookup) -> EdgeTests | None:
    """Reduce a FILTER to tests at an edge; None if it cannot hold there.

    Raises:
        NoKernel: the FILTER is more than a conjunction of such tests.
    """
    match condition:
        case ast.And(operands):
            return _conjunction([tests_of(o, lookup) for o in operands])
        case ast.Or(operands):
            return _disjunction([tests_of(o, lookup) for o in operands])
        case ast.Call("BOUND", (ast.Var() | ast.Prev() as variable,)):
            return None if lookup(variable) is None else ()
        case ast.Not(ast.Call("BOUND", (ast.Var() | ast.Prev() as variable,))):
            return () if lookup(variable) is None else None
        case ast.Compare(op, left, right) if gap := gap_of(op, left, right):
            return _timed(gap, lookup(gap.left), lookup(gap.right))
        case ast.Compare(op, left, right):
            return _compared(op, _operand(left, lookup), _operand(right, lookup))
    raise NoKernel("a FILTER is more than comparisons")


def _timed(gap: TimeGap, left: Place, right: Place) -> EdgeTests | None:
    if left is None or right is None:
        return None
    first = Number(left.variable, offset_ms=0)
    match left, right:
        case SolutionValue(), RunValue(other):
            return (EdgeTest(first, gap.operator, Number(other, offset_ms=gap.ms)),)
        case RunValue(other), SolutionValue(number):
            last = Number(other, offset_ms=-gap.ms)
            return (EdgeTest(Number(number, offset_ms=0), FLIPPED[gap.operator], last),)
        case RunValue(), RunValue(other):
            last = Number(other, offset_ms=gap.ms)
            return (EdgeTest(first, gap.operator, last, left_in_run=True),)
    raise NoKernel("a FILTER compares NOW() with NOW()")


def _conjunction(operands: list[EdgeTests | None]) -> EdgeTests | None:
    tests: list[EdgeTest] = []
    for operand in operands:
        if operand is None:
            return None
        tests += operand
    return tuple(tests)


def _disjunction(operands: list[EdgeTests | None]) -> EdgeTests | None:
    possible = [operand for operand in operands if operand is not None]
    if () in possible:
        return ()
    if len(possible) > 1:
        raise NoKernel("a FILTER has alternatives")
    return possible[0] if possible else None


@record
class _Operand:
    """A side of a comparison: an expression over one variable, or a constant (no place)."""

    expr: ast.Expr
    place: Place

    @property
    def number(self) -> Number:
        if self.place is None:
            return Number("", formula=self.expr)
        if isinstance(self.place, RunningValue):
            return self.place.number
        formula = None if isinstance(self.expr, ast.Var) else self.expr
        return Number(self.place.variable, formula=formula)


def _operand(expr: ast.Expr, lookup: Lookup) -> _Operand | None:
    """A side of a comparison, given which variables are bound; None if it is an error."""
    match expr:
        case ast.Var() | ast.Prev() | ast.Aggregate():
            value = lookup(expr)
            return None if value is None else _Operand(ast.Var(value.variable), value)
        case ast.Literal():
            return _Operand(expr, None)
        case ast.Call("COALESCE", args):
            return _coalesced([_operand(arg, lookup) for arg in args])
        case ast.Sign(op, operand):
            inner = _plain(_operand(operand, lookup))
            return None if inner is None else _Operand(ast.Sign(op, inner.expr), inner.place)
        case ast.Call(function, (argument,)) if function in _NUMERIC:
            inner = _plain(_operand(argument, lookup))
            if inner is None:
                return None
            return _Operand(ast.Call(function, (inner.expr,)), inner.place)
        case ast.Arithmetic(op, left, right):
            one, other = _operand(left, lookup), _operand(right, lookup)
            return _computed(op, _plain(one), _plain(other))
    raise NoKernel("a FILTER compares more than numbers and what is computed of them")


def _plain(operand: _Operand | None) -> _Operand | None:
    """The same operand of a formula."""
    if operand is not None and isinstance(operand.place, RunningValue):
        raise NoKernel("a FILTER computes with an aggregate of the repetitions so far")
    return operand


def _coalesced(args: list[_Operand | None]) -> _Operand | None:
    """The first argument that is no error, where that is certain."""
    known = [arg for arg in args if arg is not None]
    if len(known) > 1 and not isinstance(known[0].expr, ast.Var | ast.Literal):
        raise NoKernel("an argument of COALESCE may be an error")
    return known[0] if known else None


def _computed(
    op: Literal["+", "-", "*", "/"], left: _Operand | None, right: _Operand | None
) -> _Operand | None:
    if left is None or right is None:
        return None
    if left.place is not None and right.place is not None and left.place != right.place:
        raise NoKernel("a FILTER computes with values of several variables")
    return _Operand(ast.Arithmetic(op, left.expr, right.expr), left.place or right.place)


def _of_two(op: Operator, left: RunningValue, right: RunningValue) -> EdgeTests:
    """The comparison of two aggregates, one of which the solution does not change."""
    if left.place == "both":
        left, op, right = right, FLIPPED[op], left
    if left.place == "both":
        raise NoKernel("a FILTER compares two aggregates of the repetitions so far")
    in_run = left.place == "run"
    return (EdgeTest(left.number, op, right.number, in_run, right.place),)


def _compared(op: Operator, left: _Operand | None, right: _Operand | None) -> EdgeTests | None:
    if left is None or right is None:
        return None
    match left.place, right.place:
        case (SolutionValue() | None, RunValue()):
            return (EdgeTest(left.number, op, right.number),)
        case (RunValue(), SolutionValue() | None):
            return (EdgeTest(right.number, FLIPPED[op], left.number),)
        case (RunValue(), RunValue()):
            return (EdgeTest(left.number, op, right.number, left_in_run=True),)
        case (RunningValue(), RunningValue()):
            return _of_two(op, left.place, right.place)
        case (place, RunningValue() as running):
            in_run = isinstance(place, RunValue)
            return (EdgeTest(left.number, op, right.number, in_run, running.place),)
        case (RunningValue() as running, place):
            in_run = isinstance(place, RunValue)
            return (EdgeTest(right.number, FLIPPED[op], left.number, in_run, running.place),)
    return (EdgeTest(left.number, op, right.number, right_in="solution"),)


def equality_test(condition: ast.Expr, lookup: Lookup) -> EdgeTests:
    """A test that a FILTER implies, if it says that a term of the solution equals one of the run.

    Equal terms have one `equal` number. Other FILTERs imply none here.
    """
    match condition:
        case ast.Not(ast.Not(operand)):
            return equality_test(operand, lookup)
        case ast.Compare("=", one, other) | ast.Call("SAMETERM", (one, other)):
            try:
                sides = _operand(one, lookup), _operand(other, lookup)
            except NoKernel:
                return ()
            places = [s.place for s in sides if s is not None and isinstance(s.expr, ast.Var)]
            match places:
                case [SolutionValue(own), RunValue(kept)] | [RunValue(kept), SolutionValue(own)]:
                    names = own, kept
                    left, right = (Number(v, by_term=True, measure="equal") for v in names)
                    return (EdgeTest(left, "=", right),)
    return ()
