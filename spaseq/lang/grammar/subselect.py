"""Sub-queries (SPARQL 1.1 section 19.8, productions 8, 9 and 18-28)."""

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
)
from spaseq.lang.grammar.rules import Word, just, keyword, mark, rule, symbols, words
from spaseq.lang.grammar.terminals import INTEGER, VAR
from spaseq.lang.grammar.values import INLINE_DATA
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
