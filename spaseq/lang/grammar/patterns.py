"""Group graph patterns (SPARQL 1.1 section 19.8, productions 53-67)."""

from __future__ import annotations

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.expressions import (
    CONSTRAINT,
    EXPRESSION,
    GROUP_GRAPH_PATTERN,
)
from spaseq.lang.grammar.rules import Word, just, keyword, mark, rule, whole, words
from spaseq.lang.grammar.sequences import REF
from spaseq.lang.grammar.subselect import SUB_SELECT
from spaseq.lang.grammar.terminals import IRI, VAR
from spaseq.lang.grammar.triples import TRIPLES_BLOCK
from spaseq.lang.grammar.values import INLINE_DATA


def _group(span: Span, *elements: ast.Element) -> ast.GroupGraphPattern:
    return ast.GroupGraphPattern(elements, span=span)


def _group_or_union(span: Span, *groups: ast.GroupGraphPattern) -> ast.Element:
    return groups[0] if len(groups) == 1 else ast.GroupOrUnionGraphPattern(groups, span=span)


def _service(
    span: Span, *tokens: Word | ast.Var | ast.Iri | ast.GroupGraphPattern
) -> ast.ServiceGraphPattern:
    *silent, name, pattern = tokens
    return ast.ServiceGraphPattern(name, pattern, bool(silent), span=span)  # type: ignore[arg-type]


def _event(
    span: Span, *parts: ast.Ref | Word | ast.Var | ast.GroupGraphPattern
) -> ast.EventGraphPattern:
    stream: ast.Ref | None = None
    event: ast.Var | None = None
    time: ast.Var | None = None
    for before, part in zip((None, *parts), parts, strict=False):
        if isinstance(part, ast.Ref):
            stream = part
        elif isinstance(part, ast.Var) and isinstance(before, Word):
            time = part
        elif isinstance(part, ast.Var):
            event = part
    return ast.EventGraphPattern(stream, event, time, parts[-1], span=span)  # type: ignore[arg-type]


def _bind(span: Span, expr: ast.Expr, var: ast.Var) -> ast.Bind:
    return ast.Bind(expr, var, span=span)


_VAR_OR_IRI = VAR | IRI

_FILTER = rule(keyword("FILTER") + CONSTRAINT, lambda span, expr: ast.Filter(expr, span=span))
_OPTIONAL = rule(
    keyword("OPTIONAL") + GROUP_GRAPH_PATTERN,
    lambda span, group: ast.OptionalGraphPattern(group, span=span),
)
_MINUS = rule(
    keyword("MINUS") + GROUP_GRAPH_PATTERN,
    lambda span, group: ast.MinusGraphPattern(group, span=span),
)
_GRAPH = rule(
    keyword("GRAPH") + _VAR_OR_IRI + GROUP_GRAPH_PATTERN,
    lambda span, name, group: ast.GraphGraphPattern(name, group, span=span),
)
_SERVICE = rule(
    keyword("SERVICE") + words("SILENT")[0, 1] + _VAR_OR_IRI + GROUP_GRAPH_PATTERN, _service
)
_EVENT = rule(
    keyword("EVENT")
    + (keyword("ON") + REF)[0, 1]
    + VAR[0, 1]
    + (words("AT") + VAR)[0, 1]
    + GROUP_GRAPH_PATTERN,
    _event,
)
_BIND = rule(
    keyword("BIND") + mark("(") + EXPRESSION + keyword("AS") + VAR + mark(")"),
    _bind,
)
_GROUP_OR_UNION = rule(
    GROUP_GRAPH_PATTERN + (keyword("UNION") + GROUP_GRAPH_PATTERN)[...], _group_or_union
)

NOT_TRIPLES = (
    _FILTER
    | _GROUP_OR_UNION
    | _OPTIONAL
    | _MINUS
    | _GRAPH
    | _SERVICE
    | _EVENT
    | _BIND
    | INLINE_DATA
)
_ELEMENTS = TRIPLES_BLOCK[0, 1] + (NOT_TRIPLES + mark(".")[0, 1] + TRIPLES_BLOCK[0, 1])[...]

GROUP_GRAPH_PATTERN <<= rule(mark("{") + (SUB_SELECT | _ELEMENTS) + mark("}"), _group)

GROUP = just(GROUP_GRAPH_PATTERN)
WHOLE_GROUP = whole(GROUP_GRAPH_PATTERN)
