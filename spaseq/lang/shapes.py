"""The shape of a query: the query without the constants in which queries of a family differ.

Such a constant is alone at a place where a variable could be: as subject or object of a triple
pattern of a GPM, beside the operator of a comparison with a variable, or in a sum with a variable
of another GPM, which is less or greater than a variable. It must be in the outermost group of the
GPM, not in a group inside it. Any other constant of a GPM is part of the shape. In a query with
windows it is a constant that HAVING of a sub-SELECT compares with a projected aggregate.

The constants of SELECT, CONSTRUCT and HAVING are no part of a shape either, because each query
makes its answers by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.variables import (
    MARK,
    conjuncts,
    plainly_bound,
    rewritten,
)
from spaseq.records import record

Constant: TypeAlias = ast.Iri | ast.Literal

QUERY = f"{MARK}query"
"""The variable that says whose solution it is."""

_ANY_LITERAL, _ANY_IRI = ast.Literal(MARK), ast.Iri("any:thing")
"""They replace the constants of SELECT, CONSTRUCT and HAVING in a shape."""


def parameter(number: int) -> ast.Var:
    """The variable that replaces a constant; it never leaves its GPM, like a blank node."""
    return ast.Var(f"_:{MARK}{number}")


def total(number: int) -> ast.Var:
    """The variable that replaces the sum with a constant."""
    return ast.Var(f"{MARK}{number}")


@record
class Shape:
    """A query without the constants that queries of a family may differ in.

    `query` has a `parameter` for each of them. `binders` has for each parameter of a sum the GPM
    that binds the other operand.
    """

    query: ast.Query
    binders: tuple[tuple[int, str], ...]


@record
class Shaped:
    """The shape of a query, and the query's own constants, by number of the parameter."""

    shape: Shape
    constants: tuple[Constant, ...]


def shape_of(resolved: Resolved) -> Shaped:
    """The shape of a query without errors, and its constants."""
    query, shaping = resolved.query, _Shaping(resolved)
    gpms = tuple(replace(gpm, pattern=shaping.group(gpm)) for gpm in query.gpms)
    shape = replace(
        query,
        prologue=ast.Prologue(query.prologue.base),
        form=rewritten(query.form, _blank),
        gpms=gpms,
        having=None if query.having is None else rewritten(query.having, _blank),
    )
    return Shaped(Shape(shape, tuple(shaping.binders)), tuple(shaping.constants))


def _blank(node: ast.Node) -> ast.Node | None:
    """A sign in the place of a constant; a function keeps its name."""
    match node:
        case ast.Iri():
            return _ANY_IRI
        case ast.Literal():
            return _ANY_LITERAL
        case ast.FunctionCall(args=args):
            return replace(node, args=tuple(rewritten(arg, _blank) for arg in args))
    return None


