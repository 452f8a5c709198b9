"""Regular expressions that end in bounded time, whatever the pattern and the text.

Three engines match, and all find the same matches:

- Python's `re`, where even a backtracking engine needs few steps, as for most patterns and texts;
- RE2, whose time is linear in the text, for all other patterns without back-references;
- `regex`, with the time that the evaluation has left, for the rest.

The steps of a backtracking engine on a pattern have an upper bound. A repeated group can take a
number of steps that is exponential in the text: `(a|ab)+` tries all ways to divide it. The number
is bounded where a text can be divided in one way only: the repetitions of `(a|b)+` and
`(,[0-9]+)*` begin at the same characters, whatever was tried before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple, Protocol

from spaseq.budget import current_budget
from spaseq.expr.functions.unicode_classes import Ranges, complement, merged
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


FEW_STEPS = 1_000_000
"""Steps that a backtracking engine may need."""

_SMALL = 50
"""Maximum number of nodes of a repeated group that is analysed exactly."""


def _children(node: RegexNode) -> tuple[RegexNode, ...]:
    match node:
        case RegexGroup(inner) | Quantified(inner):
            return (inner,)
        case RegexSequence(parts) | RegexChoice(parts):
            return parts
    return ()


def has(node: RegexNode, test: Any) -> bool:
    """Whether a node, or one inside it, passes a test."""
    return test(node) or any(has(child, test) for child in _children(node))


def _nullable(node: RegexNode) -> bool:
    """Whether a node may match the empty text."""
    match node:
        case CharacterSet():
            return False
        case RegexSequence(parts):
            return all(map(_nullable, parts))
        case RegexChoice(alternatives):
            return any(map(_nullable, alternatives))
        case Quantified(inner, least):
            return not least or _nullable(inner)
        case RegexGroup(inner):
            return _nullable(inner)
    return True


def has_nullable_loop(tree: RegexNode) -> bool:
    """Whether a repeated part may be empty; engines differ in the groups that it leaves."""
    return has(tree, lambda node: isinstance(node, Quantified) and _nullable(node.inner))


def longest_text(tree: RegexNode) -> int:
    """The length of a text on which a backtracking engine takes at most `FEW_STEPS`."""
    tries, _, degree = _steps(tree)
    degree += not _is_anchored(tree)  # a search starts at each character
    if tries > FEW_STEPS:
        return -1
    return int((FEW_STEPS / tries) ** (1 / degree)) - 1 if degree else sys.maxsize


def _is_anchored(tree: RegexNode) -> bool:
    """Whether a match can only start where the text starts."""
    match tree:
        case RegexSequence((first, *_)):
            return first == Assertion("^", False)
    return False


class _Steps(NamedTuple):
    """The cost of backtracking from one position, on n characters.

    It takes at most `tries * (n + 1)**degree` steps in a node, and leaves it `ways * (n +
    1)**degree` times.
    """

    tries: float
    ways: float
    degree: int


def _steps(node: RegexNode) -> _Steps:
    match node:
        case RegexGroup(inner):
            return _steps(inner)
        case RegexSequence(parts):
            tries, ways, degree = 1.0, 1.0, 0
            for part in parts:
                t, w, d = _steps(part)
                tries, ways, degree = tries + ways * t, ways * w, degree + d
            return _Steps(tries, ways, degree)
        case RegexChoice(alternatives):
            tries_, ways_, degrees = zip(*map(_steps, alternatives), strict=True)
            return _Steps(sum(tries_), sum(ways_), max(degrees))
        case Quantified(CharacterSet(), most=most):
            return _Steps(2, 1, 1) if most is None else _Steps(most + 1, most + 1, 0)
        case Quantified(inner, 0, 1):
            t, w, d = _steps(inner)
            return _Steps(t + 1, w + 1, d)
        case Quantified(inner) if (size := _size(inner)) <= _SMALL and _begins_apart(inner):
            return _Steps(size + 1, 2, 1)  # each node at each character, at most once
        case Quantified() | BackReference():
            return _Steps(inf, inf, 0)
    return _Steps(1, 1, 0)


# --- repetitions that match a text in one way only -----------------------------------------------


def _size(node: RegexNode) -> int:
    """The number of nodes, and of hundreds of ranges in their sets. It stops above `_SMALL`."""
    size, waiting = 0, [node]
    while waiting and size <= _SMALL:
        each = waiting.pop()
        size += 1 + (len(each.ranges) // 100 if isinstance(each, CharacterSet) else 0)
        waiting += _children(each)
    return size


def _begins_apart(inner: RegexNode) -> bool:
    """Whether the repetitions of a part can only follow one another in one way.

    A repetition in the part ends where no character continues it. So all that it tries on the way
    from one start to the next lies between both, and a search tries no place twice.
    """
    return not _nullable(inner) and _one_way(inner, _first(inner))


def _one_way(node: RegexNode, follow: Ranges) -> bool:
    """Whether at most one way leads from a place through a node to a character of `follow`."""
    match node:
        case CharacterSet() | Assertion():
            return True
        case RegexGroup(inner):
            return _one_way(inner, follow)
        case RegexChoice(alternatives):
            return (
                not any(map(_nullable, alternatives))
                and _are_apart(*map(_first, alternatives))
                and all(_one_way(alternative, follow) for alternative in alternatives)
            )
        case Quantified(inner, least, most):
            first = _first(inner)
            if _nullable(inner) or not (least == most or _are_apart(first, follow)):
                return False
            return _one_way(inner, merged((*first, *follow)))
        case RegexSequence(parts):
            for part in reversed(parts):
                if not _one_way(part, follow):
                    return False
                follow = merged((*_first(part), *follow)) if _nullable(part) else _first(part)
            return True
    return False


def _first(node: RegexNode) -> Ranges:
    """The characters that a match of a node can start with."""
    match node:
        case CharacterSet(ranges):
            return ranges
        case RegexGroup(inner) | Quantified(inner):
            return _first(inner)
        case RegexChoice(alternatives):
            return merged(r for alternative in alternatives for r in _first(alternative))
        case RegexSequence(parts):
            of_parts: list[tuple[int, int]] = []
            for part in parts:
                of_parts += _first(part)
                if not _nullable(part):
                    break
            return merged(of_parts)
        case BackReference():
            return complement(())
    return ()


def _are_apart(*sets: Ranges) -> bool:
    """Whether no two sets have a character in common."""
    ranges = sorted(r for each in sets for r in each)
    return all(a[1] < b[0] for a, b in pairwise(ranges))
