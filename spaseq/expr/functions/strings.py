"""Functions on strings (SPARQL 1.1 section 17.4.3), with REGEX and REPLACE."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from spaseq.budget import current_budget
from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.regex_engines import RegexMatch, XPathPattern
from spaseq.expr.functions.registry import builtin
from spaseq.expr.functions.xpath_regex import PatternError
from spaseq.expr.values import LangString, Value
from spaseq.records import record

StringLiteral = str | LangString

_REPLACEMENT = re.compile(r"\\([\\$])|\$([0-9]{1,9})|([\\$])", re.DOTALL)
_LONG = 1_000  # longer patterns and replacements are not kept
_JOINED = 4_096  # parts of a replaced text that are joined, so that they need less memory


def text_of(value: Value) -> str:
    """The characters of a string literal, tagged or not; ExpressionError for anything else."""
    if type(value) is str:
        return value
    if isinstance(value, LangString):
        return value.text
    raise ExpressionError("not a string literal")


def simple(value: Value) -> str:
    """The characters of a simple literal; ExpressionError for anything else."""
    if type(value) is not str:
        raise ExpressionError("not a simple literal")
    return value


def like(value: Value, text: str) -> StringLiteral:
    """`text` with the language tag of `value`, if it has one."""
    return LangString(text, value.language) if isinstance(value, LangString) else text


def compatible(a: Value, b: Value) -> tuple[str, str]:
    """The characters of two compatible arguments (section 17.4.3.1.2)."""
    pair = text_of(a), text_of(b)
    if isinstance(b, LangString) and (not isinstance(a, LangString) or a.language != b.language):
        raise ExpressionError("incompatible language tags")
    return pair


@builtin("STRLEN", 1)
def length(value: Value) -> int:
    return len(text_of(value))


@builtin("SUBSTR", 2, 3)
def substring(value: Value, start: Value, count: Value | None = None) -> StringLiteral:
    """The characters at positions p with start <= p < start + count; the first position is 1."""
    text = text_of(value)
    if type(start) is not int or (count is not None and type(count) is not int):
        raise ExpressionError("a position is an xsd:integer")
    end = len(text) if count is None else max(0, start - 1 + count)
    return like(value, text[max(0, start - 1) : end])


@builtin("UCASE", 1)
def upper(value: Value) -> StringLiteral:
    return like(value, current_budget().text(text_of(value).upper()))


@builtin("LCASE", 1)
def lower(value: Value) -> StringLiteral:
    return like(value, current_budget().text(text_of(value).lower()))


def _test(name: str, holds: Callable[[str, str], bool]) -> None:
    @builtin(name, 2)
    def test(a: Value, b: Value) -> bool:
        return holds(*compatible(a, b))


TEXT_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "STRSTARTS": str.startswith,
    "STRENDS": str.endswith,
    "CONTAINS": str.__contains__,
}
"""By function: the test of two strings."""

for _name, _holds in TEXT_TESTS.items():
    _test(_name, _holds)


@builtin("STRBEFORE", 2)
def before(a: Value, b: Value) -> StringLiteral:
    text, mark = compatible(a, b)
    head, found, _ = text.partition(mark) if mark else ("", True, "")
    return like(a, head) if found or not mark else ""


@builtin("STRAFTER", 2)
def after(a: Value, b: Value) -> StringLiteral:
    text, mark = compatible(a, b)
    _, found, tail = text.partition(mark) if mark else ("", True, text)
    return like(a, tail) if found else ""


@builtin("ENCODE_FOR_URI", 1)
def encode_for_uri(value: Value) -> str:
    return current_budget().text(quote(text_of(value), safe=""))


@builtin("CONCAT", 0, None)
def concatenation(*values: Value) -> StringLiteral:
    joined = current_budget().joined([text_of(v) for v in values])
    tags = {v.language if isinstance(v, LangString) else "" for v in values}
    tag = tags.pop() if len(tags) == 1 else ""
    return LangString(joined, tag) if tag else joined


@builtin("LANGMATCHES", 2)
def language_matches(tag: Value, language_range: Value) -> bool:
    """Basic filtering of RFC 4647 section 3.3.1."""
    have, want = simple(tag).lower(), simple(language_range).lower()
    return bool(have) if want == "*" else have == want or have.startswith(f"{want}-")


def _digest(name: str) -> None:
    @builtin(name, 1)
    def digest(value: Value) -> str:
        return hashlib.new(name.lower(), simple(value).encode(), usedforsecurity=False).hexdigest()


for _name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"):
    _digest(_name)


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
        """Maximum number of characters that replace a match of a length."""
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
