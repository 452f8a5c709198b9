"""Walks over syntax trees: the variables, graphs and special functions that they mention, and nodes
that are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from operator import attrgetter, is_
from typing import Any, TypeVar, cast

from spaseq.lang import ast

NodeT = TypeVar("NodeT", bound=ast.Node)


MARK = "#"
"""Prefix of the variables for the values in which a family's queries differ.

No query can write such a name.
"""


def is_made(name: str) -> bool:
    """Whether a family has made a variable, so that no answer shows it."""
    return name.startswith(MARK)


def rewritten(node: NodeT, change: Callable[[ast.Node], ast.Node | None]) -> NodeT:
    """The tree with nodes replaced from the root down.

    Where `change` returns a node, that node replaces the subtree. Where it returns None, the node
    stays, and its children are rewritten.
    """
    return cast(NodeT, _rewrite(node, change))


def _rewrite(value: Any, change: Callable[[ast.Node], ast.Node | None]) -> Any:
    """The same object if nothing in it changes."""
    if type(value) is tuple:
        items = [_rewrite(item, change) for item in value]
        return value if all(map(is_, items, value)) else tuple(items)
    if not isinstance(value, ast.Node):
        return value
    changed = change(value)
    if changed is not None:
        return changed
    new = {}
    for name in _FIELDS.get(type(value)) or child_fields(value):
        child = getattr(value, name)
        if child is not None:
            made = _rewrite(child, change)
            if made is not child:
                new[name] = made
    return replace(value, **new) if new else value


def without_services(group: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """The group with an empty group for each SERVICE, which an endpoint evaluates."""
    if not any(isinstance(node, ast.ServiceGraphPattern) for node in walk_patterns(group)):
        return group
    return rewritten(
        group,
        lambda node: (
            ast.GroupGraphPattern(()) if isinstance(node, ast.ServiceGraphPattern) else None
        ),
    )


def child_fields(node: ast.Node) -> tuple[str, ...]:
    """The names of a node's fields that may hold nodes."""
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        node_fields = (
            f.name for f in fields(node) if f.name != "span" and not _PLAIN.fullmatch(str(f.type))
        )
        names = _FIELDS[kind] = tuple(node_fields)
    return names


_FIELDS: dict[type[ast.Node], tuple[str, ...]] = {}
_PLAIN = re.compile(r"(str|int|bool)( \| None)?")
"""Annotations of fields without nodes."""


def children(node: ast.Node) -> list[ast.Node]:
    """The child nodes of a node, in the order of the text."""
    nodes: list[ast.Node] = []
    for name in _FIELDS.get(type(node)) or child_fields(node):
        value = getattr(node, name)
        if type(value) is tuple:
            _collect(value, nodes)
        elif isinstance(value, ast.Node):
            nodes.append(value)
    return nodes


def _collect(values: tuple[object, ...], nodes: list[ast.Node]) -> None:
    for value in values:
        if isinstance(value, ast.Node):
            nodes.append(value)
        elif isinstance(value, tuple):
            _collect(value, nodes)


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """The node and all nodes below it, in the order of the text."""
    return _walk(node, ())


def walk_patterns(node: ast.Node) -> Iterator[ast.Node]:
    """Like `walk`, without the contents of triple blocks: terms and paths."""
    return _walk(node, _TRIPLES)


def kinds_of(node: ast.Node) -> frozenset[type[ast.Node]]:
    """The classes of the nodes that `walk_patterns` finds: most queries have few of them."""
    return frozenset(map(type, walk_patterns(node)))


_TRIPLES = (ast.Triples, ast.Triple)


def _walk(node: ast.Node, closed: tuple[type[ast.Node], ...]) -> Iterator[ast.Node]:
    """Like `walk`, without the contents of nodes of these kinds."""
    nodes: list[ast.Node] = []
    waiting: list[Any] = [node]
    while waiting:
        value = waiting.pop()  # a node, or the value of a field
        kind = type(value)
        if kind is tuple:
            waiting += value[::-1]
            continue
        if kind in _BELOW:
            below = _BELOW[kind]
        elif isinstance(value, ast.Node):
            below = _BELOW[kind] = _values_below(value)
        else:
            continue
        nodes.append(value)
        if below is not None and kind not in closed:
            waiting += below(value)
    return iter(nodes)


