"""Parse functions made of the grammar's elements, for texts without errors.

pyparsing tries one alternative after the other, and most of them fail. These functions do the same
as the elements, but look at the next character first and try only what may begin with it. They note
nothing: if a text does not match, pyparsing parses it, to find out where and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from pyparsing import (
    And,
    Empty,
    Forward,
    MatchFirst,
    OneOrMore,
    Opt,
    ParserElement,
    StringEnd,
    ZeroOrMore,
)

from spaseq.errors import Span
from spaseq.lang.grammar.rules import Punctuation, Terminal
from spaseq.lang.lexical import NamePattern

Parse: TypeAlias = Callable[[str, int, list[Any]], int]
"""(text, place, nodes) -> the place of the next token, with new nodes appended.

It is `FAILED` if the text does not match there, and then the nodes stay as they were. Each place is
that of a token, as white space is skipped after tokens.
"""

FAILED = -1

_BLANKS = r"[ \t\r\n]*"
_SKIP = re.compile(_BLANKS).match
_REPEATED = ZeroOrMore | OneOrMore | Opt


def nodes_of(element: ParserElement, text: str, place: int) -> list[Any] | None:
    """What `element`, made by `rules.whole`, finds from a place on; None if it does not match."""
    nodes: list[Any] = []
    begin = _SKIP(text, place)
    assert begin is not None  # it matches the empty text
    return None if _parse_of(element)(text, begin.end(), nodes) == FAILED else nodes


@cache
def _parse_of(element: ParserElement) -> Parse:
    """The function of an element, with its rule if it has one."""
    if isinstance(element, Terminal):
        return _terminal(element)
    make = getattr(element, "make", None)
    if make is None:
        return _without_rule(element)
    parts = [*map(_parse_of, element.exprs)] if isinstance(element, And) else None
    return _rule(parts or [_without_rule(element)], make)


def _without_rule(element: ParserElement) -> Parse:
    match element:
        case And():
            return _sequence(element.exprs)
        case MatchFirst():
            return _choice(element.exprs)
        case ZeroOrMore() | OneOrMore() | Opt():
            return _repetition(element)
        case Forward():
            return _forward(element)
        case StringEnd():
            return lambda text, place, nodes: place if place == len(text) else FAILED
        case Empty():
            return lambda text, place, nodes: place
    raise TypeError(f"the grammar has an element of an unknown class: {type(element)}")


# --- functions -----------------------------------------------------------------------------------


def _terminal(element: Terminal) -> Parse:
    make, scan = element.make, None

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        nonlocal scan
        if scan is None:  # expressions are compiled when they are first needed
            pattern = f"({element.written}){_BLANKS}"
            scan = (re.compile(pattern) if pattern.isascii() else NamePattern(pattern)).match
        found = scan(text, place)
        if found is None:
            return FAILED
        nodes.append(make(found[1], Span(place, found.end(1))))
        return found.end()

    return parse


def _sequence(elements: list[ParserElement]) -> Parse:
    parts = [*map(_parse_of, elements)]

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        known = len(nodes)
        for part in parts:
            place = part(text, place, nodes)
            if place == FAILED:
                del nodes[known:]
                return FAILED
        return place

    return parse


def _rule(parts: list[Parse], make: Callable[..., object]) -> Parse:
    def parse(text: str, place: int, nodes: list[Any]) -> int:
        inside: list[Any] = []
        end = place
        for part in parts:
            end = part(text, end, inside)
            if end == FAILED:
                return FAILED
        span = Span(inside[0].span.start, inside[-1].span.end) if inside else Span(place, place)
        nodes.append(make(span, *[node for node in inside if type(node) is not Punctuation]))
        return end

    return parse


def _choice(elements: list[ParserElement]) -> Parse:
    possible: dict[str, tuple[Parse, ...]] = {}

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        character = text[place : place + 1]
        parts = possible.get(character)
        if parts is None:
            parts = tuple(_parse_of(e) for e in elements if _may_match(e, character))
            possible[character] = parts
        for part in parts:
            end = part(text, place, nodes)
            if end != FAILED:
                return end
        return FAILED

    return parse


def _repetition(element: ParserElement) -> Parse:
    one, least, most = _parse_of(element.expr), int(isinstance(element, OneOrMore)), -1
    if isinstance(element, Opt):
        most = 1
    elif getattr(element, "max_count", None) is not None:
        most = element.max_count
    possible: dict[str, bool] = {}

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        times = 0
        while times != most:
            character = text[place : place + 1]
            may = possible.get(character)
            if may is None:
                may = possible[character] = _may_match(element.expr, character)
            end = one(text, place, nodes) if may else FAILED
            if end == FAILED:
                break
            place = end
            times += 1
        return place if times >= least else FAILED

    return parse


def _forward(element: Forward) -> Parse:
    inner = None

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        nonlocal inner
        if inner is None:
            inner = _parse_of(element.expr)
        return inner(text, place, nodes)

    return parse


# --- what an element may begin with --------------------------------------------------------------


def _may_match(element: ParserElement, character: str) -> bool:
    return _may_begin(element, character) or _may_be_empty(element)


@cache
def _may_begin(element: ParserElement, character: str) -> bool:
    """Whether what an element matches may begin with a character; "" is the end of the text."""
    match element:
        case Terminal(begins=begins):
            return character in begins or character > "\x7f" if character else False
        case And():
            for part in element.exprs:
                if _may_begin(part, character):
                    return True
                if not _may_be_empty(part):
                    return False
            return False
        case MatchFirst():
            return any(_may_begin(each, character) for each in element.exprs)
        case ZeroOrMore() | OneOrMore() | Opt() | Forward():
            return _may_begin(element.expr, character)
    return isinstance(element, StringEnd) and not character


@cache
def _may_be_empty(element: ParserElement) -> bool:
    match element:
        case And():
            return all(map(_may_be_empty, element.exprs))
        case MatchFirst():
            return any(map(_may_be_empty, element.exprs))
        case OneOrMore() | Forward():
            return _may_be_empty(element.expr)
    return isinstance(element, ZeroOrMore | Opt | Empty) and not isinstance(element, Terminal)
