"""Numbers for the partitions that rows of solutions are in."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TextArray
from spaseq.rdf.columns.united_texts import TextMemo

LARGEST = 2**62
"""Numbers of partitions are below it."""

MIXER = 0x9E3779B97F4A7C15 - 2**64
"""An odd number that mixes the bits of several hashes (2^64 / golden ratio)."""


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


def place_hashes(rows: SolutionBatch, partition: tuple[str, ...]) -> Int64s:
    """A number for the partition of each row [n], whatever batch it is in.

    Two partitions rarely have the same number.
    """
    found = np.zeros(len(rows), np.int64)
    for column in (rows.values[variable] for variable in partition):
        found *= MIXER
        found += hashes_of(column.terms)[column.codes]
    return found


def _hashes(terms: TextArray) -> Int64s:
    texts = [*terms.to_pylist(), None]
    return np.fromiter(map(hash, texts), np.int64, len(texts))


hashes_of = TextMemo(_hashes)
"""The hashes [n + 1] of n texts and of UNBOUND; the families of a run share arrays of texts."""
