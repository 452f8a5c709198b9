"""Numbers for the partitions that rows of solutions are in."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch

LARGEST = 2**62
"""Numbers of partitions are below it."""


def places_of(rows: SolutionBatch, partition: tuple[str, ...]) -> tuple[Int64s, int] | None:
    """(the number of each row's partition [n], a bound of these numbers).

    None if the partitions have no numbers of 64 bits.
    """
    place, count = np.zeros(len(rows), np.int64), 1
    for variable in partition:
        column = rows.values[variable]
        count *= len(column.terms) + 1
        if count >= LARGEST:
            return None
        place = place * (len(column.terms) + 1) + column.codes + 1
    return place, count
