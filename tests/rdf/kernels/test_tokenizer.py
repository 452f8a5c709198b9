"""The tokenizer agrees with pyoxigraph, line by line, on randomly damaged lines.

Both must accept the same lines and return the same quads.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable

import pyoxigraph as ox
import pytest

from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import after_sized_events, before_graphs
from spaseq.rdf.lines.line_events import line_statements
from spaseq.rdf.lines.statements import StatementReader
from tests.rdf.shared import SHARED, needs_data, needs_w3c

Quad = tuple[str, str, str, str]
XSD = "http://www.w3.org/2001/XMLSchema#"

SEEDS = [
    "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .",
    "<http://e/s> <http://e/p> <http://e/o> .",
    "<urn:x:1> <mailto:a@b.c> <http://e:80/a?b=c#d> <a:> .",
    "<http://e/%41é> <http://e/\U0001f600> <http://e/a%20b> .",
    r"<http://e/\u00E9\U0001F600> <http://e/p> <http://e/o> .",
    "_:a <http://e/p> _:b.c _:0-x .",
    "_:é <http://e/p> _:a·b .",
    f'<http://e/s> <http://e/p> "1"^^<{XSD}integer> <http://e/g> .',
    f'<http://e/s> <http://e/p> "x"^^<{XSD}string> .',
    f'<http://e/s> <http://e/q> "12.5"^^<{XSD}double> <http://e/g> .',
    f'<http://e/s> <http://e/q> "13"^^<{XSD}double> <http://e/g> .',
    '<http://e/s> <http://e/r> "mot"@fr <http://e/g> .',
    '<http://e/s> <http://e/p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    '<http://e/s> <http://e/p> "chat"@fr <http://e/g> .',
    '<http://e/s> <http://e/p> "chat"@zh-Hant-TW .',
    '<http://e/s> <http://e/p> "chat"@es-419 .',
    r'<http://e/s> <http://e/p> "\t\n\r\"\\\b\f\'\u0041\U00000042\u0001\u007F" .',
    '<http://e/s> <http://e/p> "é ü \U0001f600 漢字 \ufffe \uffff" .',
    '<http://e/s> <http://e/p> "" <http://e/g> .',
    '<http://e/s>\t<http://e/p>  "a" \t . # comment',
    '<http://e/s><http://e/p>"a"<http://e/g>.',
    "# comment",
    "  ",
    "<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> <http://e/o> )>> .",
]
PIECES = [
    *(bytes([b]) for b in range(256)),
    *b'<>"\\_:@^.#%/ \t -[]{}|`?uUntxZ09',
    *(
        c.encode()
        for c in "\x7f\x80\x9f\xa0éÿ\u0300\u200c\u203f\ud7ff\ue000\uf8ff\uf900\ufdd0\ufeff"
    ),
    *(c.encode() for c in "\ufffd\ufffe\uffff\U00010000\U0001fffe\U000e0fff\U000f0000\U0010ffff"),
    *(b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"),
    *(b"\\u", b"\\U", b"\\u00", b"\\uD800", b"\\u0020", b"\\u003E", b"\\U0010FFFF", b"\\U00110000"),
    *(b"%4", b"%4G", b"%zz", b"//", b"://", b"http://", b"[::1]", b"@:", b"^^", b"@en", b"@EN-GB"),
    *(b"@x-y", b"--ltr", b"_:", b"..", b" .", b" . ", b"<a:b>", b'"x"', b"<< ", b" >>"),
]
CHUNKS = [p if isinstance(p, bytes) else bytes([p]) for p in PIECES]


def insert(line: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(line) + 1)
    return line[:at] + dice.choice(CHUNKS) + line[at:]


def flip(line: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(line))
    return line[:at] + bytes([line[at] ^ 1 << dice.randrange(8)]) + line[at + 1 :]


def cut(line: bytes, dice: random.Random) -> bytes:
    at, size = dice.randrange(len(line)), dice.choice([1, 1, 1, 2, 5, 20])
    return line[:at] + line[at + size :]


def overwrite(line: bytes, dice: random.Random) -> bytes:
    at, piece = dice.randrange(len(line)), dice.choice(CHUNKS)
    return line[:at] + piece + line[at + len(piece) :]


def move(line: bytes, dice: random.Random) -> bytes:
    a, b = sorted(dice.randrange(len(line) + 1) for _ in range(2))
    at = dice.randrange(len(line) + 1)
    return line[:at] + line[a:b] + line[at:]


DAMAGE: list[Callable[[bytes, random.Random], bytes]] = [insert, insert, flip, cut, overwrite, move]


def damaged(line: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        if line:
            line = dice.choice(DAMAGE)(line, dice)
    return line


def object_text(term: object) -> str:
    return f"<<( {term} )>>" if isinstance(term, ox.Triple) else str(term)


def theirs(data: bytes, graphs: bool) -> tuple[list[Quad], list[int]]:
    """pyoxigraph's quads of all lines, and the numbers of the refused lines."""
    form = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    quads: list[Quad] = []
    refused = []
    for number, line in enumerate(re.split(b"\r\n|\r|\n", data), start=1):
        try:
            found = list(ox.parse(line, form))
        except (SyntaxError, ValueError):
            refused.append(number)
            continue
        assert len(found) <= 1
        quads += [(str(s), str(p), object_text(o), str(g)) for s, p, o, g in found]
    return quads, refused


