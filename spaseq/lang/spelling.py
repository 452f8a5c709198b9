"""The nearest valid word to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str], at_least: float = 0.6) -> str | None:
    """The word most like `word`, or None if none is `at_least` (0 to 1) as similar.

    >>> nearest("SLECT", ["SELECT", "CONSTRUCT"])
    'SELECT'
    """
    found = get_close_matches(word, sorted(words), n=1, cutoff=at_least)
    return found[0] if found else None
