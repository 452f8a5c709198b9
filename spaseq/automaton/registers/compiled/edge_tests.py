"""FILTERs between steps as tests of one number of a solution or a run against one of the run's.

A FILTER is partially evaluated for each edge of its GPM, as it is known there whether a repetition
has begun: what remains must be a conjunction of comparisons. An error counts as false. What is
compared may be computed of one variable's value, which is done once for a solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spaseq.automaton.batch.not_compilable import NotCompilable
from spaseq.lang import ast

Operator: TypeAlias = Literal["<", "<=", ">", ">=", "=", "!="]

_FLIPPED: dict[str, Operator] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "=": "=",
    "!=": "!=",
}

_NUMERIC = ("ABS", "CEIL", "FLOOR", "ROUND")


@dataclass(frozen=True, slots=True)
class SolutionValue:
    """A variable that the solution itself binds."""

    variable: str


@dataclass(frozen=True, slots=True)
class RunValue:
    """A variable's value from the run."""

    variable: str


Place: TypeAlias = SolutionValue | RunValue | None
"""Where a variable's value comes from; None: it is unbound."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that solutions and runs have: a variable's value, what a formula makes of it, or an
    id of its term. A constant is the formula of no variable."""

    variable: str
    by_term: bool = False
    formula: ast.Expr | None = None

    @property
    def name(self) -> str:
        """What tells it from other numbers of a solution; the variable's if there is no formula."""
        return self.variable if self.formula is None else repr(self.formula)


@dataclass(frozen=True, slots=True)
class EdgeTest:
    """`own operator earlier`, by value, or for joins by term; `of_run` says that `own` is a number
    of the run, too."""

    own: Number
    operator: Operator
    earlier: Number
    of_run: bool = False


EdgeTests: TypeAlias = tuple[EdgeTest, ...]

Lookup: TypeAlias = Callable[["ast.Var | ast.Prev"], Place]


def tests_of(condition: ast.Expr, lookup: Lookup) -> EdgeTests | None:
    """The tests that a FILTER amounts to where `lookup` says what its variables are.

    None if it cannot hold. Raises NotCompilable if it is anything else than such tests.
    """
    match condition:
        case ast.And(operands):
            return _all([tests_of(o, lookup) for o in operands])
        case ast.Or(operands):
            return _any([tests_of(o, lookup) for o in operands])
        case ast.Call("BOUND", (ast.Var() | ast.Prev() as variable,)):
            return None if lookup(variable) is None else ()
        case ast.Not(ast.Call("BOUND", (ast.Var() | ast.Prev() as variable,))):
            return () if lookup(variable) is None else None
        case ast.Compare(op, left, right):
            return _compared(op, _operand(left, lookup), _operand(right, lookup))
    raise NotCompilable("a FILTER is more than comparisons")


def _all(parts: list[EdgeTests | None]) -> EdgeTests | None:
    tests: list[EdgeTest] = []
    for part in parts:
        if part is None:
            return None
        tests += part
    return tuple(tests)


def _any(parts: list[EdgeTests | None]) -> EdgeTests | None:
    possible = [part for part in parts if part is not None]
    if any(part == () for part in possible):
        return ()
    if len(possible) > 1:
        raise NotCompilable("a FILTER has alternatives")
    return possible[0] if possible else None


@dataclass(frozen=True, slots=True)
class _Operand:
    """A side of a comparison: an expression of one place's variable, or a constant (no place)."""

    expr: ast.Expr
    place: SolutionValue | RunValue | None

    @property
    def number(self) -> Number:
        if self.place is None:
            return Number("", formula=self.expr)
        formula = None if isinstance(self.expr, ast.Var) else self.expr
        return Number(self.place.variable, formula=formula)


def _operand(expr: ast.Expr, lookup: Lookup) -> _Operand | None:
    """A side of a comparison where it is known which variables are bound; None: an error."""
    match expr:
        case ast.Var() | ast.Prev():
            place = lookup(expr)
            return None if place is None else _Operand(ast.Var(place.variable), place)
        case ast.Literal():
            return _Operand(expr, None)
        case ast.Call("COALESCE", args):
            return _first([_operand(arg, lookup) for arg in args])
        case ast.Sign(op, operand):
            found = _operand(operand, lookup)
            return None if found is None else _Operand(ast.Sign(op, found.expr), found.place)
        case ast.Call(function, (argument,)) if function in _NUMERIC:
            found = _operand(argument, lookup)
            return (
                None if found is None else _Operand(ast.Call(function, (found.expr,)), found.place)
            )
        case ast.Arithmetic(op, left, right):
            return _computed(op, _operand(left, lookup), _operand(right, lookup))
    raise NotCompilable("a FILTER compares more than numbers and what is computed of them")


def _first(args: list[_Operand | None]) -> _Operand | None:
    """The first that is no error, if that is known."""
    known = [arg for arg in args if arg is not None]
    if len(known) > 1 and not isinstance(known[0].expr, ast.Var | ast.Literal):
        raise NotCompilable("COALESCE of what may be an error")
    return known[0] if known else None


def _computed(
    op: Literal["+", "-", "*", "/"], left: _Operand | None, right: _Operand | None
) -> _Operand | None:
    if left is None or right is None:
        return None
    if left.place is not None and right.place is not None and left.place != right.place:
        raise NotCompilable("a FILTER computes with values of several variables")
    return _Operand(ast.Arithmetic(op, left.expr, right.expr), left.place or right.place)


def _compared(op: Operator, left: _Operand | None, right: _Operand | None) -> EdgeTests | None:
    if left is None or right is None:
        return None
    match left.place, right.place:
        case (SolutionValue() | None, RunValue()):
            return (EdgeTest(left.number, op, right.number),)
        case (RunValue(), SolutionValue() | None):
            return (EdgeTest(right.number, _FLIPPED[op], left.number),)
        case (RunValue(), RunValue()):
            return (EdgeTest(left.number, op, right.number, of_run=True),)
    raise NotCompilable("a FILTER compares two values of its own step")
