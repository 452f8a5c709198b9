"""Well-formed lines that exceed a limit: the line itself, or the literal in it, is too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spaseq.limits import Limits
from spaseq.rdf.inputs.sizes import line_excess
from spaseq.rdf.kernels.token_arrays import UNREAD
from spaseq.rdf.lines.arenas import ReadArena

_LINE = re.compile(rb"[^\r\n]*+")


class LongLine(NamedTuple):
    """The row of a statement that exceeds a limit, its line, and the reason."""

    row: int
    line: bytes
    reason: str


def long_lines(arena: ReadArena, count: int, end: int, limits: Limits) -> Iterator[LongLine]:
    """Those of the first `count` rows that exceed a limit; the last row's line ends before `end`.

    Rows that are UNREAD are left out.
    """
    at = arena.rows.at[:count].astype(np.int64)
    room = np.diff(at, append=end)  # of the line, and of comments and blank lines after it
    least = min(limits.line_bytes, limits.literal_bytes)
    for row in np.flatnonzero((room > least) & (arena.rows.s[:count] != UNREAD)).tolist():
        found = _LINE.match(arena.buffer, at[row], at[row] + room[row])  # type: ignore[call-overload]
        assert found is not None
        line = bytes(found.group())
        reason = line_excess(line, limits)
        if reason is not None:
            yield LongLine(row, line, reason)