class _Shaping:
    """Takes the constants out of the GPMs of one query."""

    def __init__(self, resolved: Resolved) -> None:
        self.constants: list[Constant] = []
        self.binders: list[tuple[int, str]] = []
        self._scope, self._binds = resolved.scope, resolved.binds
        self._has_windows = bool(resolved.query.windows)
        self._used = {use.gpm for use in resolved.scope.occurrences}
        self._positive = {o.gpm for o in resolved.scope.occurrences if o.negation is None}
        self._matched = {gpm.name: plainly_bound(gpm.pattern) for gpm in resolved.query.gpms}

    def group(self, gpm: ast.Gpm) -> ast.GroupGraphPattern:
        """The pattern of a GPM with parameters."""
        elements: list[ast.Element] = []
        if self._has_windows:
            for element in gpm.pattern.elements:
                elements += self._level(element)
            return ast.GroupGraphPattern(tuple(elements))
        for element in gpm.pattern.elements:
            match element:
                case ast.Triples(triples):
                    elements.append(ast.Triples(tuple(map(self._triple, triples))))
                case ast.Filter(expr):
                    elements.append(ast.Filter(self._condition(expr, gpm.name)))
                case _:
                    elements.append(element)
        return ast.GroupGraphPattern(tuple(elements))

    def _level(self, element: ast.Element) -> list[ast.Element]:
        """An element of a GPM on a window: a sub-SELECT, and FILTERs in the place of its HAVING."""
        match element:
            case ast.GroupGraphPattern((ast.SubSelect() as select,)) if not (
                select.order_by or select.offset or select.limit is not None
            ):
                items = select.items or ()
                shown: dict[ast.Expr, ast.Var] = {
                    i.expr: i.var for i in items if i.var and isinstance(i.expr, ast.Aggregate)
                }
                tests = [self._test(expr, shown) for expr in conjuncts(select.having)]
                having = tuple(expr for expr, is_inside in tests if is_inside)
                inner = ast.GroupGraphPattern((replace(select, having=having),))
                return [inner, *(ast.Filter(expr) for expr, is_inside in tests if not is_inside)]
        return [element]

    def _test(self, expr: ast.Expr, shown: Mapping[ast.Expr, ast.Var]) -> tuple[ast.Expr, bool]:
        """(a condition of HAVING, whether it stays there), else a condition over the projection of
        the sub-SELECT.
        """
        match expr:
            case ast.Compare(op, ast.Aggregate() as left, ast.Literal() as right) if left in shown:
                if op != "!=":
                    return ast.Compare(op, shown[left], self._parameter(right)), False
            case ast.Compare(op, ast.Literal() as left, ast.Aggregate() as right) if right in shown:
                if op != "!=":
                    return ast.Compare(op, self._parameter(left), shown[right]), False
        return expr, True

    def _triple(self, triple: ast.Triple) -> ast.Triple:
        if not isinstance(triple.predicate, ast.Var | ast.Iri):
            return triple  # a path is searched from its constant
        return ast.Triple(self._term(triple.subject), triple.predicate, self._term(triple.object))

    def _term(self, term: ast.Term) -> ast.Term:
        if isinstance(term, ast.TripleTerm):
            s, o = self._term(term.subject), self._term(term.object)
            return ast.TripleTerm(s, term.predicate, o)
        return self._parameter(term) if isinstance(term, ast.Iri | ast.Literal) else term

    def _parameter(self, constant: Constant) -> ast.Var:
        self.constants.append(constant)
        return parameter(len(self.constants) - 1)

    def _condition(self, expr: ast.Expr, gpm: str) -> ast.Expr:
        match expr:
            case ast.And(operands):
                return ast.And(tuple(self._condition(o, gpm) for o in operands))
            case ast.Compare(op, left, right) if op != "!=":
                left, right = self._operand(left, right, gpm), self._operand(right, left, gpm)
                if op != "=":
                    left, right = self._sum(left, right, gpm), self._sum(right, left, gpm)
                return ast.Compare(op, left, right)
        return expr

    def _operand(self, operand: ast.Expr, other: ast.Expr, gpm: str) -> ast.Expr:
        """A side of a comparison, or the parameter for it if it is a constant."""
        if not isinstance(operand, ast.Iri | ast.Literal) or not isinstance(other, ast.Var):
            return operand
        return self._parameter(operand) if other.name in self._matched[gpm] else operand

    def _sum(self, operand: ast.Expr, other: ast.Expr, gpm: str) -> ast.Expr:
        """A side of a comparison, with a parameter for the constant of a sum."""
        if not isinstance(other, ast.Var) or other.name not in self._matched[gpm]:
            return operand
        match operand:
            case ast.Arithmetic(op, ast.Var(name) as var, ast.Literal() as constant):
                binder = self._binder(name, gpm)
                if op in "+-" and binder is not None:
                    self.binders.append((len(self.constants), binder))
                    return ast.Arithmetic(op, var, self._parameter(constant))
        return operand

    def _binder(self, variable: str, gpm: str) -> str | None:
        """The only GPM that binds a variable, once in each match; None if there is none."""
        if variable in self._scope.owner:
            return None
        binders = [name for name in self._used if variable in self._binds[name]]
        if len(binders) != 1 or binders[0] == gpm or binders[0] not in self._positive:
            return None
        return binders[0] if variable in self._matched[binders[0]] else None
