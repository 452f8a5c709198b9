"""REGEX and REPLACE (SPARQL 1.1 sections 17.4.3.14 and 17.4.3.15)."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from spaseq.budget import current_budget
from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.regex_engines import RegexMatch, XPathPattern
from spaseq.expr.functions.registry import builtin
from spaseq.expr.functions.strings import StringLiteral, like, simple, text_of
from spaseq.expr.functions.xpath_regex import PatternError
from spaseq.expr.values import Value
from spaseq.records import record

_REPLACEMENT = re.compile(r"\\([\\$])|\$([0-9]{1,9})|([\\$])", re.DOTALL)
_LONG = 1_000  # longer patterns and replacements are not kept
_JOINED = 4_096  # parts of a replaced text that are joined, so that they need less memory


def _read(pattern: str, flags: str) -> XPathPattern | PatternError:
    try:
        return XPathPattern(pattern, flags)
    except PatternError as error:
        return error


_kept = lru_cache(maxsize=1024)(_read)


def compiled(pattern: Value, flags: Value) -> XPathPattern:
    """An XPath pattern; ExpressionError if it is invalid. Short ones are cached."""
    text = simple(pattern)
    result = (_kept if len(text) <= _LONG else _read)(text, simple(flags))
    if isinstance(result, PatternError):
        raise ExpressionError(str(result))
    return result


@builtin("REGEX", 2, 3)
def matches(value: Value, pattern: Value, flags: Value = "") -> bool:
    """Whether the pattern matches a part of the text."""
    regex, text = compiled(pattern, flags), text_of(value)
    try:
        if len(text) <= regex.few:
            return regex.python.search(text) is not None
        return regex.matches(text)
    except PatternError as error:
        raise ExpressionError(str(error)) from error


@builtin("REPLACE", 3, 4)
def replaced(value: Value, pattern: Value, replacement: Value, flags: Value = "") -> StringLiteral:
    """The text with all matches replaced; a pattern must not match the empty string (FORX0003)."""
    regex, text = compiled(pattern, flags), text_of(value)
    try:
        if regex.matches_empty:
            raise ExpressionError("the pattern matches the empty string")
        template = _template(simple(replacement), "q" in simple(flags), regex.groups)
        size, budget = len(text) + 1, current_budget()
        if size <= regex.few and size * template.growth(size) <= budget.limits.literal_bytes:
            return like(value, regex.python.sub(template.expanded, text))
        return like(value, budget.text(_replaced(regex, text, template)))
    except PatternError as error:
        raise ExpressionError(str(error)) from error


def _replaced(regex: XPathPattern, text: str, template: _Template) -> str:
    """The text with each match replaced, within the budget."""
    budget = current_budget()
    done: list[str] = []  # joined parts
    pieces: list[str] = []
    end = size = 0
    for match in regex.found(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        if size + template.growth(end - match.start()) > budget.limits.literal_bytes:
            budget.literal(size + template.size(match))
        pieces.append(template.expanded(match))
        size += len(pieces[-1])
        if len(pieces) >= _JOINED:
            budget.check()
            done.append("".join(pieces))
            pieces.clear()
    return "".join([*done, *pieces, text[end:]])


@record
class _Template:
    """A replacement as literal texts and group numbers; `fixed` characters are literal."""

    pieces: tuple[str | int, ...]
    fixed: int
    references: int

    def growth(self, longest: int) -> int:
        """The most characters in the place of a match of a length."""
        return self.fixed + self.references * longest

    def expanded(self, match: RegexMatch) -> str:
        """The text in the place of a match."""
        return "".join([p if isinstance(p, str) else match.group(p) or "" for p in self.pieces])

    def size(self, match: RegexMatch) -> int:
        """The length of `expanded`."""
        numbers = Counter(piece for piece in self.pieces if isinstance(piece, int))
        groups = sum(len(match.group(i) or "") * times for i, times in numbers.items())
        return self.fixed + groups


def _template(replacement: str, literal: bool, groups: int) -> _Template:
    read = _kept_template if len(replacement) <= _LONG else _read_template
    template = read(replacement, literal, groups)
    if template is None:
        raise ExpressionError(
            "in a replacement, $ must stand before a digit, and \\ before $ or \\"
        )
    return template


def _read_template(replacement: str, literal: bool, groups: int) -> _Template | None:
    pieces = (replacement,) if literal else _pieces(replacement, groups)
    if pieces is None:
        return None
    texts = [piece for piece in pieces if isinstance(piece, str)]
    return _Template(pieces, sum(map(len, texts)), len(pieces) - len(texts))


_kept_template = lru_cache(maxsize=1024)(_read_template)


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
