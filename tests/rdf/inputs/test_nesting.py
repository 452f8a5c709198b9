"""Nesting of triple terms is measured before a parser sees them."""

from __future__ import annotations

import pytest

from spaseq.rdf.inputs.sizes import nested_too_deep


def nested(depth: int) -> str:
    return "<a:s> <a:p> " + "<<( <a:s> <a:p> " * depth + "<a:o>" + " )>>" * depth + " ."


@pytest.mark.parametrize("depth", [0, 1, 2, 200])
def test_as_deep_as_allowed_is_not_too_deep(depth: int) -> None:
    assert nested_too_deep(nested(depth), max(depth, 1)) is None


@pytest.mark.parametrize("depth", [2, 201, 20_000])
def test_one_deeper_is_too_deep(depth: int) -> None:
    reason = f"triple terms are nested more than {depth - 1} deep"
    assert nested_too_deep(nested(depth), depth - 1) == reason
    assert nested_too_deep(nested(depth).encode(), depth - 1) == reason


@pytest.mark.parametrize(
    "text",
    [
        '<a:s> <a:p> "<<<<<<<< \\" <<<<" .',
        "<a:s> <a:p> <a:o> . # <<<<<<<<<<",
        "<a:s> <a:p> <<( <a:s> <a:p> <a:o>)>> .\n" * 9,
    ],
)
def test_signs_in_literals_comments_and_neighbours_do_not_count(text: str) -> None:
    assert nested_too_deep(text, 1) is None


@pytest.mark.parametrize("text", ['" <<( <<( <<(', "<a <<( <<(", '"\\" " " <<( <<('])
def test_signs_after_what_is_not_a_term_count(text: str) -> None:
    assert nested_too_deep(text, 1) is not None
