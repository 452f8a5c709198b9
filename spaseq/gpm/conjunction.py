"""Nested joins and filters as one conjunction, whose parts can be evaluated in any order."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjuncts
from spaseq.algebra.scope import certain
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, expression_variables


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct of a FILTER; `early` if it may be tested once its variables have columns."""

    expr: ast.Expr
    variables: frozenset[str]
    early: bool


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The join of triple patterns and other patterns, of which all conditions must hold."""

    triples: tuple[n.TriplePattern, ...]
    operands: tuple[n.Pattern, ...]
    conditions: tuple[Condition, ...]


def conjunction(pattern: n.Pattern) -> Conjunction:
    """The pattern as a conjunction; a pattern that is none becomes its only operand."""
    expr: ast.Expr | None = None
    if isinstance(pattern, n.Filter):
        expr, inner = pattern.expr, pattern.pattern
    else:
        inner = pattern
    triples, operands, floated = _parts(inner)
    sure = certain(inner)
    own = [_condition(e, sure) for e in conjuncts([expr])] if expr is not None else []
    return Conjunction(tuple(triples), tuple(operands), (*floated, *own))


Parts = tuple[list[n.TriplePattern], list[n.Pattern], list[Condition]]


def _parts(pattern: n.Pattern) -> Parts:
    match pattern:
        case n.BGP(triples):
            return list(triples), [], []
        case n.Join(left, right):
            first, second = _parts(left), _parts(right)
            return first[0] + second[0], first[1] + second[1], first[2] + second[2]
        case n.Filter(expr, inner):
            return _filtered(expr, inner)
        case _:
            return [], [pattern], []


def _filtered(expr: ast.Expr, inner: n.Pattern) -> Parts:
    """A FILTER inside a join: conjuncts over what its own group certainly binds may float out."""
    sure = certain(inner)
    conditions = [_condition(e, sure) for e in conjuncts([expr])]
    if not all(c.early for c in conditions):
        return [], [n.Filter(expr, inner)], []
    triples, operands, floated = _parts(inner)
    return triples, operands, floated + conditions


def _condition(expr: ast.Expr, sure: frozenset[str]) -> Condition:
    variables = expression_variables(expr)
    return Condition(expr, variables, variables <= sure and not exists_uses(expr))
