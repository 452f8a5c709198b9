"""The tokenizer agrees with pyoxigraph, line by line, on randomly damaged lines."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.lines import PIECES, SEEDS, agree
from tests.fuzz.mutation import damaged
from tests.rdf.shared import SHARED, needs_data, needs_w3c
from tests.sizes import first_of


@pytest.mark.parametrize("graphs", [True, False], ids=["quads", "triples"])
@pytest.mark.parametrize("seed", first_of(range(6), 2))
def test_damaged_lines(seed: int, graphs: bool) -> None:
    dice = random.Random(seed)
    lines = [damaged(dice.choice(SEEDS).encode(), dice, PIECES) for _ in range(1500)]
    agree(b"".join(line + dice.choice([b"\n", b"\n", b"\r\n", b"\r"]) for line in lines), graphs)


@needs_data
@pytest.mark.parametrize("name", ["aarhus/parking.nq", "cards/transactions.nq", "stocks/nasdaq.nq"])
def test_damaged_real_data(name: str) -> None:
    dice = random.Random(name)
    with (SHARED / "data" / name).open("rb") as file:
        lines = [file.readline().rstrip(b"\n") for _ in range(3000)]
    agree(
        b"\n".join(damaged(line, dice, PIECES) if dice.random() < 0.2 else line for line in lines),
        True,
    )


@needs_w3c
@pytest.mark.parametrize("name", ["rdf-n-quads", "rdf-n-triples"])
def test_damaged_suites(name: str) -> None:
    dice = random.Random(name)
    for path in sorted((SHARED / "w3c" / "rdf11" / name).glob("*.n[qt]")):
        text = path.read_bytes()
        agree(text, name == "rdf-n-quads")
        lines = [line for line in text.splitlines() for _ in range(20)]
        agree(b"\n".join(damaged(line, dice, PIECES) for line in lines), name == "rdf-n-quads")


PLACES = ["<http://e/{}>", '"{}"', "_:a{}b", "_:{}", "<a:{}>", "<http://e/?{}#x>", "<http://e{}/>"]


@pytest.mark.parametrize("place", first_of(PLACES, 4))
def test_every_character_of_the_basic_plane(place: str) -> None:
    wanted = [c for c in range(0x10000) if not 0xD800 <= c <= 0xDFFF and c not in (10, 13)]
    if place[0] == "_":
        # One by one, because other parsers handle labels.
        wanted = wanted[:0x400] + wanted[0x2000:0x2200]
    lines = [f"<http://e/s> <http://e/p> {place.format(chr(c))} ." for c in wanted]
    agree("\n".join(lines).encode(), False)


@pytest.mark.parametrize("place", ["<http://e/{}>", '"{}"'])
@pytest.mark.parametrize("escape", ["", "\\U{:08X}", "\\u{:04x}"])
def test_characters_of_other_planes_and_escapes(place: str, escape: str) -> None:
    edges = [p * 0x10000 + c for p in range(1, 17) for c in (0, 1, 0xFFF, 0x1000, 0xFFFD, 0xFFFE)]
    small = [*range(0x200), 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xF8FF, 0xFDD0, 0xFDF0, 0xFFFD, 0xFFFF]
    codes = small if escape else [c for c in small if c not in (10, 13) and not 0xD7FF < c < 0xE000]
    codes = codes + edges + ([0x110000, 0xFFFFFFFF] if escape else [])
    shown = [escape.format(c) if escape else chr(c) for c in codes]
    agree("\n".join(f"<a:s> <a:p> {place.format(c)} ." for c in shown).encode(), True)
