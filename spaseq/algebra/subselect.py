"""The clauses of a sub-SELECT as algebra (SPARQL 1.1 sections 18.2.4 and 18.2.5)."""

from __future__ import annotations

from itertools import count

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.lang.variables import group_function_uses, rewritten


def select_clauses(
    select: ast.SubSelect, pattern: n.Pattern, star: tuple[str, ...], values: n.Table | None
) -> n.Pattern:
    """The sub-SELECT over its translated WHERE clause.

    `star` are the variables of SELECT *; `values` is its VALUES clause.
    """
    grouping = _Grouping(select, pattern)
    pattern = grouping.pattern
    for expr in select.having:
        pattern = n.Filter(grouping.after(expr), pattern)
    if values is not None:
        pattern = n.Join(pattern, values)
    names = star
    if select.items is not None:
        names = tuple(i.var.name for i in select.items if i.var)
        for item in select.items:
            if item.var and item.expr is not None:
                pattern = n.Extend(pattern, item.var.name, grouping.after(item.expr))
    if select.order_by:
        order = (ast.OrderCondition(grouping.after(c.expr), c.descending) for c in select.order_by)
        pattern = n.OrderBy(pattern, tuple(order))
    pattern = n.Project(pattern, names)
    if select.distinct:
        pattern = n.Distinct(pattern)
    if select.limit is not None or select.offset:
        pattern = n.Slice(pattern, select.offset or 0, select.limit)
    return pattern


class _Grouping:
    """GROUP BY with its aggregates, which become variables named `_:#n`."""

    def __init__(self, select: ast.SubSelect, pattern: n.Pattern) -> None:
        self._fresh = count()
        self._keys: dict[ast.Expr, str] = {}
        self._aggregates: dict[ast.Aggregate, str] = {}
        self._grouped = bool(select.group_by) or any(
            group_function_uses(e) for e in _after_grouping(select)
        )
        keys = []
        for item in select.group_by:
            name, expr = self._key(item)
            keys.append(name)
            if expr != ast.Var(name):
                self._keys[expr] = name
                pattern = n.Extend(pattern, name, expr)
        if self._grouped:
            for expr in _after_grouping(select):
                self.after(expr)
            aggregates = tuple((name, a) for a, name in self._aggregates.items())
            pattern = n.Group(pattern, tuple(keys), aggregates)
        self.pattern = pattern

    def _key(self, item: ast.SelectItem) -> tuple[str, ast.Expr]:
        if item.expr is None:
            assert item.var is not None
            return item.var.name, ast.Var(item.var.name)
        if item.var is None and isinstance(item.expr, ast.Var):
            return item.expr.name, item.expr
        return (item.var.name if item.var else self._name()), item.expr

    def _name(self) -> str:
        return f"{n.RESERVED}#{next(self._fresh)}"

    def after(self, expr: ast.Expr) -> ast.Expr:
        """The expression over the groups, with variables for its keys and aggregates."""
        return rewritten(expr, self._change) if self._grouped else expr

    def _change(self, node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Aggregate):
            if node not in self._aggregates:
                self._aggregates[node] = self._name()
            return ast.Var(self._aggregates[node])
        name = self._keys.get(node)  # type: ignore[call-overload]
        return None if name is None else ast.Var(name)


def _after_grouping(select: ast.SubSelect) -> tuple[ast.Expr, ...]:
    items = tuple(i.expr for i in select.items or () if i.expr is not None)
    return items + select.having + tuple(c.expr for c in select.order_by)
