"""Codepoint escapes (SPARQL 1.1 section 19.2)."""

from __future__ import annotations

import pytest

from spaseq.errors import Span
from spaseq.lang.scan import unescape


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"a\u00e9b", "aéb"),
        (r"\U0001F600", "😀"),
        (r"\\u0041", r"\\u0041"),
        (r"\\\u0041", r"\\A"),
        (r"\n\u12", r"\n\u12"),
        ("plain", "plain"),
    ],
)
def test_escapes_are_replaced_unless_their_backslash_is_escaped(source: str, text: str) -> None:
    assert unescape(source).text == text


def test_spans_lead_back_to_the_source() -> None:
    source = r"x \u00e9 y \U0001F600 z"
    unescaped = unescape(source)
    for piece, written in [
        ("x", "x"),
        ("é", r"\u00e9"),
        ("y", "y"),
        ("😀", r"\U0001F600"),
        ("z", "z"),
    ]:
        at = unescaped.text.index(piece)
        span = unescaped.span(Span(at, at + 1))
        assert source[span.start : span.end] == written


@pytest.mark.parametrize("escape", [r"\uD800", r"\uDFFF", r"\U00110000"])
def test_escapes_that_stand_for_no_character_are_reported(escape: str) -> None:
    assert unescape("ab" + escape).invalid == (Span(2, 2 + len(escape)),)
