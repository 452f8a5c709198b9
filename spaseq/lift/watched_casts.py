"""The WHERE of a lift, prepared so that casts of fields that fail are seen.

A cast in a FILTER gets a variable of its own. With `decimal=,` casts to numbers read a comma.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from spaseq.expr.casts import CASTS
from spaseq.lang import ast
from spaseq.lang.variables import rewritten
from spaseq.lift.lift_plan import LiftPlan, Unnest
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.terms.term import XSD
from spaseq.records import record

_LENIENT = frozenset({"COALESCE", "IF", "BOUND"})
"""Functions that a failed cast may be meant for."""

_NUMBERS = frozenset({"decimal", "double", "float", "integer"})
_NO_NUMBER = ast.Literal("")

Element: TypeAlias = "Unnest | ast.Element"

_SHOWN = 100


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
        """What happened, in words."""
        return (
            f"field {self.field}: {self.text} is no xsd:{self.datatype}, so the cast has no value"
        )


def lost_values(
    lost: Mapping[tuple[str, str], Mapping[int, str]], bad: Collection[int]
) -> Iterator[LostValue]:
    """What casts lose of rows that are not bad; `lost` has terms, by row, of (field, datatype)."""
    for (field, datatype), texts in lost.items():
        rows = sorted(texts.keys() - bad)
        if rows:
            yield LostValue(field, datatype, rows[0], shown_term(texts[rows[0]]), len(rows))


def bad_row(file: str, line: int | None, reason: str, lost: LostValue | None) -> BadInput:
    """The report of a row that is bad, or that lost a value."""
    counted = None if lost is None else (lost.field, lost.count)
    return BadInput(file, line, reason, lost=counted)


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
