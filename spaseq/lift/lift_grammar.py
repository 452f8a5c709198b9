"""The grammar of lifts. All but UNNEST and the template's GRAPH is the grammar of queries."""

from __future__ import annotations

from typing import Any

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.patterns import NOT_TRIPLES
from spaseq.lang.grammar.rules import Word, just, keyword, mark, rule, whole
from spaseq.lang.grammar.terminals import IRI, IRI_REFERENCE, NAMESPACE, VAR
from spaseq.lang.grammar.triples import TRIPLES_BLOCK, TRIPLES_TEMPLATE
from spaseq.lang.unresolved import BaseClause, PrefixClause
from spaseq.lift.lift_nodes import LiftTemplate, LiftWhere, TemplateGraph, Unnest


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
