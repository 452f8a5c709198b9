"""Texts in byte arrays: scattered ones gathered, and those of rows joined, into one contiguous
array; and looking for bytes in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.arrays import Bools, Bytes, Int32s, Int64s
from spaseq.compiled.decorators import inlined_device_function, kernel
from spaseq.rdf.kernels.codes import OFFSET, SIZE
from spaseq.rdf.kernels.vectors import PREFETCHED, WIDTH, copied, prefetch, signed

Array = Any  # numba tells writable arrays from others, mypy does not

CONSTANT, OWN = -1, -2
"""Pieces without a column of places: one text for all rows, and text i for row i."""


@kernel
def gather(buffer: Bytes, spans: Int32s, codes: Int32s, inner: int) -> tuple[Int64s, Bytes]:
    """(offsets [n + 1], bytes) of the texts of codes [n], without `inner` bytes at either end.

    At least 31 bytes of the buffer must follow each text.
    """
    offsets = np.empty(len(codes) + 1, np.int64)
    total = 0
    for i in range(len(codes)):
        offsets[i] = total
        total += spans[codes[i], SIZE] - 2 * inner
    offsets[len(codes)] = total
    texts = np.empty(total + WIDTH, np.uint8)
    for i in range(len(codes)):
        following = codes[min(i + PREFETCHED, len(codes) - 1)]
        prefetch(buffer, signed(spans[following, OFFSET]))
        at, to = signed(spans[codes[i], OFFSET]) + inner, offsets[i]
        copied(buffer, at, texts, to, offsets[i + 1] - to)
    return offsets, texts[:total]


@kernel
def joined_texts(
    data: Bytes, offsets: Int64s, first: Int64s, column: Int64s, places: Array, rows: int
) -> tuple[Int64s, Bytes]:
    """(offsets [rows + 1], bytes) of m texts for each row, one after the other.

    Text i is data[offsets[i]:offsets[i + 1]]; at least 31 bytes follow the last one. Piece p of a
    row is the text `first[p]` further than its place: the row's in `places` int32 [c, rows] at
    `column[p]`, which is negative for no text, or what CONSTANT and OWN say.
    """
    begins = np.empty(rows + 1, np.int64)
    total = 0
    for row in range(rows):
        begins[row] = total
        for piece in range(len(first)):
            at = _text(first, column, places, piece, row)
            if at >= 0:
                total += offsets[at + 1] - offsets[at]
    begins[rows] = total
    texts = np.empty(total + WIDTH, np.uint8)
    to = 0
    for row in range(rows):
        for piece in range(len(first)):
            at = _text(first, column, places, piece, row)
            if at >= 0:
                size = offsets[at + 1] - offsets[at]
                copied(data, offsets[at], texts, to, size)
                to += size
    return begins, texts[:total]


@inlined_device_function
def _text(first: Int64s, column: Int64s, places: Array, piece: int, row: int) -> int:
    """The number of a piece's text, negative for no text."""
    own, place = column[piece], 0
    if own != CONSTANT:
        place = row if own == OWN else signed(places[own, row])
    return signed(first[piece] + place) if place >= 0 else -1


@kernel
def holding_any(data: Bytes, ends: Int64s, wanted: Bools) -> Bools:
    """[n] whether text i, which is data[ends[i]:ends[i + 1]], has a byte of those `wanted`.

    `wanted` bool [256] says it by byte.
    """
    found = np.zeros(len(ends) - 1, np.bool_)
    for row in range(len(found)):
        has = False
        for at in range(ends[row], ends[row + 1]):
            has |= wanted[data[at]]
        found[row] = has
    return found
