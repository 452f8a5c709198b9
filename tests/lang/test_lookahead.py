"""The functions that look ahead find what pyparsing finds, and fail where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyparsing import ParseBaseException, ParserElement

from spaseq.errors import QueryText
from spaseq.lang import ast
from spaseq.lang.grammar import lookahead
from spaseq.lang.grammar.clauses import CLAUSES
from spaseq.lang.grammar.rules import Passage, Punctuation, Terminal
from spaseq.lang.parser import parse_source
from spaseq.lang.scan import scan
from spaseq.lang.variables import walk
from tests.lang.good_queries import good_queries
from tests.oracle.choices import seeded
from tests.oracle.strategies import case
from tests.sizes import first_of

GOOD = {
    **dict(good_queries()),
    **{f"generated {n}": case(seeded(f"lookahead:{n}")).query for n in range(30)},
}


def by_pyparsing(element: ParserElement, text: str, place: int) -> list[Any] | None:
    try:
        found: list[Any] = element.parse_string(Passage(" " * place + text[place:])).as_list()
    except ParseBaseException:
        return None
    return [node for node in found if not isinstance(node, Punctuation)]


def with_spans(nodes: list[Any] | None) -> Any:
    if nodes is None:
        return None
    below = [walk(n) if isinstance(n, ast.Node) else [n] for n in nodes]
    return nodes, [(type(node), node.span) for each in below for node in each]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each section that is parsed from now on has been found."""
    original, seen = lookahead.nodes_of, list[bool]()

    def nodes_of(element: ParserElement, text: str, place: int) -> list[Any] | None:
        found = original(element, text, place)
        assert with_spans(found) == with_spans(by_pyparsing(element, text, place))
        seen.append(found is not None)
        return found

    monkeypatch.setattr(lookahead, "nodes_of", nodes_of)
    monkeypatch.setattr("spaseq.lang.section_parser._SHORT", -1)  # no section is remembered
    return seen


@pytest.mark.parametrize("name", first_of([*GOOD], 60))
def test_good_queries_are_found(name: str, compared: list[bool]) -> None:
    assert parse_source(QueryText(GOOD[name])).query is not None
    assert compared
    assert all(compared)


def broken(text: str) -> Iterator[str]:
    """The text without one of its lexemes, or with it twice."""
    for lexeme in scan(text):
        start, end = lexeme.span.start, lexeme.span.end
        yield text[:start] + text[end:]
        yield text[:end] + " " + text[start:]


@pytest.mark.parametrize("name", first_of([*GOOD][::40], 3))
def test_both_fail_on_the_same_texts(name: str, compared: list[bool]) -> None:
    for each in broken(GOOD[name]):
        parse_source(QueryText(each))
    assert not all(compared)


def terminals(element: ParserElement, seen: set[int]) -> Iterator[Terminal]:
    if id(element) not in seen:
        seen.add(id(element))
        if isinstance(element, Terminal):
            yield element
        for inner in element.recurse():
            yield from terminals(inner, seen)


def test_terminals_begin_with_the_characters_that_they_name() -> None:
    """Every word, number and sign is tried at all terminals."""
    seen: set[int] = set()
    all_terminals = [t for clause in CLAUSES.values() for t in terminals(clause, seen)]
    assert len(all_terminals) > 50
    texts = {text[lexeme.span.start :] for text in GOOD.values() for lexeme in scan(text)}
    texts |= {chr(i) + rest for i in range(128) for rest in ("", "a:b ", "1.5e3 ", "?x ", "|= ")}
    for terminal in all_terminals:
        matched = {text[0] for text in texts if terminal.re_match(text, 0)}
        assert {c for c in matched if c.isascii()} <= terminal.begins, terminal
