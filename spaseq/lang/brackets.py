"""Which brackets of a text belong together, however broken it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.lang.scan import Lexeme

CLOSING = {"(": ")", "[": "]", "{": "}"}


def pairs(lexemes: Sequence[Lexeme]) -> Iterator[tuple[int, int]]:
    """Indexes of matching brackets. A bracket that lacks its partner is in no pair: a closing
    one skips the open ones of other kinds that stand in its way."""
    waiting: list[int] = []
    for index, lexeme in enumerate(lexemes):
        if lexeme.is_punct(*CLOSING):
            waiting.append(index)
        elif lexeme.is_punct(*CLOSING.values()):
            partners = [i for i in waiting if CLOSING[lexemes[i].text] == lexeme.text]
            if partners:
                del waiting[waiting.index(partners[-1]) :]
                yield partners[-1], index


def nesting(lexemes: Sequence[Lexeme]) -> list[int]:
    """How many pairs of brackets stand around each lexeme."""
    change = [0] * (len(lexemes) + 1)
    for opening, closing in pairs(lexemes):
        change[opening + 1] += 1
        change[closing] -= 1
    depths, depth = [], 0
    for step in change[: len(lexemes)]:
        depth += step
        depths.append(depth)
    return depths


def closing_brace(lexemes: Sequence[Lexeme], opening: int, limit: int) -> int | None:
    """The brace that closes the one at `opening`, before `limit`; other brackets do not count."""
    depth = 0
    for index in range(opening, limit):
        depth += lexemes[index].is_punct("{") - lexemes[index].is_punct("}")
        if depth == 0:
            return index
    return None


def unclosed(lexemes: Sequence[Lexeme]) -> Lexeme | None:
    """The last bracket that is never closed."""
    closed = {opening for opening, _ in pairs(lexemes)}
    open_ones = (
        lexeme
        for index, lexeme in enumerate(lexemes)
        if lexeme.is_punct(*CLOSING) and index not in closed
    )
    return max(open_ones, key=lambda lexeme: lexeme.span.start, default=None)
