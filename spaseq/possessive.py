"""Patterns with possessive quantifiers, which scan text in linear time.

Before Python 3.11.5, `re` matches a possessive group wrongly if there is backtracking inside it
(CPython issue 106052). There, the package regex compiles the patterns. It is slower.
"""

from __future__ import annotations

import re
import sys
from typing import AnyStr

from spaseq.late_patterns import late_pattern

IS_RIGHT_IN_RE = sys.version_info >= (3, 11, 5)
"""Whether `re` matches possessive groups as it should."""


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
