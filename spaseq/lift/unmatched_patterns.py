"""Warnings for patterns of a query that no graph of a lift can match, whatever the rows are.

A triple pattern is compared with the triples of the template: their constants, and what is known of
the terms of their variables. Fields are literals, and `BIND (IRI(CONCAT("http://e/", ?f)) AS ?x)`
makes IRIs that begin with `http://e/`. Triple patterns with a variable or a path as predicate, and
those of knowledge bases and endpoints, are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spaseq.algebra.constants import constant_text
from spaseq.algebra.nodes import PatternTerm, TriplePattern, is_reserved
from spaseq.algebra.triple_terms import TermReader
from spaseq.errors import Diagnostic, QueryText
from spaseq.lang import ast
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import children
from spaseq.lift.lift_plan import LiftPlan, TemplateTriple
from spaseq.lift.virtual_patterns import unified
from spaseq.rdf.terms.term import split_literal
from spaseq.rdf.terms.vocabulary import XSD
from spaseq.records import record

_ABSOLUTE = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")

_LITERALS = frozenset(
    [
        *("STR", "CONCAT", "LCASE", "UCASE", "SUBSTR", "STRBEFORE", "STRAFTER", "REPLACE"),
        *("STRDT", "STRLANG", "STRLEN", "LANG", "ENCODE_FOR_URI"),
        *("ABS", "CEIL", "FLOOR", "ROUND", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"),
        *("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"),
    ]
)
"""Functions that give literals, if they give anything."""


@record
class _TermKind:
    """What is known of the terms of a variable.

    `begin` is how all of their texts begin: `"` for literals, `<http://e/` for some IRIs.
    """

    begin: str

    def may_be(self, text: str) -> bool:
        return text.startswith(self.begin)


def unmatched_patterns(
    gpm: ast.Gpm, lifts: Sequence[LiftPlan], source: QueryText
) -> Iterator[Diagnostic]:
    """The warnings for a GPM; `lifts` are those of all its streams."""
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
    choices = [[own for own in template if _may_be(p, own, known)] for p in patterns]
    if not all(choices):
        return False
    # More ways than `unified` looks at are taken to be some.
    return unified(patterns, list(dict.fromkeys(own for some in choices for own in some))) != []


def _iri(triple: ast.Triple) -> ast.Iri:
    assert isinstance(triple.predicate, ast.Iri)
    return triple.predicate


def _template(lift: LiftPlan) -> list[TemplateTriple]:
    """The triples that graphs may have."""
    return [t for plan in (lift, *lift.others) for t in plan.template if t.inside]


def _may_be(
    pattern: TriplePattern,
    own: tuple[PatternTerm, PatternTerm, PatternTerm],
    known: Mapping[str, _TermKind],
) -> bool:
    for place, (term, made) in enumerate(zip(pattern.terms, own, strict=True)):
        if isinstance(made, str):
            if isinstance(term, str) and term != made:
                return False
            continue
        what = known.get(made.name)
        if what is None:
            continue
        if isinstance(term, str) and not what.may_be(term):
            return False
        if place < 2 and what.begin == '"':  # no triple has such a subject or predicate
            return False
    return True


def _known_terms(lift: LiftPlan) -> dict[str, _TermKind]:
    """What is known of the terms of the variables of a lift."""
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
