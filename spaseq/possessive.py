"""Patterns with possessive quantifiers, which scan text in linear time.

Before Python 3.11.5, `re` matches a possessive group wrongly if there is backtracking inside it
(CPython issue 106052). There, the package regex compiles the patterns. It is slower.
"""

from __future__ import annotations

import re
import sys
from typing import AnyStr

IS_RIGHT_IN_RE = sys.version_info >= (3, 11, 5)
"""Whether `re` matches possessive groups as it should."""


def possessive(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile a pattern with possessive groups; `flags` are those of `re`.

    >>> possessive(r"(?:a|ab)?+b").match("abb").end()
    2
    """
    if IS_RIGHT_IN_RE:
        return re.compile(pattern, flags)
    import regex

    compiled: re.Pattern[AnyStr] = regex.compile(pattern, flags)  # the same methods
    return compiled
