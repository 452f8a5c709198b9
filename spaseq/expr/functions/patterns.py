"""REGEX and REPLACE (SPARQL 1.1 sections 17.4.3.14 and 17.4.3.15)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from spaseq.expr.errors import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.functions.strings import StringLiteral, like, simple, text_of
from spaseq.expr.functions.xpath_regex import PatternError, translate
from spaseq.expr.values import Value

_REPLACEMENT = re.compile(r"\\([\\$])|\$([0-9]+)|([\\$])", re.DOTALL)


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: str) -> re.Pattern[str] | PatternError:
    try:
        return translate(pattern, flags)
    except PatternError as error:
        return error


def compiled(pattern: Value, flags: Value) -> re.Pattern[str]:
    """The Python form of an XPath pattern, cached; ExpressionError if it is invalid."""
    result = _compiled(simple(pattern), simple(flags))
    if isinstance(result, PatternError):
        raise ExpressionError(str(result))
    return result


@builtin("REGEX", 2, 3)
def matches(value: Value, pattern: Value, flags: Value = "") -> bool:
    """Whether the pattern matches a part of the text."""
    return compiled(pattern, flags).search(text_of(value)) is not None


@builtin("REPLACE", 3, 4)
def replaced(value: Value, pattern: Value, replacement: Value, flags: Value = "") -> StringLiteral:
    """The text with all matches replaced; a pattern must not match the empty string (FORX0003)."""
    regex, text = compiled(pattern, flags), text_of(value)
    if regex.search(""):
        raise ExpressionError("the pattern matches the empty string")
    if "q" in simple(flags):
        literal = simple(replacement)
        return like(value, regex.sub(lambda _: literal, text))
    return like(value, regex.sub(_template(simple(replacement), regex.groups), text))


@lru_cache(maxsize=1024)
def _pieces(replacement: str, groups: int) -> tuple[str | int, ...] | None:
    """Literal texts and group numbers, alternating; None for an invalid replacement."""
    pieces: list[str | int] = []
    position = 0
    for match in _REPLACEMENT.finditer(replacement):
        pieces.append(replacement[position : match.start()])
        position = match.end()
        escaped, digits, stray = match.groups()
        if stray:
            return None
        pieces.extend([escaped] if escaped else _group(digits, groups))
    return (*pieces, replacement[position:])


def _group(digits: str, groups: int) -> list[str | int]:
    """`$12` is group 12 if the pattern has 12 groups, else group 1 and the digit 2 (fn:replace)."""
    rest = ""
    while len(digits) > 1 and int(digits) > groups:
        digits, rest = digits[:-1], digits[-1] + rest
    return [int(digits) if int(digits) <= groups else "", rest]


def _template(replacement: str, groups: int) -> Callable[[re.Match[str]], str]:
    pieces = _pieces(replacement, groups)
    if pieces is None:
        raise ExpressionError(
            "in a replacement, $ must stand before a digit, and \\ before $ or \\"
        )

    def expand(match: re.Match[str]) -> str:
        return "".join(p if isinstance(p, str) else match.group(p) or "" for p in pieces)

    return expand
