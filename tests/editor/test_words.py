"""The tables of words have every word of the grammar, and no other one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyparsing import ParserElement, Regex

from spaseq.editor.words import FUNCTIONS, KEYWORDS, OPERATORS
from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.grammar import clauses, patterns


def elements() -> Iterator[ParserElement]:
    waiting = [
        *clauses.CLAUSES.values(),
        clauses.WHOLE_GPM_HEAD,
        patterns.WHOLE_SEQUENCE,
        patterns.WHOLE_GROUP,
    ]
    seen = set()
    while waiting:
        element = waiting.pop()
        if id(element) not in seen:
            seen.add(id(element))
            yield element
            waiting += getattr(element, "exprs", [])
            waiting += [e for e in [getattr(element, "expr", None)] if e is not None]


def grammar_words() -> set[str]:
    """The words that the grammar names, from its regular expressions."""
    words = set(clauses.CLAUSES) | {"SEQ", "DEFINE"}
    for element in elements():
        if isinstance(element, Regex):
            pattern = element.pattern
            found = re.match(r"\(\?i:([\w|?]*)\)", getattr(pattern, "pattern", pattern))
            for word in found[1].split("|") if found else ():
                words |= {word.replace("S?", ""), word.replace("?", "")}
    return {word.upper() for word in words}


def test_keywords() -> None:
    assert set(KEYWORDS) == grammar_words() - ALL_FUNCTIONS | (set(KEYWORDS) & ALL_FUNCTIONS)
    assert set(KEYWORDS) <= grammar_words()


def test_functions() -> None:
    assert set(FUNCTIONS) == ALL_FUNCTIONS


def test_operators() -> None:
    signs = {",", ";", ":", "|", "&", "!", "+", "*", "?"}
    assert set(OPERATORS) == signs
    assert all(text.endswith(".") for text in (*KEYWORDS.values(), *FUNCTIONS.values()))
