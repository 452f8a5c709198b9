"""The syntax tree of a lift (docs/lift.md)."""

from __future__ import annotations

from spaseq.lang import ast
from spaseq.records import record


@record
class Unnest(ast.Node):
    """`UNNEST ?items AS ?item`: each element of a list is a solution."""

    items: ast.Var
    item: ast.Var


@record
class TemplateGraph(ast.Node):
    """`GRAPH ?event { ... }` of a template; `name` is the event's name."""

    name: ast.Var | ast.Iri
    triples: tuple[ast.Triple, ...]


@record
class LiftTemplate(ast.Node):
    """The template. Each GRAPH of another name is an event."""

    triples: tuple[ast.Triple, ...]
    graphs: tuple[TemplateGraph, ...]


@record
class LiftWhere(ast.Node):
    """The elements of WHERE in the order of the text."""

    elements: tuple[Unnest | ast.Element, ...]


@record
class LiftQuery(ast.Node):
    """A lift; its names are resolved."""

    template: LiftTemplate
    where: LiftWhere
    base: str | None = None
