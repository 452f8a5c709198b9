"""Few codes out of many, numbered anew."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.compiled.decorators import kernel


@kernel
def compacted(codes: Int32s, limit: int) -> tuple[Int32s, Int32s]:
    """(the codes that occur, in order of first appearance; the place of each of [n] among them).

    Codes are below `limit`; a negative one has the place -1.
    """
    place = np.full(limit, -1, np.int32)
    used, places = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        if code < 0:
            places[i] = -1
            continue
        if place[code] < 0:
            place[code] = count
            used[count] = code
            count += 1
        places[i] = place[code]
    return used[:count], places
