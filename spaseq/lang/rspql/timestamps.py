"""C-SPARQL's `f:timestamp(?s, ?p, ?o)`: the latest time at which the window has a triple."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from spaseq.lang import ast
from spaseq.lang.rspql.merged_graphs import free_name
from spaseq.lang.variables import rewritten, walk

TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"


def with_times(select: ast.SubSelect) -> ast.SubSelect:
    """The query with a variable for each call, which a sub-SELECT over the events binds.

    The sub-SELECT stands in the group of the FILTER or BIND that calls, or else in the whole
    pattern.
    """
    if not any(map(_is_call, walk(select))):
        return select
    known = {n.name for n in walk(select) if isinstance(n, ast.Var)}
    times = _Times(known)

    def change(node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.GroupGraphPattern):
            return None
        return times.group(node.elements, change, node)

    pattern = times.group(select.pattern.elements, change, select.pattern)
    outer = _Times(known)
    outside = {
        name: tuple(rewritten(part, outer.named) for part in getattr(select, name) or ())
        for name in ("items", "group_by", "having", "order_by")
    }
    elements = (*pattern.elements, *outer.elements)
    given: Any = {**outside, "items": outside["items"] if select.items else None}
    return replace(select, pattern=replace(pattern, elements=elements), **given)


def _is_call(node: ast.Node) -> bool:
    return isinstance(node, ast.FunctionCall) and node.function.value == TIMESTAMP


@dataclass
class _Times:
    """The calls of one group, by their arguments."""

    known: set[str]
    names: dict[tuple[ast.Node, ...], str] = field(default_factory=dict)

    def group(
        self, elements: tuple[ast.Element, ...], change: Any, node: ast.GroupGraphPattern
    ) -> ast.GroupGraphPattern:
        times = _Times(self.known)
        made: list[ast.Element] = []
        for element in elements:
            if isinstance(element, ast.Filter | ast.Bind):
                element = replace(element, expr=rewritten(element.expr, times.named))
            made.append(rewritten(element, change))
        return replace(node, elements=(*times.elements, *made))

    def named(self, node: ast.Node) -> ast.Node | None:
        """The variable that stands for a call."""
        if not isinstance(node, ast.FunctionCall) or not _is_call(node) or len(node.args) != 3:
            return None
        if node.args not in self.names:
            name = self.names[node.args] = free_name("latest", self.known)
            self.known.add(name)
        return ast.Var(self.names[node.args], span=node.span)

    @property
    def elements(self) -> list[ast.Element]:
        """A sub-SELECT for each call."""
        time = free_name("when", self.known)
        return [_latest(args, name, time) for args, name in self.names.items()]


def _latest(args: tuple[Any, ...], name: str, when: str) -> ast.Element:
    time = ast.Var(when)
    block = ast.Triples((ast.Triple(*args),))
    event = ast.EventGraphPattern(None, None, time, ast.GroupGraphPattern((block,)))
    keys = tuple(ast.SelectItem(arg) for arg in dict.fromkeys(args) if isinstance(arg, ast.Var))
    latest = ast.SelectItem(ast.Var(name), ast.Aggregate("MAX", time))
    inner = ast.GroupGraphPattern((event,))
    return ast.GroupGraphPattern((ast.SubSelect((*keys, latest), inner, group_by=keys),))
