"""FILTERs between steps as edge tests: comparisons of two numbers.

A FILTER is partially evaluated for each edge of its GPM, because an edge knows whether a repetition
has begun. The rest must be a conjunction of comparisons. An error counts as false. A compared
number may be computed from the value of one variable, once for each solution. Or it is an aggregate
over the repetitions of a loop so far, which a register accumulates. Times of events (NOW and
TIMESTAMP) and their differences are compared in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.automaton.batch.no_kernel import NoKernel
from spaseq.expr.temporal import Duration
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import is_now
from spaseq.rdf.terms.term import XSD
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


_NUMERIC = ("ABS", "CEIL", "FLOOR", "ROUND")


@record
class SolutionValue:
    """A variable that the solution itself binds."""

    variable: str


@record
class RunValue:
    """A variable's value from the run."""

    variable: str


Running: TypeAlias = Literal["FIRST", "COUNT", "SUM", "MIN", "MAX"]
"""An aggregate over the repetitions of a loop so far."""


@record
class RunningValue:
    """An aggregate of a variable over the repetitions so far, the solution's included.

    `begins`: the solution is the first repetition. `ended`: the loop is over, and the solution is
    of a later step.
    """

    variable: str
    function: Running
    begins: bool
    ended: bool = False

    @property
    def number(self) -> Number:
        """The number to compare with."""
        number = Number(self.variable, running=self.function)
        return number.base if self.begins else number

    @property
    def place(self) -> Literal["run", "solution", "both"]:
        """The place of the number."""
        if self.begins:
            return "solution"
        return "run" if self.ended or self.function == "FIRST" else "both"


Place: TypeAlias = SolutionValue | RunValue | RunningValue | None
"""Where the value of a variable comes from; None if it is unbound."""


@record
class Number:
    """A number of a solution or a run.

    It is a variable's value, the result of a formula over it, or an id of its term. A constant is a
    formula without a variable. With `offset_ms` it is the time (ms) of the event, plus the offset.
    A `running` number is an aggregate that a register accumulates. A `measure` needs no variable:
    the time (ms) of the event, the number of its instant, a mark that is NaN until a register is
    marked, or a count of the repetitions of the step whose number is `variable`; `plus` is added
    to it. A `constant` is `plus`. For a candidate of a bracket behind `;`, `begin` is the first row
    of its first instant, and `earliest` is the same row of the earliest complete candidate of a
    bracket behind the run. The number of a `slot` is the slot. An `equal` number by term is an id
    that all variables share, and all terms that `=` may hold for (see `equal_terms`). A `joined`
    number is the id of the slot and another number of the solution: a value, the id of a term, or
    an `equal` number.
    """

    variable: str
    by_term: bool = False
    formula: ast.Expr | None = None
    offset_ms: int | None = None
    running: Running | Literal[""] = ""
    measure: Literal[
        "",
        "time",
        "instant",
        "mark",
        "count",
        "constant",
        "begin",
        "earliest",
        "slot",
        "equal",
        "joined value",
        "joined term",
        "joined equal",
    ] = ""
    plus: int = 0

    @property
    def name(self) -> str:
        """A name that is unique among the numbers of a solution: by default the variable's."""
        return self.variable if self.formula is None else repr(self.formula)

    @property
    def is_measure(self) -> bool:
        """Whether it needs no variable."""
        return self.measure not in ("", "equal") and not self.is_joined

    @property
    def ids(self) -> str:
        """The space of an id: a variable, "" for `equal` numbers, JOINED for `joined` ones."""
        if self.is_joined:
            return JOINED
        return "" if self.measure == "equal" else self.variable

    @property
    def is_joined(self) -> bool:
        """Whether it is the id of the slot and another number."""
        return self.measure in ("joined value", "joined term", "joined equal")

    @property
    def joined(self) -> Number:
        """The id of the slot and this number."""
        if not self.by_term:
            return replace(self, by_term=True, measure="joined value")
        return replace(self, measure="joined equal" if self.measure else "joined term")

    @property
    def alone(self) -> Number:
        """The number that a `joined` number is of; else this number."""
        if not self.is_joined:
            return self
        measure: Literal["", "equal"] = "equal" if self.measure == "joined equal" else ""
        return replace(self, by_term=self.measure != "joined value", measure=measure)

    @property
    def base(self) -> Number:
        """The number of a solution from which a running number is made; else this number."""
        if self.running == "COUNT" or self.measure == "count":
            return ONE
        return Number(self.variable) if self.running else self


