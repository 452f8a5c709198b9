"""How the copies of a small case lie in time, so that each has the answers of the case alone.

Copies with the same keys are further apart than any window. Copies with keys of their own may lie
between each other where the query evaluates each key by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from spaseq.lang import ast
from spaseq.lang.variables import is_now
from tests.oracle.choices import Choices
from tests.oracle.draw_events import term
from tests.oracle.oracle import QueryRun, nodes
from tests.oracle.strategies import Case

BASE = 10**9
"""Time in ms of the first of copies with keys of their own: behind all constants in queries."""

SECOND = 1000
"""All events of a drawn case are at whole seconds."""

FINEST = 499
"""Most ms by which an event may be later, and still lie in the same tumbling window."""


@dataclass(frozen=True)
class Layout:
    """The times of the copies, in ms: blocks of copies that begin close to each other.

    A copy is later by a multiple of all tumbling windows (`coarse`), and by some ms in its block.
    """

    count: int
    own_keys: bool
    apart: int  # from block to block
    base: int = 0
    block: int = 1
    step: int = 0  # from copy to copy in a block; a multiple of all tumbling windows
    fine: int = 0  # ms from copy to copy in a block

    def coarse(self, copy: int) -> int:
        return self.base + copy // self.block * self.apart + copy % self.block * self.step

    def offset(self, copy: int) -> int:
        return self.coarse(copy) + copy % self.block * self.fine

    @property
    def separate(self) -> bool:
        """Whether each copy ends before the next one begins."""
        return self.block == 1

    def of(self, count: int) -> Layout:
        """The same with another number of copies."""
        return replace(self, count=count)


def layout(
    choices: Choices, case: Case, queries: Sequence[ast.Query], own: bool, count: int
) -> Layout:
    """A layout in which copies do not change each other's answers."""
    windows = [q.window.length.ms for q in queries if isinstance(q.window, ast.TimeWindow)]
    unit = lcm(SECOND, *windows)
    length = span(case) + SECOND
    muted = [query.skip.mute.ms for query in queries if query.skip and query.skip.mute]
    far = (length + 2 * max(windows, default=0) + max(muted, default=0)) // unit * unit + unit
    if not own or not all(map(by_key, queries)):
        apart = far + unit * choices.pick([0, 0, 1, 10])
        return Layout(count, own, apart)
    close = length // unit * unit + unit
    if any(map(_needs_own_ends, queries)):
        return Layout(count, own, close, BASE)
    shape = choices.pick(["interleaved", "interleaved", "dense"])
    if shape == "dense" and _may_tie(case, queries):
        return Layout(count, own, close, BASE, count)
    block = choices.pick([17, 300, FINEST])
    step = unit * choices.pick([0, 0, 1])
    return Layout(count, own, close + block * step, BASE, block, step, 1)


def span(case: Case) -> int:
    """The time of the last event, in ms."""
    return max((time for events in case.streams.values() for time, _, _ in events), default=0)


def with_fillers(case: Case, queries: Sequence[ast.Query]) -> Case:
    """The case with as many events behind it that match nothing as windows of n EVENTS need."""
    most = max(
        (q.window.events for q in queries if isinstance(q.window, ast.CountWindow)), default=0
    )
    last, first = span(case), next(iter(case.streams))
    fillers = [
        (last + (i + 1) * SECOND, f"http://example.org/filler/{i}", [(term("nothing"),) * 3])
        for i in range(most)
    ]
    return replace(case, streams={**case.streams, first: [*case.streams[first], *fillers]})


def needs_own_keys(query: ast.Query) -> bool:
    """Whether events that match nothing cannot keep copies with the same keys apart."""
    return isinstance(query.window, ast.CountWindow) and bool(query.partition)


def by_key(query: ast.Query) -> bool:
    """Whether events of different keys never change each other's answers."""
    return bool(query.partition) or joined_by_key(query)


def joined_by_key(query: ast.Query) -> bool:
    """Whether all GPMs are joined by ?k, and nothing else looks at events of other keys."""
    form, skip = query.form, query.skip
    plain = getattr(form, "strategy", "ALL") == "ALL" and (
        skip is None or (skip.kind == "NO SKIP" and skip.mute is None)
    )
    if not plain or not isinstance(query.window, ast.TimeWindow):
        return False
    if any(isinstance(n, ast.Op) and n.kind == "," for n in nodes(query.sequence)):
        return False
    return all(_has_key(gpm) for gpm in query.gpms) and "k" not in _groups(query)


def _has_key(gpm: ast.Gpm) -> bool:
    return any(
        isinstance(e, ast.Triples) and any(t.object == ast.Var("k") for t in e.triples)
        for e in gpm.pattern.elements
    )


def _groups(query: ast.Query) -> frozenset[str]:
    return QueryRun(query, {}, {}).groups


def _needs_own_ends(query: ast.Query) -> bool:
    """Whether the answers of a copy depend on an end that it shares with other copies.

    The close of a tumbling window is the end of all copies in it.
    """
    return is_tumbling(query) and (
        any(isinstance(n, ast.Node) and is_now(n) for n in nodes(query)) or _is_distinct(query)
    )


def is_tumbling(query: ast.Query) -> bool:
    return isinstance(query.window, ast.TimeWindow) and query.window.tumbling


def _may_tie(case: Case, queries: Sequence[ast.Query]) -> bool:
    """Whether copies may have events at equal times: their k then differ, but not their order."""
    one = len(case.streams) == 1 or "ties" not in case.features
    return one and not any(map(_is_distinct, queries))


def _is_distinct(query: ast.Query) -> bool:
    return isinstance(query.form, ast.Select) and query.form.distinct


def without_partition(text: str) -> str:
    """The query without PARTITION BY."""
    return re.sub(r"(?m)^PARTITION BY .*\n", "", text)
