"""Renumbering of the few codes that occur out of many."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
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


@kernel
def compacted_parts(codes: Int32s, ends: Int64s, limit: int) -> tuple[Int32s, Int64s, Int32s]:
    """`compacted` of each part of codes [n]; `ends` [parts] are where the parts end.

    Returns:
        (the distinct codes of all parts, the end of each part's codes among them [parts], index of
        each code among those of its part [n]).
    """
    place, part_of = np.empty(limit, np.int32), np.full(limit, -1, np.int32)
    used, places = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)
    used_ends = np.empty(len(ends), np.int64)
    count = first = 0
    for part in range(len(ends)):
        begin = count
        for i in range(first, ends[part]):
            code = codes[i]
            if code < 0:
                places[i] = -1
                continue
            if part_of[code] != part:
                part_of[code] = part
                place[code] = count - begin
                used[count] = code
                count += 1
            places[i] = place[code]
        first = ends[part]
        used_ends[part] = count
    return used[:count], used_ends, places