JOINED = " "  # no variable has this name

SLOT = Number("", measure="slot")
"""The slot of a run."""

BEGIN = Number("", measure="begin")
"""The row at which the candidate of a run begins."""


def earliest_of(place: int) -> Number:
    """The first row of the earliest candidate of a bracket behind `;` that follows a state."""
    return Number(str(place), measure="earliest")


ONE = Number("", formula=ast.Literal("1", XSD + "integer"))
"""The number 1."""


@record
class EdgeTest:
    """The comparison `left operator right`, by value, or for a join by term.

    `right` is a number of the run, or of the solution. If it is running, it may be of "both": the
    run's after it has taken the solution. `left` is the run's if `left_in_run`; else it is the
    solution's.
    """

    left: Number
    operator: Operator
    right: Number
    left_in_run: bool = False
    right_in: Literal["run", "solution", "both"] = "run"

    @property
    def is_threshold(self) -> bool:
        """Whether it orders a number of the solution and one that the run has already."""
        ordered = self.operator not in ("=", "!=")
        return ordered and not self.left_in_run and self.right_in == "run"

    @property
    def of_count(self) -> bool:
        """Whether it depends only on a count of the run, so that it decides where the run waits."""
        return self.left.measure == "count"

    @property
    def of_bases(self) -> EdgeTest:
        """The same comparison of the numbers that running numbers are made of."""
        return EdgeTest(self.left.base, self.operator, self.right.base)

    @property
    def by_value(self) -> bool:
        """Whether it compares terms by value, so that float64 may be inexact for their kinds."""
        left = self.left
        return not (left.by_term or left.measure) and left.offset_ms is None

    @property
    def of_run(self) -> tuple[Number, ...]:
        """The numbers that it reads of the run."""
        right = () if self.right_in == "solution" else (self.right,)
        return (self.left, *right) if self.left_in_run else right

    @property
    def of_solution(self) -> tuple[Number, ...]:
        """The numbers that it reads of the solution, or that the run has from solutions."""
        return self.left.base, self.right.base


@record
class AskedTest:
    """FILTERs that are evaluated in Python, once for the same terms and times.

    They depend on `of_own`, ids of terms and a time of the solution, and on `of_run`, ids and a
    time of the run. There, the id of a variable that the solution also binds is the value before:
    PREV, or the value if the solution leaves the variable unbound. Or they depend on the whole run:
    then `taken` has the ids of the edge that takes the solution, and of the edge inside its
    bracket. `late`: the FILTERs are the late ones of that edge.
    """

    conditions: tuple[ast.Expr, ...]
    of_own: tuple[Number, ...]
    of_run: tuple[Number, ...]
    taken: tuple[int, int] | None = None
    late: bool = False

    is_threshold = of_count = by_value = False

    @property
    def of_solution(self) -> tuple[Number, ...]:
        """The numbers that it reads of the solution, or that the run has from solutions."""
        return *self.of_own, *self.of_run

    @property
    def is_of_terms(self) -> bool:
        """Whether only terms decide it: no time, and no whole run."""
        return self.taken is None and all(number.by_term for number in self.of_solution)


AnyTests: TypeAlias = tuple[EdgeTest | AskedTest, ...]

EdgeTests: TypeAlias = tuple[EdgeTest, ...]

Read: TypeAlias = ast.Var | ast.Prev | ast.Aggregate | ast.Timestamp | ast.Call
"""A variable, PREV of one, an aggregate of one, TIMESTAMP, or NOW."""

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
