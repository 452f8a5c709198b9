"""What SPARQL 1.1 asks of a query beyond its productions (section 19.8, notes 7-13; section 4.1.4).

All of it is checked on one GPM's group graph pattern, or on the items of SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.functions import AGGREGATES, BUILT_INS
from spaseq.lang.variables import children, pattern_variables, walk


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that a node breaks."""

    message: str
    span: Span


def faults(node: ast.Node) -> Iterator[Fault]:
    """Every rule broken in a node or below it, blank node labels apart."""
    for part in walk(node):
        match part:
            case ast.Call():
                yield from _call(part)
            case ast.Values():
                yield from _values(part)
            case ast.GroupGraphPattern():
                yield from _bindings(part)
            case ast.SubSelect():
                in_pattern = pattern_variables(part.pattern)
                yield from _projection((*part.group_by, *(part.items or ())), in_pattern)
                yield from _grouping(part)
                yield from _aggregates_in_place(part)
            case ast.Select():
                yield from _projection(part.items or (), frozenset())


def shared_labels(group: ast.GroupGraphPattern) -> Iterator[Fault]:
    """Blank node labels used in more than one basic graph pattern (note 10)."""
    home: dict[str, int] = {}
    for number, pattern in enumerate(_basic_graph_patterns(group)):
        for node in _blank_nodes(pattern):
            if home.setdefault(node.label, number) != number:
                message = "this blank node label is in use in another basic graph pattern"
                yield Fault(message, node.span)


def _blank_nodes(pattern: Iterable[ast.Triples]) -> Iterator[ast.BlankNode]:
    return (n for block in pattern for n in walk(block) if isinstance(n, ast.BlankNode))


def _basic_graph_patterns(node: ast.Node) -> Iterator[list[ast.Triples]]:
    """Blocks of triples, together when nothing but FILTERs stands between them."""
    pattern: list[ast.Triples] = []
    for part in children(node):
        match part:
            case ast.Triples():
                pattern.append(part)
            case ast.Filter():
                yield from _basic_graph_patterns(part)
            case _:
                if pattern:
                    yield pattern
                pattern = []
                yield from _basic_graph_patterns(part)
    if pattern:
        yield pattern


def _call(call: ast.Call) -> Iterator[Fault]:
    fewest, most = BUILT_INS[call.function]
    if len(call.args) < fewest or (most is not None and len(call.args) > most):
        wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        plural = "" if wanted == "1" else "s"
        message = f"{call.function} takes {wanted} argument{plural}, not {len(call.args)}"
        yield Fault(message, call.span)
    elif call.function == "BOUND" and not isinstance(call.args[0], ast.Var | ast.Prev):
        yield Fault("BOUND takes a variable", call.args[0].span)


def _values(values: ast.Values) -> Iterator[Fault]:
    for row in values.rows:
        if len(row) != len(values.variables):
            message = (
                f"VALUES has {len(values.variables)} variables, but {len(row)} values in a row"
            )
            yield Fault(message, next((cell.span for cell in row if cell), values.span))


def _bindings(group: ast.GroupGraphPattern) -> Iterator[Fault]:
    """BIND to a variable that the group has already (note 12)."""
    for number, element in enumerate(group.elements):
        if isinstance(element, ast.Bind):
            before = pattern_variables(ast.GroupGraphPattern(group.elements[:number]))
            if element.var.name in before:
                message = f"?{element.var.name} is bound before this BIND in the same group"
                yield Fault(message, element.var.span)


def _projection(items: Iterable[ast.SelectItem], bound: frozenset[str]) -> Iterator[Fault]:
    """`AS ?v` where ?v has a value already (note 13)."""
    taken = set(bound)
    for item in items:
        if item.var is None:
            continue
        if item.expr is not None and item.var.name in taken:
            yield Fault(f"?{item.var.name} has a value already", item.var.span)
        taken.add(item.var.name)


def _grouping(query: ast.SubSelect) -> Iterator[Fault]:
    """A sub-query with groups selects what has one value per group (section 11.4)."""
    expressions = [item.expr for item in query.items or () if item.expr is not None]
    aggregates = any(_aggregates(expr) for expr in (*expressions, *query.having))
    if not query.group_by and not aggregates:
        return
    if query.items is None:
        yield Fault("SELECT * cannot stand with GROUP BY or an aggregate", query.span)
    keys = (item.var or item.expr for item in query.group_by)
    known = {key.name for key in keys if isinstance(key, ast.Var)}
    for item in query.items or ():
        for var in _ungrouped(item.expr or item.var):
            if var.name not in known:
                yield Fault(f"?{var.name} is neither grouped by nor in an aggregate", var.span)
        if item.var is not None:
            known.add(item.var.name)


def _aggregates_in_place(query: ast.SubSelect) -> Iterator[Fault]:
    """Aggregates stand in SELECT, HAVING and ORDER BY only, and not in each other."""
    for use in _own_aggregates(query.pattern):
        yield Fault(
            f"{use.function} cannot stand in the pattern of a sub-query: "
            "test it in HAVING, or give it a name in SELECT",
            use.span,
        )
    for key in query.group_by:
        for use in _own_aggregates(key):
            message = f"{use.function} cannot stand in GROUP BY, which makes the groups"
            yield Fault(message, use.span)
    exprs = [item.expr for item in query.items or () if item.expr is not None]
    for expr in (*exprs, *query.having, *(order.expr for order in query.order_by)):
        for outer in _own_aggregates(expr):
            for use in _own_aggregates(outer.operand) if outer.operand else ():
                message = f"{use.function} cannot stand in another aggregate, {outer.function}"
                yield Fault(f"{message}: name it in a sub-query of its own", use.span)


def _own_aggregates(node: ast.Node) -> Iterator[ast.Aggregate]:
    """SPARQL's aggregates in a node, the outermost ones, apart from those of sub-queries in it."""
    match node:
        case ast.SubSelect():
            return
        case ast.Aggregate(function) if function in AGGREGATES:
            yield node
        case _:
            for child in children(node):
                yield from _own_aggregates(child)


def _aggregates(expr: ast.Expr) -> bool:
    return any(isinstance(n, ast.Aggregate) and n.function in AGGREGATES for n in walk(expr))


def _ungrouped(expr: ast.Node | None) -> Iterator[ast.Var]:
    """The variables of an expression outside aggregates and EXISTS."""
    match expr:
        case None | ast.Aggregate() | ast.Exists():
            return
        case ast.Var():
            yield expr
        case _:
            for child in children(expr):
                yield from _ungrouped(child)
