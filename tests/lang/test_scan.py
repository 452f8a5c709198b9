"""The light scanner, and brackets in texts that may have errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.lang.scan import blank_comments, nesting, pairs, scan, unclosed


def kinds(text: str) -> list[tuple[str, str]]:
    return [(lexeme.kind, lexeme.text) for lexeme in scan(text)]


@pytest.mark.parametrize(
    ("text", "lexemes"),
    [
        ("SEQ(A)", [("word", "SEQ"), ("punct", "("), ("word", "A"), ("punct", ")")]),
        ("<http://x#y> # z", [("iri", "<http://x#y>"), ("comment", "# z")]),
        ("'a # b' \"it's\"", [("string", "'a # b'"), ("string", '"it\'s"')]),
        ("'''a 'b' \n c'''", [("string", "'''a 'b' \n c'''")]),
        (r"'a\'b'", [("string", r"'a\'b'")]),
        ("ex:SELECT ?FROM _:x @en 12", None),
        ("'open", [("punct", "'"), ("word", "open")]),
        ("?x < 3", [("var", "?x"), ("punct", "<"), ("number", "3")]),
    ],
)
def test_lexemes(text: str, lexemes: list[tuple[str, str]] | None) -> None:
    if lexemes is None:
        assert [kind for kind, _ in kinds(text)] == ["pname", "var", "bnode", "langtag", "number"]
    else:
        assert kinds(text) == lexemes


@given(st.text(alphabet="ab:?<>#'\"\\(){}[] \n\té1@_"))
def test_lexemes_and_white_space_make_up_the_text(text: str) -> None:
    done = 0
    for lexeme in scan(text):
        assert text[done : lexeme.span.start].strip() == ""
        assert text[lexeme.span.start : lexeme.span.end] == lexeme.text
        done = lexeme.span.end
    assert text[done:].strip() == ""


def test_comments_are_blanked_in_place() -> None:
    text = "a # b 'c\n<d#e> '#f' # g"
    assert blank_comments(text, scan(text)) == "a       \n<d#e> '#f'    "


def test_a_closing_bracket_skips_open_ones_of_another_kind() -> None:
    assert sorted(pairs(scan("{ ( }"))) == [(0, 2)]
    assert sorted(pairs(scan("( [ ) ]"))) == [(0, 2)]


def test_brackets_without_partner_nest_nothing() -> None:
    assert nesting(scan("a ( b { c } d")) == [0, 0, 0, 0, 1, 0, 0]


def test_the_last_bracket_without_partner_is_the_unclosed_one() -> None:
    found = unclosed(scan("( { [ ] }"))
    assert found is not None and found.span.start == 0
    assert unclosed(scan("( { [ ] } )")) is None
