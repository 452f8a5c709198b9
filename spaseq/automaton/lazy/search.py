"""Filling the slots of a match, the rarest first, from what is stored.

A search starts from one solution, of a step that can be a match's last, and goes on to the slot
with the fewest solutions in reach - in the window, within the instants that the filled slots leave,
with their join key - unless another has much fewer that pass its tests (`lazy_rates`). A slot
without any ends it. So the order is chosen anew for every partial match and follows the rates of
the stream by itself.

Nothing is kept of a partial match but, from the second search on that asks, which solutions pass
the tests of an edge beside the solutions it looks at. So a test that does not concern the last
event is not made again for every last event, and the tests made in total are no more than those of
an automaton that takes the steps in that order and keeps all its runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.lazy.buffer import Bucket, Buffer, Key
from spaseq.automaton.lazy.match_checks import Absent, MatchCheck
from spaseq.automaton.lazy.memory import Kept, Memory
from spaseq.automaton.lazy.rates import Rates
from spaseq.automaton.lazy.tree import Bounds, Tree, TreeEdge, TreeState
from spaseq.automaton.lazy.window_clock import Clock
from spaseq.automaton.run.runs import Row
from spaseq.automaton.run.work_counts import WorkCounts

_LAST_K = 2**62
_UNFILLED: Row = (-1, 0, 0, None, ())

_Choice: TypeAlias = tuple[float, TreeEdge, Key, Bucket, int, int]
"""The rank of an edge; where the solutions with which key are, from and to."""


class Search:
    """Searches in one partition, one after the other: for the matches that a solution completes, or
    for those of a negated step.

    Args:
        buffers: what is stored, by GPM.
        memory: what earlier searches have kept.
        clock: what is now, and what has been dropped.
        size: how many slots there are at most.
        work: what is looked at is counted here.
        rates: how often tests are passed.
        order: fill the slots in this order, whatever is stored.
    """

    __slots__ = (
        "_buffers",
        "_clock",
        "_floor",
        "_memory",
        "_order",
        "_rates",
        "_roof",
        "at",
        "rows",
        "work",
    )

    def __init__(
        self,
        buffers: Mapping[int, Buffer],
        memory: Memory,
        clock: Clock,
        size: int,
        work: WorkCounts,
        rates: Rates,
        order: tuple[int, ...] | None = None,
    ) -> None:
        self._buffers, self._memory, self._clock = buffers, memory, clock
        self._floor = self._roof = clock.now
        self.work, self._rates, self._order = work, rates, order
        self.rows = [_UNFILLED] * size
        self.at = [clock.now] * size

    def within(self, floor: Instant, roof: Instant) -> None:
        """From here on all solutions of a match lie after one instant and before the other."""
        self._floor, self._roof = floor, roof

    def completions(self, tree: Tree, start: TreeEdge, row: Row) -> Iterator[None]:
        """Fill all slots of a tree, the first with a solution of `now`; after each item, `rows`
        and `at` are a match."""
        self.work.candidates += 1
        self.rows[start.slot], self.at[start.slot] = row, self._clock.now
        if self._pass(start.filters):
            yield from self._extensions(tree.state(start.target))

    def exists(self, absent: Absent) -> bool:
        """Whether a negated step matches beside what has been filled."""
        self.work.searches += 1
        return any(True for state in absent.ways for _ in self._extensions(state))

    def _extensions(self, state: TreeState) -> Iterator[None]:
        """Fill what is empty in a state, in all ways."""
        if not state.edges:
            yield
            return
        choice = self._rarest(state)
        if choice is None:
            return
        _, edge, key, bucket, start, stop = choice
        tested = stop - start
        filters = edge.filters
        if edge.kept:
            kept = self._kept(edge, key)
            if kept is None:
                filters = (*edge.kept, *filters)
            else:
                self._catch_up(edge, bucket, kept)
                bucket = kept.bucket
                start, stop = bucket.between(*self._reach(edge))
        rows, at, slot, work = self.rows, self.at, edge.slot, self.work
        after = None
        passed = 0
        for i in range(start, stop):
            work.candidates += 1
            rows[slot], at[slot] = bucket.rows[i], bucket.instants[i]
            if not filters or self._pass(filters):
                passed += 1
                after = after or state.tree.state(edge.target)
                if after.edges:
                    yield from self._extensions(after)
                else:
                    yield
        if len(state.edges) > 1:
            self._rates.note(edge, tested, passed)

    def _pass(self, filters: tuple[MatchCheck, ...]) -> bool:
        for check in filters:  # noqa: SIM110 - a loop is faster, and nothing runs more often
            if not check.passes(self):
                return False
        return True

    # --- the choice -------------------------------------------------------------------------------

    def _rarest(self, state: TreeState) -> _Choice | None:
        """The slot of least rank; None if some slot has no solution in reach at all.

        Slots with few solutions of any key are looked at first, so that a lack is mostly seen
        before frequent solutions are indexed.
        """
        buffers, rows = self._buffers, self.rows
        edges: tuple[TreeEdge, ...] = state.edges
        if self._order is not None:
            edges = self._forced(edges, self._order)
        elif len(edges) > 1:
            edges = tuple(sorted(edges, key=lambda e: len(buffers[e.gpm].whole.rows)))
        best: _Choice | None = None
        single = len(edges) == 1
        for edge in edges:
            key = tuple([rows[slot][4][column] for slot, column in edge.sources])
            bucket = buffers[edge.gpm].bucket(edge.columns, key, self._clock.expired)
            if not bucket.rows:
                return None
            start, stop = bucket.between(*self._reach(edge))
            if start >= stop:
                return None
            if single:
                return 0.0, edge, key, bucket, start, stop
            rank = self._rates.rank(edge, stop - start)
            if best is None or rank < best[0]:
                best = rank, edge, key, bucket, start, stop
        return best

    def _forced(self, edges: tuple[TreeEdge, ...], order: tuple[int, ...]) -> tuple[TreeEdge, ...]:
        return (min(edges, key=lambda e: order.index(e.slot) if e.slot in order else -1),)

    def _reach(self, edge: TreeEdge) -> tuple[Instant, Instant]:
        """Solutions of an edge lie after the first instant and before the second."""
        bounds = edge.bounds
        high = self._high(bounds)
        return self._low(bounds), min(high, self._clock.now) if edge.not_last else high

    def _low(self, bounds: Bounds) -> Instant:
        low, at = self._floor, self.at
        for i in bounds.after:
            if at[i] > low:  # sooner than a call of `max`, and nothing is asked more often
                low = at[i]
        for i, gap_ms in bounds.since:
            low = max(low, (at[i][0] - gap_ms - 1, _LAST_K))
        for i in bounds.together:
            low = max(low, (at[i][0] - 1, _LAST_K))
        return low

    def _high(self, bounds: Bounds) -> Instant:
        high, at = self._roof, self.at
        for i in bounds.before:
            if at[i] < high:
                high = at[i]
        for i, gap_ms in bounds.within:
            high = min(high, (at[i][0] + gap_ms + 1, -1))
        for i in bounds.together:
            high = min(high, (at[i][0] + 1, -1))
        return high

    # --- what is kept -----------------------------------------------------------------------------

    def _kept(self, edge: TreeEdge, key: Key) -> Kept | None:
        """What is kept for an edge and the solutions beside it, once they come up again."""
        beside = tuple([self.rows[i] for i in edge.beside])
        return self._memory.recall(edge, key, beside, lambda: self._low(edge.kept_bounds))

    def _catch_up(self, edge: TreeEdge, bucket: Bucket, kept: Kept) -> None:
        """Test the solutions that have been stored since."""
        start, stop = bucket.between(kept.upto, self._high(edge.kept_bounds))
        rows, at, slot = self.rows, self.at, edge.slot
        self.work.candidates += max(0, stop - start)
        before = len(kept.bucket.rows)
        for i in range(start, stop):
            rows[slot], at[slot] = bucket.rows[i], bucket.instants[i]
            if self._pass(edge.kept):
                kept.bucket.add(at[slot], rows[slot])
        kept.upto = self._clock.now
        self._memory.size += len(kept.bucket.rows) - before