def ours(
    data: bytes, graphs: bool, threads: int = 1, kept: tuple[str, ...] | None = None
) -> tuple[list[Quad], list[int]]:
    """The same for the tokenizer; objects are empty for predicates that are not in `kept`."""
    bad: list[BadInput] = []
    quads: list[Quad] = []
    reader = StatementReader(graphs, ArenaPool(2), kept or (), only_constants=kept is not None)
    where = before_graphs(reader) if graphs else after_sized_events(1)
    for b, _, _ in line_statements(io.BytesIO(data), "f", reader, where, threads, bad.append):
        texts = [*b.terms, "", "DEFAULT"]  # -1 is the last; SKIPPED is -2
        for s, p, o, g in zip(b.s.tolist(), b.p.tolist(), b.o.tolist(), b.g.tolist(), strict=True):
            if s >= 0:
                quads.append((texts[s], texts[p], texts[o], texts[g]))
    return quads, [b.line or 0 for b in bad]


def agree(data: bytes, graphs: bool) -> None:
    expected, refused = theirs(data, graphs)
    quads, bad = ours(data, graphs)
    assert bad == refused
    assert quads == expected
    kept = tuple({"<http://e/p>": 0, **{p: 0 for _, p, _, _ in expected[:1]}})
    quads, bad = ours(data, graphs, kept=kept)
    assert bad == refused
    assert quads == [(s, p, o if p in kept else "", g) for s, p, o, g in expected]


@pytest.mark.parametrize("graphs", [True, False], ids=["quads", "triples"])
@pytest.mark.parametrize("seed", range(6))
def test_damaged_lines(seed: int, graphs: bool) -> None:
    dice = random.Random(seed)
    lines = [damaged(dice.choice(SEEDS).encode(), dice) for _ in range(1500)]
    agree(b"".join(line + dice.choice([b"\n", b"\n", b"\r\n", b"\r"]) for line in lines), graphs)


@needs_data
@pytest.mark.parametrize("name", ["aarhus/parking.nq", "cards/transactions.nq", "stocks/nasdaq.nq"])
def test_damaged_real_data(name: str) -> None:
    dice = random.Random(name)
    with (SHARED / "data" / name).open("rb") as file:
        lines = [file.readline().rstrip(b"\n") for _ in range(3000)]
    agree(b"\n".join(damaged(line, dice) if dice.random() < 0.2 else line for line in lines), True)


@needs_w3c
@pytest.mark.parametrize("name", ["rdf-n-quads", "rdf-n-triples"])
def test_damaged_suites(name: str) -> None:
    dice = random.Random(name)
    for path in sorted((SHARED / "w3c" / "rdf11" / name).glob("*.n[qt]")):
        text = path.read_bytes()
        agree(text, name == "rdf-n-quads")
        lines = [line for line in text.splitlines() for _ in range(20)]
        agree(b"\n".join(damaged(line, dice) for line in lines), name == "rdf-n-quads")


PLACES = ["<http://e/{}>", "<a:{}>", "<http://e/?{}#x>", "<http://e{}/>", '"{}"', "_:a{}b", "_:{}"]


@pytest.mark.parametrize("place", PLACES)
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
