"""Renumbering of the few codes that occur out of many."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.compiled.decorators import kernel


@kernel
def compacted(codes: Int32s, limit: int) -> tuple[Int32s, Int32s]:
    """(distinct codes in order of first appearance, index of each of codes [n] among them [n]).

    Codes are below `limit`. The index of a negative code is -1.
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
