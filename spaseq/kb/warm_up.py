"""Warm-up of the knowledge base kernels: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.kb.kernels.timed_triples import crowded, holding, intervals, numbered, stable_order
from spaseq.kb.knowledge import KbTerms


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    terms = KbTerms.of([f"<a:{number}>" for number in range(100, 200)])
    terms.find(["<a:1>"])
    yield "find_sorted"
    terms.find(["<a:1>"] * 100)
    yield "hash_slots"
    yield "find_hashed"
    nothing, rows = np.empty(0, np.int64), np.zeros(1, np.int64)
    numbered(rows)
    yield "numbered"
    stable_order(rows)
    yield "stable_order"
    is_so = np.ones(1, np.bool_)
    crowded(rows, rows, is_so, is_so, 1)
    yield "crowded"
    intervals(nothing, rows, rows, is_so, rows)
    yield "intervals"
    holding(nothing, nothing, nothing, nothing, rows, 1, rows, 1, nothing, nothing)
    yield "holding"
