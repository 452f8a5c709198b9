"""Strings of JSON: their ends, their lengths, and their texts without escapes."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int8s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, kernel
from spaseq.rdf.kernels.escapes import BACKSLASH, encoded_size, json_escape, put_character
from spaseq.rdf.kernels.literals import QUOTE
from spaseq.rdf.kernels.vectors import WIDTH, byte, copied, first_quote_end, signed


@device_function
def text_end(data: Bytes, at: int) -> tuple[int, int]:
    """(offset of the closing quote, bytes without escapes) of the string that begins at `at`.

    `at` is after the opening quote. The offset is -1 if the string is not valid.
    """
    start, saved = at, 0
    while True:
        at = first_quote_end(data, at)
        stop = byte(data, at)
        if stop == QUOTE:
            return at, at - start - saved
        if stop != BACKSLASH:
            return -1, 0
        code, size = json_escape(data, at)
        if code < 0:
            return -1, 0
        saved += size - encoded_size(code)
        at += size


@kernel
def gathered(
    data: Bytes, kinds: Int8s, starts: Int64s, sizes: Int32s, escaped: int
) -> tuple[Int64s, Bytes]:
    """(offsets [n + 1], bytes) of n texts; those of the kind `escaped` lose their escapes.

    `sizes` [n] are those of the texts without escapes.
    """
    rows = len(starts)
    offsets = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        offsets[row + 1] = offsets[row] + sizes[row]
    texts = np.empty(offsets[rows] + WIDTH, np.uint8)
    for row in range(rows):
        at, to = signed(starts[row]), offsets[row]
        if kinds[row] != escaped:
            copied(data, at, texts, to, signed(sizes[row]))
            continue
        while to < offsets[row + 1]:
            if byte(data, at) == BACKSLASH:
                code, size = json_escape(data, at)
                to = put_character(texts, to, code)
                at += size
            else:
                texts[to] = data[at]
                to, at = to + 1, at + 1
    return offsets, texts[: offsets[rows]]
