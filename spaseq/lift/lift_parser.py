"""From the text of a lift to its syntax tree (docs/lift.md), with diagnostics as for queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from spaseq.errors import Diagnostic, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.depth import DEEPEST, too_deep, too_deep_groups
from spaseq.lang.findings import Findings, TooManyErrors
from spaseq.lang.grammar.patterns import NOT_TRIPLES
from spaseq.lang.grammar.rules import (
    IRI,
    IRI_REFERENCE,
    NAMESPACE,
    VAR,
    Word,
    just,
    keyword,
    mark,
    rule,
    whole,
)
from spaseq.lang.grammar.triples import TRIPLES_BLOCK, TRIPLES_TEMPLATE
from spaseq.lang.names import BaseClause, NameResolver, PrefixClause
from spaseq.lang.parser import MOST_CHARACTERS
from spaseq.lang.scan import restore_spans, scan
from spaseq.lang.section_parser import SectionParser
from spaseq.lift.lift_plan import LiftQuery, LiftTemplate, LiftWhere, TemplateGraph, Unnest


def _base(span: Span, iri: ast.Iri) -> BaseClause:
    return BaseClause(iri, span=span)


def _prefix(span: Span, namespace: Word, iri: ast.Iri) -> PrefixClause:
    return PrefixClause(namespace.text[:-1], iri, span=span)


def _flat(blocks: Any) -> tuple[ast.Triple, ...]:
    return tuple(triple for block in blocks for triple in block.triples)


def _graph(span: Span, name: ast.Var | ast.Iri, *blocks: ast.Triples) -> TemplateGraph:
    return TemplateGraph(name, _flat(blocks), span=span)


def _template(span: Span, *parts: ast.Triples | TemplateGraph) -> LiftTemplate:
    graphs = tuple(part for part in parts if isinstance(part, TemplateGraph))
    blocks = [part for part in parts if isinstance(part, ast.Triples)]
    return LiftTemplate(_flat(blocks), graphs, span=span)


def _unnest(span: Span, items: ast.Var, item: ast.Var) -> Unnest:
    return Unnest(items, item, span=span)


def _where(span: Span, *elements: Unnest | ast.Element) -> LiftWhere:
    return LiftWhere(elements, span=span)


_PROLOGUE = (
    rule(keyword("BASE") + just(IRI_REFERENCE), _base)
    | rule(keyword("PREFIX") + NAMESPACE + IRI_REFERENCE, _prefix)
)[...]
_GRAPH = rule(
    keyword("GRAPH") + (VAR | IRI) + mark("{") + TRIPLES_TEMPLATE[0, 1] + mark("}"), _graph
)
_TEMPLATE = rule(
    keyword("CONSTRUCT")
    + mark("{")
    + (_GRAPH + mark(".")[0, 1] | TRIPLES_TEMPLATE)[...]
    + mark("}"),
    _template,
)
_UNNEST = rule(keyword("UNNEST") + VAR + keyword("AS") + VAR, _unnest)
# All of SPARQL's patterns are read here; the checks refuse the others with their place.
_ELEMENT = (_UNNEST | NOT_TRIPLES) + mark(".")[0, 1] | TRIPLES_BLOCK
_WHERE = rule(keyword("WHERE")[0, 1] + mark("{") + _ELEMENT[...] + mark("}"), _where)

WHOLE_LIFT = whole(_PROLOGUE + _TEMPLATE + _WHERE)

NodeT = TypeVar("NodeT", bound=ast.Node)

_OF_QUERIES = frozenset({"SEQ", "WITHIN", "DEFINE", "STREAM"})


@dataclass(frozen=True, slots=True)
class ParsedLift:
    """A lift with its diagnostics; `lift` is None if it cannot be read."""

    source: QueryText
    lift: LiftQuery | None
    diagnostics: tuple[Diagnostic, ...]


def is_lift(text: str, name: str = "") -> bool:
    """Whether a text is a lift rather than a query, by its name (`.lift.rq`) or by its words.

    >>> is_lift("CONSTRUCT { ?s ?p ?o } WHERE { }"), is_lift("CONSTRUCT {} WITHIN 1 HOURS")
    (True, False)
    """
    if name.endswith(".lift.rq"):
        return True
    words = {lexeme.keyword for lexeme in scan(text[:MOST_CHARACTERS])}
    return "CONSTRUCT" in words and not words & _OF_QUERIES


def parse_lift(text: str, name: str = "<lift>") -> ParsedLift:
    """Parse a lift and resolve its names. Mistakes become diagnostics."""
    source = QueryText(text, name)
    try:
        if len(text) > MOST_CHARACTERS:
            end = Span(MOST_CHARACTERS, MOST_CHARACTERS + 1)
            message = f"a lift has at most {MOST_CHARACTERS:,} characters"
            return ParsedLift(
                source, None, (Diagnostic("error", "too-long", message, end, source),)
            )
        parser = SectionParser.of(source)
        lift = _read(parser)
        return ParsedLift(source, lift, parser.findings.in_order())
    except TooManyErrors as stop:
        return ParsedLift(source, None, stop.findings.in_order())


def _read(parser: SectionParser) -> LiftQuery | None:

    findings = parser.findings
    if not parser.lexemes:
        findings.error("the lift is empty", Span(0, 0), expected=("CONSTRUCT",))
        return None
    if parser.too_long is not None:
        findings.error("the lift has too many words and signs", parser.too_long, code="too-long")
        return None
    deep, nodes = too_deep_groups(parser.lexemes), None
    if deep is None:
        nodes = parser.parse(WHOLE_LIFT, Span(0, len(parser.text)), "the lift", then="the end")
        deep = too_deep(nodes or ())
    if deep is not None:
        findings.error(f"the lift is more than {DEEPEST} levels deep here", deep, code="too-deep")
        return None
    return None if nodes is None else _resolved(nodes, findings)


def _resolved(nodes: list[ast.Node], findings: Findings) -> LiftQuery:
    names = NameResolver(findings)
    names.declare([n for n in nodes if isinstance(n, BaseClause | PrefixClause)])
    template = _only(nodes, LiftTemplate)
    where = _only(nodes, LiftWhere)
    span = Span(nodes[0].span.start, nodes[-1].span.end)
    lift = LiftQuery(names.resolved(template), names.resolved(where), names.base, span=span)
    return restore_spans(lift, findings.text)


def _only(nodes: list[ast.Node], kind: type[NodeT]) -> NodeT:
    return next(node for node in nodes if isinstance(node, kind))
