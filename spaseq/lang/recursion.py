"""Room on Python's stack for deep queries.

Code that reads a query recurs into it. Python's own bound, 1,000 calls, serves few levels. Python
3.11 and later keep their calls on the heap, so more of them take little of the C stack.
"""

from __future__ import annotations

import sys

PER_LEVEL = 20
"""Calls that may be open for each level of a query."""

CALLS = 1_000
"""Calls that may be open besides."""

USUAL = 20
"""Python's own bound serves this many levels."""


def make_room(levels: int) -> None:
    """Raise the bound on open calls to what a query with this number of levels needs.

    The bound stays raised: threads and generators of the run still read the query later.
    """
    needed = CALLS + PER_LEVEL * levels
    if levels > USUAL and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
