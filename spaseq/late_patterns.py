"""Regular expressions that are compiled at their first use: a run uses few of those it imports."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LatePattern:
    """Has the attributes of a compiled pattern, once somebody asks for them."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._pattern, self._flags)  # `re` remembers what it has compiled
        value = getattr(compiled, name)
        setattr(self, name, value)
        return value


def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, for its methods; `re`'s own functions do not take it.

    >>> late_pattern("[a-z]+").match("abc1").group()
    'abc'
    """
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))
