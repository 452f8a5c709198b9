"""FILTERs between steps as tests of one number of a solution against one of a run's registers.

A FILTER is partially evaluated for each edge of its GPM, as it is known there whether a repetition
has begun: what remains must be a conjunction of comparisons. An error counts as false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spaseq.automaton.columns.unfit import NotCompiled
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


@dataclass(frozen=True, slots=True)
class Own:
    """A variable that the solution itself binds."""

    variable: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """A variable's value from the run."""

    variable: str


Place: TypeAlias = Own | Earlier | None
"""Where a variable's value comes from; None: it is unbound."""


@dataclass(frozen=True, slots=True)
class Test:
    """`own operator earlier`, by value, or for joins by term."""

    own: str
    operator: Operator
    earlier: str
    by_term: bool = False


Tests: TypeAlias = tuple[Test, ...]

Lookup: TypeAlias = Callable[["ast.Var | ast.Prev"], Place]


def tests_of(condition: ast.Expr, lookup: Lookup) -> Tests | None:
    """The tests that a FILTER amounts to where `lookup` says what its variables are.

    None if it cannot hold. Raises NotCompiled if it is anything else than such tests.
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
        case ast.Compare(op, (ast.Var() | ast.Prev()) as left, (ast.Var() | ast.Prev()) as right):
            return _compared(op, lookup(left), lookup(right))
    raise NotCompiled("a FILTER is more than comparisons of two variables")


def _all(parts: list[Tests | None]) -> Tests | None:
    tests: list[Test] = []
    for part in parts:
        if part is None:
            return None
        tests += part
    return tuple(tests)


def _any(parts: list[Tests | None]) -> Tests | None:
    possible = [part for part in parts if part is not None]
    if any(part == () for part in possible):
        return ()
    if len(possible) > 1:
        raise NotCompiled("a FILTER has alternatives")
    return possible[0] if possible else None


def _compared(op: Operator, left: Place, right: Place) -> Tests | None:
    match left, right:
        case (None, _) | (_, None):
            return None
        case Own(own), Earlier(earlier):
            return (Test(own, op, earlier),)
        case Earlier(earlier), Own(own):
            return (Test(own, _FLIPPED[op], earlier),)
    raise NotCompiled("a FILTER compares two variables of the same side")
