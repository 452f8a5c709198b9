"""Colours: the Pygments lexer, and the TextMate grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from pygments.lexers import SparqlLexer, guess_lexer_for_filename
from pygments.token import Error, Keyword, Name, Operator

from spaseq.editor.pygments_lexer import SpaseqLexer
from spaseq.editor.textmate import GRAMMAR_FILE, grammar, grammar_text
from spaseq.editor.words import FUNCTIONS, KEYWORDS
from tests.editor.queries import EXAMPLES, QUERY


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_no_example_has_an_error(path: Path) -> None:
    text = path.read_text("utf-8")
    tokens = list(SpaseqLexer().get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in tokens) == text
    assert all(kind is not Error for _, kind, _ in tokens)


@pytest.mark.parametrize("text", ["", "\ud800", "SEQ(A:B", "'''", QUERY, "?", "\x00 \U0001f600"])
def test_every_text_has_tokens(text: str) -> None:
    tokens = list(SpaseqLexer().get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in tokens) == text
    places = [place for place, _, _ in tokens]
    assert places == sorted(places)


def test_tokens() -> None:
    kinds = {value: kind for _, kind, value in SpaseqLexer().get_tokens_unprocessed(QUERY)}
    assert kinds["SEQ"] is Keyword
    assert kinds["Low"] is kinds["High"] is Name.Function
    assert kinds["?room"] is Name.Variable
    assert kinds["AVG"] is Name.Builtin
    assert kinds["UNTIL"] is kinds["SECONDS"] is Keyword
    assert kinds["+"] is Operator


@pytest.mark.parametrize("word", sorted({*KEYWORDS, *FUNCTIONS}))
def test_every_word_has_a_colour(word: str) -> None:
    for written in (word, word.lower()):
        ((_, kind, value), *_) = SpaseqLexer().get_tokens_unprocessed(f"{written} (")
        assert value == written
        assert kind in Keyword or kind in Name.Builtin


def test_sparql_stays_sparql() -> None:
    sparql = "SELECT ?x WHERE { ?x a ?y }"
    assert isinstance(guess_lexer_for_filename("a.rq", sparql), SparqlLexer)
    assert SpaseqLexer.analyse_text(QUERY) > 0.9 > SpaseqLexer.analyse_text(sparql)


def test_entry_point() -> None:
    """The package's metadata names the lexer, if it is installed with the present metadata."""
    found = entry_points(group="pygments.lexers", name="spaseq")
    for entry in found:
        assert entry.load() is SpaseqLexer


# --- TextMate


def test_the_grammar_file_is_up_to_date() -> None:
    """If this fails: python -m spaseq.editor.textmate."""
    assert GRAMMAR_FILE.read_text("utf-8") == grammar_text()


def rules(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from rules(value)
    elif isinstance(node, list):
        for value in node:
            yield from rules(value)


def test_expressions_compile() -> None:
    found = [rule[k] for rule in rules(grammar()) for k in ("match", "begin", "end") if k in rule]
    assert len(found) > 30
    for pattern in found:
        assert re.compile(pattern).match("") is None or pattern.endswith("$")


def test_includes_lead_somewhere() -> None:
    made = grammar()
    for rule in rules(made):
        if "include" in rule:
            assert rule["include"].removeprefix("#") in made["repository"]


def first_rule(text: str) -> str | None:
    """The name of the first top-level rule that matches the begin of a text."""
    made = grammar()
    for include in made["patterns"]:
        name = include["include"].removeprefix("#")
        for rule in rules(made["repository"][name]):
            pattern = rule.get("match") or rule.get("begin")
            if pattern and re.match(pattern, text):
                return str(name)
    return None


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_every_keyword_is_in_the_grammar(word: str) -> None:
    wanted = {"sequence"} if word == "SEQ" else {"keyword", "constant"}
    for written in (word, word.lower(), word.capitalize()):
        assert first_rule(f"{written}(" if word == "SEQ" else f"{written} x") in wanted


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_is_in_the_grammar(name: str) -> None:
    assert first_rule(f"{name.lower()}(?x)") == "function"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("?x", "variable"),
        ("<http://a>", "iri"),
        ("ex:a.b", "prefixed"),
        (":a", "prefixed"),
        ("date:a", "prefixed"),
        ("select:a", "prefixed"),
        ("DEFINE GPM A", "gpm"),
        ("FROM STREAM S <a>", "stream"),
        ("# x", "comment"),
        ("'x'", "string"),
        ('"""x"""', "string"),
        ("1.5e3", "number"),
        ("_:b", "blank"),
        ("@en", "language"),
        ("&&", "operator"),
    ],
)
def test_rules(text: str, rule: str) -> None:
    assert first_rule(text) == rule
