"""The syntax tree of a lift (docs/lift.md), and its plan: fields, WHERE and template.

A cast in a FILTER gets a variable, so that failing casts of fields are noticed. With `decimal=,`
casts to numbers read a comma.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from spaseq.algebra.constants import TermReader, Terms
from spaseq.algebra.nodes import PatternTerm
from spaseq.expr.casts import CASTS
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import rewritten, walk
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.terms.term import XSD, iri_text
from spaseq.records import record

ROW_NUMBER = "_line"
"""The variable of a row's number in its file."""

_LENIENT = frozenset({"COALESCE", "IF", "BOUND"})
"""Functions that a failed cast may be meant for."""

_NUMBERS = frozenset({"decimal", "double", "float", "integer"})
_NO_NUMBER = ast.Literal("")

Element: TypeAlias = "Unnest | ast.Element"

_SHOWN = 100


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
        optional: variables of VALUES, which join with a field of the same name.
        taken: names from BIND or UNNEST, which no field may have.
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
    `composed` has the terms of each variable of a triple term.
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
    def binds(self) -> dict[str, ast.Expr]:
        """The expressions of BIND, by variable."""
        return {e.var.name: e.expr for e in self.elements if isinstance(e, ast.Bind)}

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
    binds = plan.binds
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


def shown_term(term: str) -> str:
    """A term in a report, cut if it is long."""
    return term if len(term) <= _SHOWN else term[:_SHOWN] + "..."


@record
class LostValue:
    """Values of a field that a cast loses.

    `row` is the place of the first such row in its block, `text` the term there. `count` is the
    number of rows.
    """

    field: str
    datatype: str
    row: int
    text: str
    count: int

    @property
    def reason(self) -> str:
        """The failure, in words."""
        return (
            f"field {self.field}: {self.text} is no xsd:{self.datatype}, so the cast has no value"
        )


OnBadRow = Callable[[int, str, "LostValue | None"], None]
"""Called with the line or number of a bad row, and the reason.

With a lost value the row is an event, without the result of a cast.
"""


def row_reports(name: Callable[[int], tuple[str, int | None]], on_bad: OnBad) -> OnBadRow:
    """Reports rows that are bad, or lost a value; `name` gives (file, line) of a line."""

    def report(line: int, reason: str, lost: LostValue | None) -> None:
        counted = None if lost is None else (lost.field, lost.count)
        on_bad(BadInput(*name(line), reason, lost=counted))

    return report


@record
class WatchedWhere:
    """The elements, casts of fields first; `casts` has (field, datatype) by variable."""

    elements: tuple[Element, ...]
    casts: Mapping[str, tuple[str, str]]


def watched_where(plan: LiftPlan, decimal: str = ".") -> WatchedWhere:
    """The WHERE of a lift, whose numbers have this decimal sign."""
    casts: dict[str, tuple[str, str]] = {}
    hidden: dict[tuple[str, str], ast.Bind] = {}
    first: list[Element] = []
    others: list[Element] = []

    def change(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Or) or (isinstance(node, ast.Call) and node.function in _LENIENT):
            return node
        field_cast = _cast_of_field(node, plan)
        if field_cast is None:
            return None
        var = ast.Var(f".{field_cast[1]} {field_cast[0]}")
        hidden[field_cast] = ast.Bind(node, var)  # type: ignore[arg-type]
        casts[var.name] = field_cast
        return var

    for element in plan.elements:
        if isinstance(element, ast.Bind) and (field_cast := _cast_of_field(element.expr, plan)):
            casts[element.var.name] = field_cast
            (first if field_cast[0] in plan.fields.needed else others).append(element)
        elif isinstance(element, ast.Filter):
            others.append(rewritten(element, change))
        else:
            others.append(element)
    for (field, _), bind in hidden.items():
        (first if field in plan.fields.needed else others).append(bind)
    elements = (*first, *others)
    if decimal == ",":
        elements = tuple(rewritten(e, lambda node: _with_comma(node, plan)) for e in elements)
    return WatchedWhere(elements, casts)


def cast_of(name: str, datatype: str, decimal: str) -> ast.Expr:
    """The cast of a field to a type that a user gave it."""
    field = ast.Var(name)
    reads_comma = decimal == "," and datatype in _NUMBERS
    text = _comma_as_point(field) if reads_comma else field
    return ast.FunctionCall(ast.Iri(XSD + datatype), (text,))


def _cast_of_field(node: ast.Node, plan: LiftPlan) -> tuple[str, str] | None:
    """(field, datatype) if a node is the cast of a field; STR around the field is left out."""
    match node:
        case ast.FunctionCall(ast.Iri(iri), (ast.Var(name) | ast.Call("STR", (ast.Var(name),)),)):
            known = name in plan.fields.needed or name in plan.fields.elements
            return (name, iri.removeprefix(XSD)) if known and iri in CASTS else None
    return None


def _with_comma(node: ast.Node, plan: LiftPlan) -> ast.Node | None:
    """The cast of a field to a number that reads a comma; None for other nodes."""
    field_cast = _cast_of_field(node, plan)
    if field_cast is None or field_cast[1] not in _NUMBERS:
        return None
    return cast_of(*field_cast, ",")


def _comma_as_point(field: ast.Var) -> ast.Expr:
    """A text with a point for a comma; one that has a point is no number."""
    point, comma = ast.Literal("."), ast.Literal(",")
    changed = ast.Call("REPLACE", (field, comma, point))
    return ast.Call("IF", (ast.Call("CONTAINS", (field, point)), _NO_NUMBER, changed))
