"""Pairs of matching brackets, also in text with syntax errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from spaseq.lang.scan import Lexeme

CLOSING = {"(": ")", "[": "]", "{": "}"}


def pairs(lexemes: Sequence[Lexeme]) -> Iterator[tuple[int, int]]:
    """Indexes of matching brackets, as pairs (opening, closing).

    A bracket without a partner is in no pair. A closing bracket skips open brackets of other kinds.
    """
    unmatched: list[int] = []
    waiting = Counter[str]()  # open brackets by the bracket that closes them
    for index, lexeme in enumerate(lexemes):
        mark = lexeme.mark
        if not mark:
            continue
        if mark in CLOSING:
            unmatched.append(index)
            waiting[CLOSING[mark]] += 1
        elif waiting.get(mark):
            closes = ""
            while closes != mark:
                opening = unmatched.pop()
                closes = CLOSING[lexemes[opening].text]
                waiting[closes] -= 1
            yield opening, index


def nesting(lexemes: Sequence[Lexeme]) -> list[int]:
    """The depth of each lexeme: the number of pairs of brackets around it."""
    change = [0] * (len(lexemes) + 1)
    for opening, closing in pairs(lexemes):
        change[opening + 1] += 1
        change[closing] -= 1
    depths, depth = [], 0
    for difference in change[: len(lexemes)]:
        depth += difference
        depths.append(depth)
    return depths


def closing_brace(lexemes: Sequence[Lexeme], opening: int, limit: int) -> int | None:
    """The index of the brace that closes the one at `opening`; None if that is not below `limit`.

    Other kinds of brackets do not count.
    """
    depth = 0
    for index in range(opening, limit):
        mark = lexemes[index].mark
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
        if depth == 0:
            return index
    return None


def unclosed(lexemes: Sequence[Lexeme]) -> Lexeme | None:
    """The last bracket that is never closed; None if all are."""
    closed = {opening for opening, _ in pairs(lexemes)}
    unclosed_lexemes = (
        lexeme
        for index, lexeme in enumerate(lexemes)
        if lexeme.is_punct(*CLOSING) and index not in closed
    )
    return max(unclosed_lexemes, key=lambda lexeme: lexeme.start, default=None)
