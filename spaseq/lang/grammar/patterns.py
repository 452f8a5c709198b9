"""Group graph patterns and sub-queries (SPARQL 1.1 section 19.8)."""

from __future__ import annotations

from typing import Any

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.expressions import (
    BRACKETED_EXPRESSION,
    CALL,
    CONSTRAINT,
    EXPRESSION,
    FUNCTION_CALL,
    GROUP_GRAPH_PATTERN,
    INLINE_DATA,
)
from spaseq.lang.grammar.rules import (
    INTEGER,
    IRI,
    VAR,
    Word,
    just,
    keyword,
    mark,
    rule,
    symbols,
    whole,
    words,
)
from spaseq.lang.grammar.sequences import REF
from spaseq.lang.grammar.triples import TRIPLES_BLOCK
from spaseq.records import record


@record
class ClausePart:
    """The value of one clause of the sub-query, for a field of the node."""

    field: str
    value: Any
    span: Span


def _select_item(span: Span, *tokens: ast.Expr) -> ast.SelectItem:
    match tokens:
        case (ast.Var() as var,):
            return ast.SelectItem(var, span=span)
        case (expr, ast.Var() as var):
            return ast.SelectItem(var, expr, span=span)
    raise AssertionError(tokens)


def _group_item(span: Span, *tokens: ast.Expr) -> ast.SelectItem:
    match tokens:
        case (ast.Var(),) | (_, ast.Var()):
            return _select_item(span, *tokens)
        case (expr,):
            return ast.SelectItem(None, expr, span=span)
    raise AssertionError(tokens)


def _order_condition(span: Span, *tokens: Word | ast.Expr) -> ast.OrderCondition:
    *direction, expr = tokens
    descending = any(word.text == "DESC" for word in direction)  # type: ignore[union-attr]
    return ast.OrderCondition(expr, descending, span=span)  # type: ignore[arg-type]


def _listed(field: str) -> Any:
    return lambda span, *items: ClausePart(field, items, span)


def _number(field: str) -> Any:
    return lambda span, number: ClausePart(field, int(number.text), span)


def _projected(span: Span, *tokens: Word | ast.SelectItem) -> ClausePart:
    items = tuple(token for token in tokens if not isinstance(token, Word))
    return ClausePart("items", items or None, span)


def sub_select(
    span: Span, *tokens: Word | ClausePart | ast.GroupGraphPattern | ast.Values
) -> ast.SubSelect:
    """The node of a query with these parts."""
    fields: dict[str, Any] = {"items": None}
    for token in tokens:
        match token:
            case Word(word):
                fields[word.lower()] = True
            case ClausePart(field, value):
                fields[field] = value
            case ast.GroupGraphPattern():
                fields["pattern"] = token
            case ast.Values():
                fields["values"] = token
    return ast.SubSelect(**fields, span=span)


STAR = symbols(r"\*", "'*'", "*")
SELECT_ITEM = rule(just(VAR), _select_item) | rule(
    mark("(") + EXPRESSION + keyword("AS") + VAR + mark(")"), _select_item
)

PROJECTION = rule(STAR | SELECT_ITEM[1, ...], _projected)
_GROUP_ITEM = (
    rule(just(VAR), _group_item)
    | rule(mark("(") + EXPRESSION + (keyword("AS") + VAR)[0, 1] + mark(")"), _group_item)
    | rule(CALL | FUNCTION_CALL, _group_item)
)
_GROUP_BY = rule(keyword("GROUP") + keyword("BY") + _GROUP_ITEM[1, ...], _listed("group_by"))
_HAVING = rule(keyword("HAVING") + CONSTRAINT[1, ...], _listed("having"))
_ORDER_CONDITION = rule(
    words("ASC", "DESC") + BRACKETED_EXPRESSION | CONSTRAINT | VAR, _order_condition
)
_ORDER_BY = rule(keyword("ORDER") + keyword("BY") + _ORDER_CONDITION[1, ...], _listed("order_by"))
_LIMIT = rule(keyword("LIMIT") + INTEGER, _number("limit"))
_OFFSET = rule(keyword("OFFSET") + INTEGER, _number("offset"))
MODIFIERS = (
    _GROUP_BY[0, 1]
    + _HAVING[0, 1]
    + _ORDER_BY[0, 1]
    + (_LIMIT + _OFFSET[0, 1] | _OFFSET + _LIMIT[0, 1])[0, 1]
    + INLINE_DATA[0, 1]
)

SUB_SELECT = rule(
    keyword("SELECT")
    + words("DISTINCT", "REDUCED")[0, 1]
    + PROJECTION
    + keyword("WHERE")[0, 1]
    + GROUP_GRAPH_PATTERN
    + MODIFIERS,
    sub_select,
)


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
_BIND = rule(keyword("BIND") + mark("(") + EXPRESSION + keyword("AS") + VAR + mark(")"), _bind)
_GROUP_OR_UNION = rule(
    GROUP_GRAPH_PATTERN + (keyword("UNION") + GROUP_GRAPH_PATTERN)[...],
    _group_or_union,
    keeps_one=True,
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
