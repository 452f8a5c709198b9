"""Sequence expressions (docs/lookup.md#grammar)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyparsing import Forward

from spaseq.errors import Span
from spaseq.lang import ast, lexical
from spaseq.lang.ast.pattern_nodes import OPERATORS
from spaseq.lang.grammar.rules import (
    INITIALS,
    INTEGER,
    NAME,
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
