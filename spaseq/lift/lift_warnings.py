"""Warnings for lifts: CSV fields that stay text, and patterns of a query that no graph of a lift
can match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spaseq.algebra.constants import TermReader
from spaseq.algebra.nodes import PatternTerm, TriplePattern, is_reserved
from spaseq.errors import Diagnostic, QueryText
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.lint_filters import kind_of
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import children, walk
from spaseq.lift.lift_checks import parse_lift
from spaseq.lift.lift_plan import LiftPlan, LiftQuery, TemplateTriple, Unnest
from spaseq.lift.lifted_graphs import unified
from spaseq.rdf.terms.term import GENERATED_AT_TIME, XSD, split_literal
from spaseq.records import record

_TEXTS = frozenset({"string"})


def uncast_fields(
    text: str, name: str, types: Mapping[str, str], time_predicate: str = GENERATED_AT_TIME
) -> tuple[Diagnostic, ...]:
    """The warnings for a lift of CSV or TSV; none if it has errors.

    Args:
        text: the lift.
        name: its name in messages.
        types: the local names of the datatypes of fields from --types, by variable.
        time_predicate: the IRI of the time predicate.

    >>> lift = "CONSTRUCT { <a:s> <a:p> ?p } WHERE { FILTER (?p > 5) }"
    >>> [d.message.partition(":")[0] for d in uncast_fields(lift, "<lift>", {})]
    ['?p is text in CSV, and a text is never compared with a number']
    """
    parsed = parse_lift(text, name)
    if parsed.lift is None:
        return ()
    warnings = dict.fromkeys(_found(parsed.lift, dict(types), time_predicate))
    return tuple(
        Diagnostic("warning", "uncast-field", message, node.span, parsed.source, (), None)
        for message, node in warnings
    )


def _found(
    lift: LiftQuery, types: dict[str, str], time_predicate: str
) -> Iterator[tuple[str, ast.Node]]:
    computed = _computed(lift)

    def is_text(node: ast.Node) -> bool:
        return isinstance(node, ast.Var) and node.name not in computed and node.name not in types

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


_ABSOLUTE = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")

_LITERALS = frozenset(
    [
        *("STR", "CONCAT", "LCASE", "UCASE", "SUBSTR", "STRBEFORE", "STRAFTER", "REPLACE"),
        *("STRDT", "STRLANG", "STRLEN", "LANG", "ENCODE_FOR_URI"),
        *("ABS", "CEIL", "FLOOR", "ROUND", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"),
        *("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"),
    ]
)
"""Functions whose results are literals, or errors."""


@record
class _TermKind:
    """The known form of the terms of a variable.

    `begin` is the common prefix of their texts: `"` for literals, `<http://e/` for some IRIs.
    """

    begin: str

    def may_be(self, text: str) -> bool:
        return text.startswith(self.begin)


def unmatched_patterns(
    gpm: ast.Gpm, lifts: Sequence[LiftPlan], source: QueryText
) -> Iterator[Diagnostic]:
    """The warnings for a GPM; `lifts` has the lifts of all its streams."""
    for block in _blocks(gpm.pattern):
        read = [t for t in block.triples if isinstance(t.predicate, ast.Iri)]
        alone = [t for t in read if not any(_has(lift, [t]) for lift in lifts)]
        for triple in alone:
            message, near = _words(triple, lifts)
            yield _warning(message, triple, source, near)
        if len(read) > 1 and not alone and not any(_has(lift, read) for lift in lifts):
            message = (
                f"no graph of {_names(lifts)} has triples for these {len(read)} patterns together"
            )
            yield _warning(message, read[0], source)


def _warning(
    message: str, triple: ast.Triple, source: QueryText, near: str | None = None
) -> Diagnostic:
    code = "pattern-never-matches"
    return Diagnostic("warning", code, message, triple.span, source, (), near)


def _words(triple: ast.Triple, lifts: Sequence[LiftPlan]) -> tuple[str, str | None]:
    """(message, nearest predicate) for a triple pattern that no template has."""
    assert isinstance(triple.predicate, ast.Iri)
    predicate = triple.predicate.value
    known = {
        t.terms[1][1:-1] for lift in lifts for t in _template(lift) if isinstance(t.terms[1], str)
    }
    if predicate in known:
        return f"no graph of {_names(lifts)} has such a triple with <{predicate}>", None
    near = suggested(predicate, sorted(known))
    return f"no graph of {_names(lifts)} has a triple with <{predicate}>", near


def _names(lifts: Sequence[LiftPlan]) -> str:
    return " and ".join(f"the lift {name}" for name in dict.fromkeys(lift.name for lift in lifts))


def _blocks(node: ast.Node) -> Iterator[ast.Triples]:
    """The triple patterns that read the event, by block."""
    if isinstance(node, ast.Triples):
        yield node
    elif not isinstance(node, ast.GraphGraphPattern | ast.ServiceGraphPattern):
        for child in children(node):
            yield from _blocks(child)


def _has(lift: LiftPlan, triples: Sequence[ast.Triple]) -> bool:
    """Whether some graph of a lift may have triples for patterns."""
    known = _known_terms(lift)
    term = TermReader().term
    patterns = [TriplePattern(term(t.subject), term(_iri(t)), term(t.object)) for t in triples]
    template = [t.terms for t in _template(lift)]
    choices = [[made for made in template if _may_be(p, made, known)] for p in patterns]
    if not all(choices):
        return False
    # More ways than `unified` tries count as some.
    return unified(patterns, list(dict.fromkeys(made for some in choices for made in some))) != []


def _iri(triple: ast.Triple) -> ast.Iri:
    assert isinstance(triple.predicate, ast.Iri)
    return triple.predicate


def _template(lift: LiftPlan) -> list[TemplateTriple]:
    """The triples that graphs may have."""
    return [t for plan in (lift, *lift.others) for t in plan.template if t.inside]


def _may_be(
    pattern: TriplePattern,
    triple: tuple[PatternTerm, PatternTerm, PatternTerm],
    known: Mapping[str, _TermKind],
) -> bool:
    for position, (term, made) in enumerate(zip(pattern.terms, triple, strict=True)):
        if isinstance(made, str):
            if isinstance(term, str) and term != made:
                return False
            continue
        what = known.get(made.name)
        if what is None:
            continue
        if isinstance(term, str) and not what.may_be(term):
            return False
        if position < 2 and what.begin == '"':  # no triple has such a subject or predicate
            return False
    return True


def _known_terms(lift: LiftPlan) -> dict[str, _TermKind]:
    """The known forms of the terms of the variables of a lift."""
    values = {
        variable.name
        for element in lift.elements
        if isinstance(element, ast.Values)
        for variable in element.variables
    }
    fields = (lift.fields.wanted | lift.fields.elements) - values
    known = {name: _TermKind('"') for name in fields}
    for element in lift.elements:
        if isinstance(element, ast.Bind):
            what = _of_expression(element.expr, known, lift.base)
            if what is not None:
                known[element.var.name] = what
    composed = dict(lift.composed)
    for triple in lift.template:
        known |= {
            t.name: _TermKind("<<" if t.name in composed else "_:")
            for t in triple.terms
            if isinstance(t, ast.Var) and is_reserved(t.name)
        }
    return known


def _of_expression(
    expr: ast.Expr, known: Mapping[str, _TermKind], base: str | None
) -> _TermKind | None:
    match expr:
        case ast.Var(name):
            return known.get(name)
        case ast.Call("IRI" | "URI", (ast.Call("CONCAT", (ast.Literal() as first, *_)),)):
            text = split_literal(constant_text(first))[0]
            return _TermKind(f"<{text}" if base is None and _ABSOLUTE.match(text) else "<")
        case ast.Call("IRI" | "URI"):
            return _TermKind("<")
        case ast.Call(name) if name in _LITERALS:
            return _TermKind('"')
        case ast.FunctionCall(ast.Iri(name)) if name.startswith(XSD):
            return _TermKind('"')
        case ast.Literal() | ast.Arithmetic() | ast.Compare():
            return _TermKind('"')
    return None
