"""Quads in columns, as a parser delivers them, before they are grouped into events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.records import record

DEFAULT_GRAPH = -1
"""`g` of a quad in the default graph, and of each triple in a format without graphs."""


MALFORMED = -1
"""`s`, `p` and `o` of a malformed line, which keeps its row in formats without graphs."""


UNKNOWN_LINE = 0
"""`line` of quads whose format has no lines."""


@record
class QuadBlock:
    """m consecutive quads of one file, in order, with their own term table.

    `cut` says that the file cannot be read beyond this block. Its last event may be incomplete.
    """

    s: Int32s  # [m] codes into terms
    p: Int32s  # [m]
    o: Int32s  # [m]
    g: Int32s  # [m], or DEFAULT_GRAPH
    line: Int64s  # [m] from 1, or UNKNOWN_LINE
    terms: Sequence[str]  # code -> N-Triples text, all distinct
    cut: bool = False
    size: int = 0  # characters of the terms of all quads, repeated terms included, where known

    def __len__(self) -> int:
        return len(self.s)

    def rows(self, kept: Int64s) -> QuadBlock:
        """The block of these rows, in this order."""
        columns = {name: getattr(self, name)[kept] for name in ("s", "p", "o", "g", "line")}
        return replace(self, **columns)


@dataclass(slots=True)
class BlockBuilder:
    """A `QuadBlock` under construction, quad by quad."""

    codes: dict[str, int] = field(default_factory=dict)
    s: list[int] = field(default_factory=list)
    p: list[int] = field(default_factory=list)
    o: list[int] = field(default_factory=list)
    g: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.s)

    def code(self, text: str) -> int:
        """The code of a canonical text."""
        return self.codes.setdefault(text, len(self.codes))

    def add(self, s: str, p: str, o: str, g: str | None, line: int = UNKNOWN_LINE) -> None:
        """Append a quad of canonical texts; `g` is None in the default graph."""
        self.s.append(self.code(s))
        self.p.append(self.code(p))
        self.o.append(self.code(o))
        self.g.append(DEFAULT_GRAPH if g is None else self.code(g))
        self.line.append(line)

    def block(self, cut: bool = False, size: int = 0) -> QuadBlock:
        """The quads so far, in columns. Rows without a line have an unknown one."""
        line = np.full(len(self), UNKNOWN_LINE, np.int64)
        line[: len(self.line)] = self.line
        return QuadBlock(
            np.array(self.s, np.int32),
            np.array(self.p, np.int32),
            np.array(self.o, np.int32),
            np.array(self.g, np.int32),
            line,
            list(self.codes),
            cut,
            size,
        )
