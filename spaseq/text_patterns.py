"""Regular expressions that are compiled at their first use, and possessive ones.

A run uses few of the patterns that it imports. Possessive patterns scan text in linear time.

Before Python 3.11.5, `re` matches a possessive group wrongly if there is backtracking inside it
(CPython issue 106052). There, the slower package regex compiles the patterns.
"""

from __future__ import annotations

import re
import sys
from typing import Any, AnyStr, cast

IS_RIGHT_IN_RE = sys.version_info >= (3, 11, 5)
"""Whether `re` matches possessive groups correctly."""


class _LatePattern:
    """A pattern that is compiled when an attribute is first read."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._pattern, self._flags)  # `re` remembers what it has compiled
        value = getattr(compiled, name)
        setattr(self, name, value)
        return value


def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern with the methods of `re.compile`; functions of `re` do not accept it.

    >>> late_pattern("[a-z]+").match("abc1").group()
    'abc'
    """
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))


def possessive(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern with possessive groups, compiled at its first use. `flags` are as for `re.compile`.

    >>> possessive(r"(?:a|ab)?+b").match("abb").end()
    2
    """
    if IS_RIGHT_IN_RE:
        return late_pattern(pattern, flags)
    import regex

    compiled: re.Pattern[AnyStr] = regex.compile(pattern, flags)  # the same methods
    return compiled
