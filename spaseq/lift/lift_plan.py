"""The syntax tree of a lift (docs/lift.md), and its plan: its fields, how solutions are made, and
what stands in its template.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spaseq.algebra.constants import TermReader, Terms, constant_text
from spaseq.algebra.nodes import PatternTerm
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.rdf.terms.term import iri_text
from spaseq.records import record

ROW_NUMBER = "_line"
"""The variable of a row's number in its file."""


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


@dataclass(frozen=True, slots=True)
class TemplateTriple:
    """A triple of the template; `inside` says that it belongs to the event's graph."""

    terms: tuple[PatternTerm, PatternTerm, PatternTerm]
    inside: bool


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields that a lift reads, by the names of their variables.

    Attributes:
        needed: the row must have them, as far as it has a header or a schema.
        optional: variables of VALUES, which join with a field if there is one.
        taken: names that BIND or UNNEST give, which no field may have.
        terms: the fields whose values are read as terms.
        elements: the variables of the elements of lists.
    """

    needed: frozenset[str]
    optional: frozenset[str]
    taken: frozenset[str]
    terms: frozenset[str]
    elements: frozenset[str]

    @property
    def wanted(self) -> frozenset[str]:
        """All fields that a reader gives, if the rows have them."""
        return self.needed | self.optional


@dataclass(frozen=True, slots=True)
class LiftPlan:
    """A checked lift. It is small and can be pickled.

    `graph` is the name of the event: a variable, the text of an IRI, or None without GRAPH. Further
    GRAPHs are further events of a row: `others` are their plans, with the same fields and elements.
    `composed` has the terms of each variable that stands for a triple term.
    """

    name: str
    fields: Fields
    elements: tuple[Unnest | ast.Element, ...]
    template: tuple[TemplateTriple, ...]
    graph: PatternTerm | None
    time_predicate: str  # N-Triples text
    base: str | None
    time_unit: str = "ms"  # the unit of integer times
    others: tuple[LiftPlan, ...] = ()
    composed: tuple[tuple[str, Terms], ...] = ()

    @property
    def terms(self) -> list[PatternTerm | None]:
        """The terms of all templates, and the names of all events."""
        all_terms: list[PatternTerm | None] = [t for _, terms in self.composed for t in terms]
        for plan in (self, *self.others):
            all_terms += [*(term for triple in plan.template for term in triple.terms), plan.graph]
        return all_terms


def plan_lift(lift: LiftQuery, name: str, time_predicate: str, time_unit: str = "ms") -> LiftPlan:
    """The plan of a lift without errors; `time_predicate` is an IRI."""
    reader = TermReader()
    outside = [_terms(t, reader) for t in lift.template.triples]
    graphs: dict[PatternTerm | None, list[Terms]] = {}
    for graph in lift.template.graphs:
        graphs.setdefault(_name_of(graph.name), []).extend(_terms(t, reader) for t in graph.triples)
    if not graphs:
        graphs, outside = {None: outside}, []
    predicate = iri_text(time_predicate)
    of_row = [*outside, *(t for triples in graphs.values() for t in triples if t[1] == predicate)]
    plans = []
    for event, triples in graphs.items():
        times = [t for t in outside if t[0] == event]
        if not times and len(graphs) > 1 and not any(t[1] == predicate for t in triples):
            times = of_row
        template = [
            *(TemplateTriple(t, False) for t in (times if len(graphs) > 1 else outside)),
            *(TemplateTriple(t, True) for t in triples),
        ]
        shared = name, _fields(lift), lift.where.elements
        plans.append(LiftPlan(*shared, tuple(template), event, predicate, lift.base, time_unit))
    composed = tuple(reader.composed.items())
    plans = [replace(plan, composed=composed) for plan in plans]
    return replace(plans[0], others=tuple(plans[1:]))


def _name_of(event: ast.Var | ast.Iri) -> PatternTerm:
    return ast.Var(event.name) if isinstance(event, ast.Var) else constant_text(event)


def time_field(plan: LiftPlan) -> str | None:
    """The field that is the time of each row as it stands; None if there is no such one."""
    if plan.others:
        return None
    objects = {t.terms[2] for t in plan.template if t.terms[1] == plan.time_predicate}
    if len(objects) != 1 or any(isinstance(t.terms[1], ast.Var) for t in plan.template):
        return None
    (term,) = objects
    name = term.name if isinstance(term, ast.Var) else None
    binds = {e.var.name: e.expr for e in plan.elements if isinstance(e, ast.Bind)}
    while name in binds:
        expr = binds[name]
        name = expr.name if isinstance(expr, ast.Var) else None
    return name if name in plan.fields.needed else None


def _terms(triple: ast.Triple, reader: TermReader) -> Terms:
    assert isinstance(triple.predicate, ast.Var | ast.Iri), "templates have no property paths"
    return (reader.term(triple.subject), reader.term(triple.predicate), reader.term(triple.object))


def _fields(lift: LiftQuery) -> Fields:
    elements = lift.where.elements
    unnests = [e for e in elements if isinstance(e, Unnest)]
    values = _variables(e for e in elements if isinstance(e, ast.Values))
    binds = [e for e in elements if isinstance(e, ast.Bind)]
    read = _variables(e.expr for e in elements if isinstance(e, ast.Bind | ast.Filter))
    read |= _variables([lift.template])
    bound = {e.var.name for e in binds}
    lists = {e.items.name for e in unnests}
    items = {e.item.name for e in unnests}
    mentioned = read | lists | values
    of_elements = {v for v in mentioned if _of_element(v, items) and v not in bound}
    row_fields = mentioned - bound - of_elements - {ROW_NUMBER}
    return Fields(
        needed=frozenset(row_fields - values),
        optional=frozenset(row_fields & values),
        taken=frozenset(bound | items | of_elements),
        terms=frozenset(row_fields & (read | values)),
        elements=frozenset(of_elements),
    )


def _of_element(variable: str, items: set[str]) -> bool:
    return any(variable == item or variable.startswith(f"{item}_") for item in items)


def _variables(nodes: Iterable[ast.Node]) -> set[str]:
    return {n.name for node in nodes for n in walk(node) if isinstance(n, ast.Var)}
