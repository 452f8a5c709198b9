"""Quads in columns: what a parser hands over, before it is known which quads make an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s

DEFAULT_GRAPH = -1
"""`g` of a quad in the default graph, and of every triple of a format without graphs."""


MALFORMED = -1
"""`s`, `p` and `o` of a row that stands for a malformed line of a format without graphs."""


UNKNOWN_LINE = 0
"""`line` where the format gives none."""


@dataclass(frozen=True, slots=True)
class QuadBlock:
    """m consecutive quads of one file, in its order, with a term table of their own.

    `cut` says that the file could not be read beyond this block, so that what the block ends in
    may be incomplete.
    """

    s: Int32s  # [m] codes into terms
    p: Int32s  # [m]
    o: Int32s  # [m]
    g: Int32s  # [m], or DEFAULT_GRAPH
    line: Int64s  # [m] from 1, or UNKNOWN_LINE
    terms: Sequence[str]  # code -> N-Triples text, each once
    cut: bool = False

    def __len__(self) -> int:
        return len(self.s)


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
        """One more quad, of canonical texts; `g` is None in the default graph."""
        self.s.append(self.code(s))
        self.p.append(self.code(p))
        self.o.append(self.code(o))
        self.g.append(DEFAULT_GRAPH if g is None else self.code(g))
        self.line.append(line)

    def add_malformed(self, line: int) -> None:
        """A row in the place of a triple that could not be read."""
        for column in (self.s, self.p, self.o):
            column.append(MALFORMED)
        self.g.append(DEFAULT_GRAPH)
        self.line.append(line)

    def block(self, cut: bool = False) -> QuadBlock:
        """What was added, in columns."""
        return QuadBlock(
            np.array(self.s, np.int32),
            np.array(self.p, np.int32),
            np.array(self.o, np.int32),
            np.array(self.g, np.int32),
            np.array(self.line, np.int64),
            list(self.codes),
            cut,
        )
