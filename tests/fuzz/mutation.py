"""Mutations of bytes: small damage, splices of two seeds, and long repetitions.

All of them are drawn from a `random.Random`, so a seed gives the same inputs again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Pieces = Sequence[bytes]

BYTES: Pieces = [bytes([b]) for b in range(256)]
"""Every byte, most of which no format allows at most places."""

UNICODE: Pieces = [
    *(c.encode() for c in "\x7f\x80\x9f\xa0éÿ\u0300\u200c\u202e\u203f\u2066\ud7ff\ue000\uf8ff"),
    *(c.encode() for c in "\uf900\ufdd0\ufeff\ufffd\ufffe\uffff\U00010000\U0001fffe\U000e0fff"),
    *(c.encode() for c in "\U000f0000\U0010ffff"),
    *(b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"),
    *(b"\\u", b"\\U", b"\\u00", b"\\uD800", b"\\u0020", b"\\u003E", b"\\U0010FFFF", b"\\U00110000"),
]
"""Characters at the edges of ranges, malformed UTF-8, and escapes."""

_REPEATS = (2, 3, 10, 100, 1000)
_MOST = 1 << 16  # bytes of an input; a longer one would only take longer


def insert(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """A piece put in."""
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.choice(pieces) + data[at:]


def flip(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """One bit changed."""
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """Some bytes removed."""
    at, size = dice.randrange(len(data)), dice.choice([1, 1, 1, 2, 5, 20])
    return data[:at] + data[at + size :]


def overwrite(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """A piece in place of as many bytes."""
    at, piece = dice.randrange(len(data)), dice.choice(pieces)
    return data[:at] + piece + data[at + len(piece) :]


def move(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """The bytes between two places, put in place of the bytes before another place."""
    a, b = sorted(dice.randrange(len(data) + 1) for _ in range(2))
    at = dice.randrange(len(data) + 1)
    return data[:at] + data[a:b] + data[at:]


def repeat(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """A short part, or a piece, many times over."""
    at = dice.randrange(len(data))
    part = dice.choice([data[at : at + dice.choice([1, 2, 5, 20])], dice.choice(pieces)])
    return data[:at] + part * dice.choice(_REPEATS) + data[at:]


def truncate(data: bytes, dice: random.Random, pieces: Pieces) -> bytes:
    """The beginning only."""
    return data[: dice.randrange(len(data))]


Damage = Callable[[bytes, random.Random, Pieces], bytes]
SMALL: Sequence[Damage] = [insert, insert, flip, cut, overwrite, move]
"""Damage that leaves most of a line as it was."""

LARGE: Sequence[Damage] = [*SMALL, *SMALL, repeat, truncate]


def damaged(
    data: bytes, dice: random.Random, pieces: Pieces, ways: Sequence[Damage] = SMALL
) -> bytes:
    """The data with up to three kinds of damage, or none."""
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        if data:
            data = dice.choice(ways)(data, dice, pieces)
    return data


def mutated(seeds: Sequence[bytes], dice: random.Random, pieces: Pieces) -> bytes:
    """A damaged seed, or the beginning of one seed and the end of another, damaged."""
    data = dice.choice(seeds)
    if dice.random() < 0.2:
        other = dice.choice(seeds)
        data = data[: dice.randrange(len(data) + 1)] + other[dice.randrange(len(other) + 1) :]
    return damaged(data, dice, pieces, LARGE)[:_MOST]
