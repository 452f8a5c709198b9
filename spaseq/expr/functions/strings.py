"""Functions on strings (SPARQL 1.1 section 17.4.3) without REGEX and REPLACE."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from urllib.parse import quote

from spaseq.budget import current_budget
from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.values import LangString, Value

StringLiteral = str | LangString


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


_test("STRSTARTS", str.startswith)
_test("STRENDS", str.endswith)
_test("CONTAINS", str.__contains__)


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
