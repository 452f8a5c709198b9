"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str], at_least: float = 0.6) -> str | None:
    """The most similar of `words`; None if no similarity (0 to 1) reaches `at_least`.

    >>> nearest("SLECT", ["SELECT", "CONSTRUCT"])
    'SELECT'
    """
    matches = get_close_matches(word, sorted(words), n=1, cutoff=at_least)
    return matches[0] if matches else None
