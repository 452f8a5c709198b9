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


def suggested(word: str, names: Iterable[str], at_least: float = 0.5) -> str | None:
    """The name to suggest for a word: the most similar one, which is never the word itself.

    A name that differs only in case comes first.

    >>> suggested("a", ["A", "Ba", "a"])
    'A'
    """
    others = sorted(set(names) - {word})
    same = next((other for other in others if other.lower() == word.lower()), None)
    return same or nearest(word, others, at_least)