def _values_below(node: ast.Node) -> Callable[[Any], tuple[Any, ...]] | None:
    """A getter of the values of the fields that may hold nodes, the last field first."""
    names = child_fields(node)[::-1]
    if not names:
        return None
    # For one name it would give no tuple; a span is no node.
    return attrgetter(*names) if len(names) > 1 else attrgetter("span", *names)


_BELOW: dict[type, Callable[[Any], tuple[Any, ...]] | None] = {}


# --- expressions ---------------------------------------------------------------------------------


def _walk_expression(expr: ast.Node) -> Iterator[ast.Node]:
    """Like `walk`, without the patterns of EXISTS, which have separate variables."""
    return _walk(expr, (ast.Exists,))


def conjuncts(exprs: Iterable[ast.Expr]) -> Iterator[ast.Expr]:
    """The operands of the expressions that are a `&&`, at any depth, and the other expressions."""
    for expr in exprs:
        if isinstance(expr, ast.And):
            yield from conjuncts(expr.operands)
        else:
            yield expr


def expression_variables(expr: ast.Expr) -> frozenset[str]:
    """Names of the variables that an expression reads, also in PREV and aggregates.

    Variables inside EXISTS do not count.
    """
    return frozenset(n.name for n in _walk_expression(expr) if isinstance(n, ast.Var))


def exists_uses(expr: ast.Expr) -> tuple[ast.Exists, ...]:
    """The outermost EXISTS of an expression."""
    return tuple(n for n in _walk_expression(expr) if isinstance(n, ast.Exists))


def group_function_uses(expr: ast.Expr) -> tuple[ast.Aggregate, ...]:
    """The aggregates of an expression, with FIRST, LAST and LIST."""
    return tuple(n for n in _walk_expression(expr) if isinstance(n, ast.Aggregate))


def prev_uses(expr: ast.Expr) -> tuple[ast.Prev, ...]:
    """The uses of PREV in an expression."""
    return tuple(n for n in _walk_expression(expr) if isinstance(n, ast.Prev))


def timestamp_uses(expr: ast.Expr) -> tuple[ast.Timestamp, ...]:
    """The uses of TIMESTAMP in an expression."""
    return tuple(n for n in _walk_expression(expr) if isinstance(n, ast.Timestamp))


def is_now(node: ast.Node) -> bool:
    """Whether a node is `NOW()`."""
    return isinstance(node, ast.Call) and node.function == "NOW"


def now_uses(expr: ast.Expr) -> tuple[ast.Call, ...]:
    """The uses of NOW in an expression."""
    return tuple(n for n in _walk_expression(expr) if isinstance(n, ast.Call) and is_now(n))


def looks_back(expr: ast.Expr) -> bool:
    """Whether an expression reads more than its solution: PREV, aggregates, TIMESTAMP or NOW."""
    special = ast.Aggregate | ast.Prev | ast.Timestamp
    return any(isinstance(n, special) or is_now(n) for n in _walk_expression(expr))


# --- group graph patterns ------------------------------------------------------------------------


def pattern_variables(group: ast.GroupGraphPattern) -> frozenset[str]:
    """Names of the in-scope variables of a group, which a solution may bind (SPARQL 18.2.1)."""
    return frozenset().union(*(_in_scope(e) for e in group.elements))


