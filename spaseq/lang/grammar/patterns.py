"""Group graph patterns and sub-queries (SPARQL 1.1 section 19.8), and sequence expressions
(docs/lookup.md#grammar).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyparsing import Forward

from spaseq.errors import Span
from spaseq.lang import ast, lexical
from spaseq.lang.ast.pattern_nodes import OPERATORS
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
    INITIALS,
    INTEGER,
    IRI,
    NAME,
    VAR,
    Punctuation,
    Word,
    just,
    keyword,
    mark,
    rule,
    symbols,
    terminal,
    whole,
    words,
)
from spaseq.lang.grammar.triples import TRIPLES_BLOCK
from spaseq.records import record

SEQUENCE = Forward()

UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
A_UNIT = "a unit of time"
_QUANTIFIERS = {"+": (1, None), "*": (0, None), "?": (0, 1)}


def _duration(span: Span, amount: Word, unit: Word) -> ast.TimeSpan:
    plural: Any = unit.text if unit.text.endswith("S") else unit.text + "S"
    return ast.TimeSpan(int(amount.text), plural, span=span)


def _op(span: Span, kind: Word, gap: ast.TimeSpan | None = None) -> ast.Op:
    return ast.Op(kind.text, gap, span=span)  # type: ignore[arg-type]


def _short_bounds(span: Span, symbol: Word) -> ast.Quantifier:
    return ast.Quantifier(*_QUANTIFIERS[symbol.text], span=span)


def _counted_bounds(span: Span, minimum: Word, *rest: Word) -> ast.Quantifier:
    """`{n}`, `{n,}` or `{n,m}`."""
    match rest:
        case ():
            return ast.Quantifier(int(minimum.text), int(minimum.text), span=span)
        case (_,):
            return ast.Quantifier(int(minimum.text), None, span=span)
        case _:
            return ast.Quantifier(int(minimum.text), int(rest[1].text), span=span)


def _quantifier(
    span: Span, bounds: ast.Quantifier, *more: Word | ast.Op | ast.Ref
) -> ast.Quantifier:
    """Bounds, then perhaps `+` for a greedy loop, the loop's own operator, and UNTIL."""
    return replace(
        bounds,
        greedy=any(isinstance(part, Word) and part.text == "+" for part in more),
        own=next((part for part in more if isinstance(part, ast.Op)), None),
        until=next((part for part in more if isinstance(part, ast.Ref)), None),
        span=span,
    )


def _step(
    span: Span, atom: ast.Ref | ast.Bracket, suffix: ast.Quantifier | Word | None = None
) -> ast.Step:
    if isinstance(suffix, Word):
        return ast.Step(atom, negated=True, span=span)
    return ast.Step(atom, suffix, span=span)


def _bracket(span: Span, *tokens: ast.Sequence | Word) -> ast.Bracket:
    kinds: list[Any] = [token.text for token in tokens if isinstance(token, Word)]
    operands = tuple(token for token in tokens if isinstance(token, ast.Sequence))
    return ast.Bracket(kinds[0] if kinds else None, operands, span=span)


def _sequence(span: Span, *tokens: ast.Step | ast.Op) -> ast.Sequence:
    return ast.Sequence(tokens[::2], tokens[1::2], span=span)  # type: ignore[arg-type]


def _ref(text: str, span: Span) -> ast.Ref:
    return ast.Ref(text, span=span)


DURATION = rule(INTEGER + words(*UNITS, *(unit[:-1] for unit in UNITS), name=A_UNIT), _duration)
REF = rule(just(NAME), lambda span, name: ast.Ref(name.text, span=span))

# In a sequence, AND is always an operator.
_GPM = terminal(rf"(?!(?i:AND)(?!\w)){lexical.NAME}", "the name of a GPM", _ref, INITIALS)
_SIGNS = "".join(OPERATORS)
_OP = rule(
    symbols(f"[{_SIGNS}]", "a sequence operator", _SIGNS)
    + (mark("[") + DURATION + mark("]"))[0, 1],
    _op,
)
_BRACE = terminal(r"\{", "a quantifier", Punctuation, "{")
_COUNTED = _BRACE + INTEGER + (symbols(",", "','", ",") + INTEGER[0, 1])[0, 1] + mark("}")
_BOUNDS = rule(just(symbols(r"[+*?]", "a quantifier", "+*?")), _short_bounds) | rule(
    _COUNTED, _counted_bounds
)
_OWN = (
    mark("[")
    + rule(symbols(f"[{_SIGNS}]", "a sequence operator", _SIGNS) + DURATION[0, 1], _op)
    + mark("]")
)
_UNTIL = keyword("UNTIL") + _GPM
_QUANTIFIER = rule(
    _BOUNDS + symbols(r"\+", "'+'", "+")[0, 1] + _OWN[0, 1] + _UNTIL[0, 1], _quantifier
)
_SUFFIX = symbols("!", "'!'", "!") | _QUANTIFIER
_OPERANDS = (
    SEQUENCE
    + (
        (symbols(r"\|", "'|'", "|") + SEQUENCE)[1, ...]
        | (symbols("&", "'&'", "&") + SEQUENCE)[1, ...]
        | (words("AND") + SEQUENCE)[1, ...]
    )[0, 1]
)
_ATOM = _GPM | rule(mark("(") + _OPERANDS + mark(")"), _bracket)
_STEP = rule(_ATOM + _SUFFIX[0, 1], _step)

SEQUENCE <<= rule(_STEP + (_OP + _STEP)[...], _sequence)

WHOLE_SEQUENCE = whole(mark("(") + SEQUENCE + mark(")"))


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
