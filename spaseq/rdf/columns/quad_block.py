"""Quads in columns, as a parser delivers them, before they are grouped into events."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.records import record

DEFAULT_GRAPH = -1
"""`g` of a quad in the default graph, and of each triple in a format without graphs."""


MALFORMED = -1
"""`s`, `p` and `o` of a malformed line, which keeps its row in formats without graphs."""


UNKNOWN_LINE = 0
"""The line of quads whose format has no lines."""


@record
class QuadBlock:
    """m consecutive quads of one file, in order, with their own term table."""

    s: Int32s  # [m] codes into terms
    p: Int32s  # [m]
    o: Int32s  # [m]
    g: Int32s  # [m], or DEFAULT_GRAPH
    line: Int64s  # [m] from 1
    terms: Sequence[str]  # code -> N-Triples text, all distinct

    def __len__(self) -> int:
        return len(self.s)