def _in_scope(element: ast.Element) -> frozenset[str]:
    match element:
        case ast.Filter() | ast.MinusGraphPattern():
            return frozenset()
        case ast.Triples():
            return triple_variables(element)
        case ast.GroupGraphPattern():
            return pattern_variables(element)
        case ast.OptionalGraphPattern(pattern):
            return pattern_variables(pattern)
        case ast.GroupOrUnionGraphPattern(alternatives):
            return frozenset().union(*(pattern_variables(g) for g in alternatives))
        case ast.GraphGraphPattern(name, pattern) | ast.ServiceGraphPattern(name, pattern):
            inner = pattern_variables(pattern)
            return inner | {name.name} if isinstance(name, ast.Var) else inner
        case ast.EventGraphPattern(_, event, time, pattern):
            bound = frozenset(v.name for v in (event, time) if v is not None)
            return pattern_variables(pattern) | bound
        case ast.Bind(var=var):
            return frozenset({var.name})
        case ast.Values(variables):
            return frozenset(v.name for v in variables)
        case ast.SubSelect(items=None, pattern=pattern, values=values):
            bound = _in_scope(values) if values else frozenset()
            return pattern_variables(pattern) | bound
        case ast.SubSelect(items=items, values=values):
            bound = _in_scope(values) if values else frozenset()
            return frozenset(i.var.name for i in items or () if i.var) | bound


def triple_variables(block: ast.Triples) -> frozenset[str]:
    """Names of the variables in a block of triples. Paths have none."""
    terms = [term for t in block.triples for term in (t.subject, t.predicate, t.object)]
    names = {term.name for term in terms if isinstance(term, ast.Var)}
    for term in terms:
        if isinstance(term, ast.TripleTerm):
            names.update(leaf.name for leaf in leaves(term) if isinstance(leaf, ast.Var))
    return frozenset(names)


def plainly_bound(group: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables in the triple patterns of a group itself, which every solution binds."""
    blocks = (e for e in group.elements if isinstance(e, ast.Triples))
    return frozenset().union(*map(triple_variables, blocks))


def leaves(term: ast.Node) -> Iterator[ast.Node]:
    """The term, or the terms inside a triple term at any depth."""
    if isinstance(term, ast.TripleTerm):
        for part in term.terms:
            yield from leaves(part)
    else:
        yield term


def filters_of(group: ast.GroupGraphPattern) -> Iterator[ast.Expr]:
    """The FILTERs of a group, at any depth, in the order of the text; not inside EXISTS."""
    for element in group.elements:
        if isinstance(element, ast.Filter):
            yield element.expr
        for inner in nested_groups(element):
            yield from filters_of(inner)


def nested_groups(element: ast.Element) -> tuple[ast.GroupGraphPattern, ...]:
    """The groups directly inside an element; the element itself if it is a group."""
    match element:
        case ast.GroupGraphPattern():
            return (element,)
        case ast.GroupOrUnionGraphPattern(alternatives):
            return alternatives
        case (
            ast.OptionalGraphPattern(pattern)
            | ast.MinusGraphPattern(pattern)
            | ast.GraphGraphPattern(_, pattern)
            | ast.ServiceGraphPattern(_, pattern)
            | ast.EventGraphPattern(pattern=pattern)
            | ast.SubSelect(pattern=pattern)
        ):
            return (pattern,)
        case _:
            return ()


def local_nodes(node: ast.Node) -> Iterator[ast.Node]:
    """Like `walk_patterns`, without the contents of SERVICE, which an endpoint evaluates."""
    return _walk(node, (*_TRIPLES, ast.ServiceGraphPattern))


def graph_names(group: ast.GroupGraphPattern) -> Iterator[ast.Var | ast.Iri]:
    """The variable or IRI of each GRAPH in a group, at any depth, also inside EXISTS."""
    for node in local_nodes(group):
        if isinstance(node, ast.GraphGraphPattern):
            yield node.name


def service_names(node: ast.Node) -> Iterator[ast.Var | ast.Iri]:
    """The variable or IRI of each SERVICE that is not inside another one."""
    for inner in local_nodes(node):
        if isinstance(inner, ast.ServiceGraphPattern):
            yield inner.name


def variables_of(node: ast.Node) -> frozenset[str]:
    """Names of all variables anywhere in a node, also in PREV, aggregates and EXISTS."""
    return frozenset(inner.name for inner in walk(node) if isinstance(inner, ast.Var))
