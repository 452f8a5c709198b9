"""Regular expressions that end in bounded time, whatever the pattern and the text.

Three engines match, and all find the same matches:

- Python's `re`, where even a backtracking engine needs few steps, as for most patterns and texts;
- RE2, whose time is linear in the text, for all other patterns without back-references;
- `regex`, with the time that the evaluation has left, for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, Protocol

from spaseq.budget import current_budget
from spaseq.expr.functions.regex_steps import has, has_nullable_loop, longest_text
from spaseq.expr.functions.unicode_classes import Ranges
from spaseq.expr.functions.xpath_regex import (
    Assertion,
    BackReference,
    CharacterSet,
    PatternError,
    Quantified,
    RegexChoice,
    RegexGroup,
    RegexNode,
    RegexSequence,
    parse_regex,
)

LINEAR_STEPS = 2**30
"""Instructions times characters (times groups, if needed) up to which RE2 is used: it cannot be
interrupted, and takes seconds at most.
"""

_RE2_MEMORY = 2**22
_RE2_KEPT = 64  # each of them may take `_RE2_MEMORY`


class RegexMatch(Protocol):
    """A match in the form of all engines."""

    def start(self) -> int: ...

    def end(self) -> int: ...

    def group(self, number: int, /) -> Any: ...


class XPathPattern:
    """A pattern that is ready to match texts.

    `groups` is the number of its capturing groups. `few` is the length of a text on which any
    engine needs few steps.
    """

    def __init__(self, pattern: str, flags: str = "") -> None:
        """Read a pattern.

        Raises:
            PatternError: it is invalid, or too large.
        """
        self._tree, self.groups = parse_regex(pattern, flags)
        self.few = longest_text(self._tree)
        self._nullable_loop = has_nullable_loop(self._tree)
        self._line_starts = has(self._tree, lambda n: n == Assertion("^", True))
        self._back_references = has(self._tree, lambda n: isinstance(n, BackReference))

    @cached_property
    def matches_empty(self) -> bool:
        """Whether the pattern matches the empty text."""
        return self.matches("")

    @cached_property
    def python(self) -> re.Pattern[str]:
        """The pattern for Python's `re`, for texts of up to `few` characters."""
        try:
            return re.compile(_text(self._tree))
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(f"the pattern is too large: {error}") from error

    @cached_property
    def _backtracking(self) -> Any:
        import regex  # only few patterns need it

        try:
            return regex.compile(_text(self._tree), regex.VERSION0, cache_pattern=False)
        except (regex.error, OverflowError, RecursionError, MemoryError) as error:
            raise PatternError(f"the pattern is too large: {error}") from error

    @cached_property
    def _linear(self) -> str | None:
        """The pattern for RE2; None if RE2 cannot match it."""
        return None if self._back_references else _text(self._tree, linear=True)

    def matches(self, text: str) -> bool:
        """Whether the pattern matches a part of the text."""
        if len(text) <= self.few:
            return self.python.search(text) is not None
        current_budget().check()
        linear = self._linear_for(text, captures=False)
        if linear is not None:
            return linear.search(text) is not None
        try:
            match = self._backtracking.search(text, timeout=current_budget().remaining())
        except TimeoutError:
            current_budget().out_of_time()
        return match is not None

    def found(self, text: str) -> Iterator[RegexMatch]:
        """All matches in the text, one after the other; the pattern matches no empty text."""
        if len(text) <= self.few:
            yield from self.python.finditer(text)
            return
        current_budget().check()
        linear = None if self._nullable_loop else self._linear_for(text, captures=True)
        if linear is not None:
            yield from linear.finditer(text)
            return
        try:
            yield from self._backtracking.finditer(text, timeout=current_budget().remaining())
        except TimeoutError:
            current_budget().out_of_time()

    def _linear_for(self, text: str, *, captures: bool) -> Any:
        """The RE2 pattern, unless RE2 cannot match it on this text as XPath does."""
        if self._linear is None or (self._line_starts and text.endswith("\n")):
            return None
        linear = _re2(self._linear, captures)
        if linear is None:
            return None
        steps = linear.programsize * len(text) * (1 + captures * self.groups)
        return linear if steps <= LINEAR_STEPS else None


@lru_cache(maxsize=_RE2_KEPT)
def _re2(pattern: str, captures: bool) -> Any:
    """A pattern of RE2, None if it is too large for it."""
    import re2  # few patterns need it

    options = re2.Options()
    options.max_mem = _RE2_MEMORY
    options.log_errors = False
    options.never_capture = not captures
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


# --- texts of patterns ---------------------------------------------------------------------------


def _text(node: RegexNode, linear: bool = False) -> str:
    """The pattern for Python's engines or, if `linear`, for RE2."""
    match node:
        case CharacterSet(ranges):
            return _linear_set(ranges) if linear else _set(ranges)
        case Assertion(sign, multiline):
            return _ASSERTIONS[sign, multiline][linear]
        case BackReference(group, any_case):
            # A reference to a group without a match is the empty text.
            again = rf"(?i:\{group})" if any_case else rf"\{group}"
            return f"(?:(?({group}){again}))"
        case RegexGroup(inner, capturing):
            return f"({'' if capturing else '?:'}{_text(inner, linear)})"
        case Quantified(inner, least, most, reluctant):
            high = "" if most is None else most
            return f"(?:{_text(inner, linear)}){{{least},{high}}}{'?' * reluctant}"
        case RegexSequence(parts):
            return "".join([_text(part, linear) for part in parts])
        case RegexChoice(alternatives):
            return "|".join([_text(alternative, linear) for alternative in alternatives])


_ASSERTIONS = {
    ("^", False): (r"\A", r"\A"),
    ("$", False): (r"\Z", r"\z"),
    # In multi-line mode ^ does not match after a newline that ends the text; RE2 never gets such
    # a text.
    ("^", True): (r"(?:\A|(?<=\n)(?!\Z))", "(?m:^)"),
    ("$", True): (r"(?=\n|\Z)", "(?m:$)"),
}


def _set(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return f"[{''.join(f'{_python_code(a)}-{_python_code(b)}' for a, b in ranges)}]"


def _python_code(code: int) -> str:
    return f"\\U{code:08x}"


def _linear_set(ranges: Ranges) -> str:
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    return f"[{''.join(f'{_linear_code(a)}-{_linear_code(b)}' for a, b in ranges)}]"


def _linear_code(code: int) -> str:
    return f"\\x{{{code:X}}}"
