"""Warnings for lifts of CSV and TSV, in which every field is text unless it has a type.

A text is never equal to a number, less or greater than one, and it is no time. CONCAT takes
nothing but text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spaseq.errors import Diagnostic
from spaseq.lang import ast
from spaseq.lang.comparisons import kind_of
from spaseq.lang.variables import walk
from spaseq.lift.lift_nodes import LiftQuery, Unnest
from spaseq.lift.lift_parser import parse_lift
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME

_TEXTS = frozenset({"string"})


def uncast_fields(
    text: str,
    name: str,
    types: Mapping[str, str],
    time_predicate: str = GENERATED_AT_TIME,
) -> tuple[Diagnostic, ...]:
    """The warnings for a lift of CSV or TSV; none if it has errors.

    Args:
        text: the lift.
        name: its name in messages.
        types: the local names of the datatypes that --types gives to fields, by variable.
        time_predicate: the IRI of the time predicate.

    >>> lift = "CONSTRUCT { <a:s> <a:p> ?p } WHERE { FILTER (?p > 5) }"
    >>> [d.message.partition(":")[0] for d in uncast_fields(lift, "<lift>", {})]
    ['?p is text in CSV, and a text is never compared with a number']
    """
    parsed = parse_lift(text, name)
    if parsed.lift is None:
        return ()
    found = dict.fromkeys(_found(parsed.lift, dict(types), time_predicate))
    return tuple(
        Diagnostic("warning", "uncast-field", message, node.span, parsed.source, (), None)
        for message, node in found
    )


def _found(
    lift: LiftQuery, types: dict[str, str], time_predicate: str
) -> Iterator[tuple[str, ast.Node]]:
    own = _computed(lift)

    def is_text(node: ast.Node) -> bool:
        return isinstance(node, ast.Var) and node.name not in own and node.name not in types

    for node in (n for element in lift.where.elements for n in walk(element)):
        match node:
            case ast.Compare(_, left, right):
                for one, other in ((left, right), (right, left)):
                    if is_text(one) and kind_of(other) == "number":
                        yield _message(one, "is never compared with a number", "decimal"), one
            case ast.Arithmetic(_, left, right):
                for one in (left, right):
                    if is_text(one):
                        yield _message(one, "is no number", "decimal"), one
            case ast.Call("CONCAT", args):
                for one in args:
                    if isinstance(one, ast.Var) and types.get(one.name, "string") not in _TEXTS:
                        reason = "is no text by --types, and CONCAT takes only text"
                        yield f"?{one.name} {reason}: write STR(?{one.name})", one
    inside = [triple for graph in lift.template.graphs for triple in graph.triples]
    for triple in (*lift.template.triples, *inside):
        if triple.predicate == ast.Iri(time_predicate) and is_text(triple.object):
            yield _message(triple.object, "is no time", "dateTime"), triple.object


def _message(field: ast.Node, why: str, datatype: str) -> str:
    assert isinstance(field, ast.Var)
    name = field.name
    return (
        f"?{name} is text in CSV, and a text {why}: cast it, xsd:{datatype}(?{name}), or give "
        f"--types {name}={datatype}"
    )


def _computed(lift: LiftQuery) -> set[str]:
    """The variables that are no fields, or not only."""
    names: set[str] = {"_line"}
    for element in lift.where.elements:
        match element:
            case ast.Bind(_, var):
                names.add(var.name)
            case Unnest(_, item):
                names.add(item.name)
            case ast.Values(variables):
                names.update(variable.name for variable in variables)
    return names
