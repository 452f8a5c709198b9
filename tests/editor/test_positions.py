"""Columns of the protocol: UTF-16 units, and the units that a client may choose."""

from __future__ import annotations

import pytest

from spaseq.editor.protocol import Positions

TEXT = "a\n\U0001f600\u00e4\U0001d4b3?x\r\nb\rc"
"""An emoji and an astral letter before a variable; three kinds of line ends."""


@pytest.mark.parametrize(("encoding", "column"), [("utf-16", 5), ("utf-8", 10), ("utf-32", 3)])
def test_columns(encoding: str, column: int) -> None:
    positions = Positions(TEXT, encoding)
    assert positions.place(TEXT.index("?")) == (1, column)
    assert positions.offset(1, column) == TEXT.index("?")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-32"])
def test_every_place_leads_back(encoding: str) -> None:
    positions = Positions(TEXT, encoding)
    for offset in range(len(TEXT) + 1):
        if not TEXT.startswith("\n", offset) or TEXT[offset - 1] != "\r":
            assert positions.offset(*positions.place(offset)) == offset


def test_lines_end_as_the_protocol_says() -> None:
    assert Positions("a\x0bb\u2028c\rd").place(6) == (1, 0)


def test_places_beyond_the_text() -> None:
    positions = Positions("ab\ncd")
    assert positions.offset(0, 99) == 2
    assert positions.offset(9, 0) == 5
    assert positions.offset(-1, 0) == 0
    assert positions.place(99) == (1, 2)


def test_inside_a_character() -> None:
    assert Positions("\U0001f600x").offset(0, 1) == 0
