"""Copying scattered texts of a buffer into one contiguous array."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.compiled.decorators import kernel
from spaseq.rdf.kernels.tables import OFFSET, SIZE
from spaseq.rdf.kernels.vectors import PREFETCHED, WIDTH, copied, prefetch, signed


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
