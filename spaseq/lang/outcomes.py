"""The outcomes that a condition can have where some variables are unbound.

SPARQL 1.1 section 17.2: an expression over an unbound variable is an error. `||` and `&&` may have
a value beside an error. BOUND, COALESCE and IF look at errors themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from itertools import product
from typing import Literal, TypeAlias, cast

from spaseq.lang import ast
from spaseq.lang.variables import children

Outcome: TypeAlias = Literal["true", "false", "error"]
Outcomes: TypeAlias = frozenset[Outcome]

_ANY: Outcomes = frozenset({"true", "false", "error"})
_ERROR: Outcomes = frozenset({"error"})
_OPPOSITE: dict[Outcome, Outcome] = {"true": "false", "false": "true", "error": "error"}


def can_hold(expr: ast.Expr, unbound: Collection[str]) -> bool:
    """Whether a condition may be true if these variables are unbound.

    >>> x, one = ast.Var("x"), ast.Literal("1")
    >>> can_hold(ast.Compare("=", x, one), {"x"})
    False
    >>> can_hold(ast.Not(ast.Call("BOUND", (x,))), {"x"})
    True
    """
    return "true" in _outcomes(expr, unbound)


def _outcomes(expr: ast.Expr, unbound: Collection[str]) -> Outcomes:
    """The outcomes that cannot be excluded by the unbound variables alone."""
    match expr:
        case ast.Var(name):
            return _ERROR if name in unbound else _ANY
        case ast.Prev() | ast.Aggregate() | ast.Timestamp() | ast.Exists():
            return _ANY
        case ast.Not(operand):
            return frozenset(_OPPOSITE[o] for o in _outcomes(operand, unbound))
        case ast.And(operands):
            return reduce(_both, (_outcomes(o, unbound) for o in operands))
        case ast.Or(operands):
            negated = (_outcomes(ast.Not(o), unbound) for o in operands)
            return frozenset(_OPPOSITE[o] for o in reduce(_both, negated))
        case ast.Call("BOUND", (ast.Var(name),)):
            return frozenset({"false"}) if name in unbound else _ANY
        case ast.Call("COALESCE", args):
            return frozenset().union(*(_outcomes(a, unbound) for a in args))
        case ast.Call("IF", (condition, then, otherwise)):
            found = _outcomes(condition, unbound)
            chosen = _ERROR & found
            chosen |= _outcomes(then, unbound) if "true" in found else chosen
            return chosen | (_outcomes(otherwise, unbound) if "false" in found else chosen)
        case ast.In(operand, options):
            fails = _fails(operand, unbound) or all(_fails(o, unbound) for o in options)
            return _ERROR if fails and options else _ANY
        case _:
            parts = (cast("ast.Expr", child) for child in children(expr))
            return _ERROR if any(_fails(part, unbound) for part in parts) else _ANY


def _fails(expr: ast.Expr, unbound: Collection[str]) -> bool:
    return _outcomes(expr, unbound) == _ERROR


def _both(left: Outcomes, right: Outcomes) -> Outcomes:
    """The outcomes of `left && right`."""
    return frozenset(_and(a, b) for a, b in product(left, right))


def _and(left: Outcome, right: Outcome) -> Outcome:
    if "false" in (left, right):
        return "false"
    return "error" if "error" in (left, right) else "true"
