"""Parse functions made of the grammar's elements, for texts without errors.

pyparsing tries one alternative after the other, and most of them fail. These functions do the same
as the elements, but look at the next character first and try only what may begin with it. They
record no errors: if a text does not match, pyparsing parses it, to find the place and the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
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

_MARK = object()
"""Stands for a mark or keyword among the nodes of a rule."""

_BLANKS = r"[ \t\r\n]*"
_SKIP = re.compile(_BLANKS).match


def nodes_of(element: ParserElement, text: str, place: int) -> list[Any] | None:
    """The nodes that `element`, made by `rules.whole`, finds at a position; None if it does not
    match.
    """
    nodes: list[Any] = []
    begin = _SKIP(text, place)
    assert begin is not None  # it matches the empty text
    end = _parse_of(element)(text, begin.end(), nodes)
    return None if end == FAILED else [node for node in nodes if node is not _MARK]


@cache
def _parse_of(element: ParserElement) -> Parse:
    """The function of an element, with its rule if it has one."""
    if isinstance(element, Terminal):
        return _terminal(element)
    make = getattr(element, "make", None)
    if make is None:
        return _without_rule(element)
    parts = [*map(_parse_of, element.exprs)] if isinstance(element, And) else None
    return _rule(parts or [_without_rule(element)], make, element.keeps_one)


def _without_rule(element: ParserElement) -> Parse:
    match element:
        case And():
            return _sequence(element.exprs)
        case MatchFirst():
            return _choice(element.exprs)
        case Opt():
            return _option(element)
        case ZeroOrMore() | OneOrMore():
            return _repetition(element)
        case Forward():
            return _forward(element)
        case StringEnd():
            return lambda text, place, nodes: place if place == len(text) else FAILED
        case Empty():
            return lambda text, place, nodes: place
    raise TypeError(f"the grammar has an element of an unknown class: {type(element)}")


# --- functions -----------------------------------------------------------------------------------


def _scan_of(element: Terminal) -> Callable[[str, int], re.Match[str] | None]:
    """A function that finds a terminal at a position, and the blanks after it."""
    pattern = f"({element.written}){_BLANKS}"
    return (re.compile(pattern) if pattern.isascii() else NamePattern(pattern)).match


def _terminal(element: Terminal) -> Parse:
    """A punctuation mark makes no node: only its presence matters."""
    make, scan = element.make, None
    is_mark = make is Punctuation

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        nonlocal scan
        if scan is None:  # expressions are compiled at their first use
            scan = _scan_of(element)
        match = scan(text, place)
        if match is None:
            return FAILED
        nodes.append(_MARK if is_mark else make(match[1], Span(place, match.end(1))))
        return match.end()

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


def _rule(parts: list[Parse], make: Callable[..., object], keeps_one: bool) -> Parse:
    def parse(text: str, place: int, nodes: list[Any]) -> int:
        known, end = len(nodes), place
        for part in parts:
            end = part(text, end, nodes)
            if end == FAILED:
                del nodes[known:]
                return FAILED
        inside = nodes[known:]
        if keeps_one and len(inside) == 1 and inside[0] is not _MARK:
            return end
        del nodes[known:]
        if inside:
            first, last = inside[0], inside[-1]
            begin = place if first is _MARK else first.span.start
            span = Span(begin, _last(text, end) if last is _MARK else last.span.end)
        else:
            span = Span(place, place)
        nodes.append(make(span, *[node for node in inside if node is not _MARK]))
        return end

    return parse


def _last(text: str, place: int) -> int:
    """The end of the token before a place."""
    while text[place - 1] in " \t\r\n":
        place -= 1
    return place


def _choice(elements: list[ParserElement]) -> Parse:
    parts = cache(lambda character: tuple(_alternatives(elements, character)))

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        for part in parts(text[place : place + 1]):
            end = part(text, place, nodes)
            if end != FAILED:
                return end
        return FAILED

    return parse


def _alternatives(elements: list[ParserElement], character: str) -> Iterator[Parse]:
    """The functions to try, in this order, where the next character of the text is this one.

    Choices inside a choice are made together.
    """
    for element in elements:
        has_rule = hasattr(element, "make")
        if not _may_match(element, character):
            continue
        if isinstance(element, MatchFirst) and not has_rule:
            yield from _alternatives(element.exprs, character)
        elif isinstance(element, Forward) and not has_rule:
            yield from _alternatives([element.expr], character)
        else:
            yield _parse_of(element)


def _option(element: Opt) -> Parse:
    one, may_match = _parse_of(element.expr), cache(partial(_may_match, element.expr))

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        if not may_match(text[place : place + 1]):
            return place
        end = one(text, place, nodes)
        return place if end == FAILED else end

    return parse


def _repetition(element: ZeroOrMore | OneOrMore) -> Parse:
    one, least = _parse_of(element.expr), int(isinstance(element, OneOrMore))
    most = getattr(element, "max_count", None) or -1
    may_match = cache(partial(_may_match, element.expr))

    def parse(text: str, place: int, nodes: list[Any]) -> int:
        times = 0
        while times != most:
            end = one(text, place, nodes) if may_match(text[place : place + 1]) else FAILED
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


# --- first characters of elements -----------------------------------------------------------------


def _may_match(element: ParserElement, character: str) -> bool:
    return _may_begin(element, character) or _may_be_empty(element)


@cache
def _may_begin(element: ParserElement, character: str) -> bool:
    """Whether a match of an element may begin with a character; "" is the end of the text."""
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
