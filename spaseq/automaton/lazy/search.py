"""Searches for matches from stored solutions, the rarest step first.

A search starts from one solution of a step that can be a match's last. It goes on to the step with
the fewest solutions in reach: in the window, at instants that the matched steps allow, with their
join key. A step whose solutions fail their checks more often may come first instead (`pass_rates`).
A step without any solution in reach ends the search. The order is chosen anew for every partial
match, so it follows the rates of the stream.

No partial match is stored. But from the second search on that asks, `check_cache` stores which
solutions pass the checks of an edge beside the solutions that the checks look at. So a check that
does not concern the last event is not repeated for every last event. There are at most as many
checks as in an automaton that takes the steps in that order and keeps all its runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.lazy.check_cache import CheckCache, CheckedRows
from spaseq.automaton.lazy.input_buffer import Bucket, InputBuffer, Key
from spaseq.automaton.lazy.pass_rates import PassRates
from spaseq.automaton.lazy.tree import Tree
from spaseq.automaton.lazy.tree_nodes import Bounds, MatchCheck, TreeEdge, TreeState
from spaseq.automaton.lazy.window_clock import WindowClock
from spaseq.automaton.run.runs import Row
from spaseq.automaton.run.work_counts import WorkCounts

_LAST_K = 2**62
_UNMATCHED: Row = (-1, 0, 0, None, ())

_Choice: TypeAlias = tuple[float, TreeEdge, Key, Bucket, int, int]
"""(Rank, edge, join key, solutions with the key, range of those in reach)."""


class Search:
    """Searches in one partition for the matches that a solution completes, or of a negated step.

    It runs one search at a time.

    Args:
        buffers: the stored solutions, by GPM.
        cache: the outcomes of checks of earlier searches.
        clock: the current instant, and the bounds of the window.
        size: the largest number of steps.
        work: counts of the work done.
        rates: how often solutions pass checks.
        order: match the steps in this order instead of the rarest first.
    """

    __slots__ = (
        "_buffers",
        "_cache",
        "_clock",
        "_floor",
        "_order",
        "_rates",
        "_roof",
        "at",
        "rows",
        "work",
    )

    def __init__(
        self,
        buffers: Mapping[int, InputBuffer],
        cache: CheckCache,
        clock: WindowClock,
        size: int,
        work: WorkCounts,
        rates: PassRates,
        order: tuple[int, ...] | None = None,
    ) -> None:
        self._buffers, self._cache, self._clock = buffers, cache, clock
        self._floor = self._roof = clock.now
        self.work, self._rates, self._order = work, rates, order
        self.rows = [_UNMATCHED] * size
        self.at = [clock.now] * size

    def within(self, floor: Instant, roof: Instant) -> None:
        """From now on all solutions of a match lie after `floor` and before `roof`."""
        self._floor, self._roof = floor, roof

    def completions(self, tree: Tree, start: TreeEdge, row: Row) -> Iterator[None]:
        """Match all steps of a tree, the first with a solution of `now`.

        After each item, `rows` and `at` are a match.
        """
        self.work.candidates += 1
        self.rows[start.step], self.at[start.step] = row, self._clock.now
        if self._pass(start.checks):
            yield from self._extensions(tree.state(start.target))

    def exists(self, ways: Sequence[TreeState]) -> bool:
        """Whether a negated step has a match beside the steps matched so far."""
        self.work.searches += 1
        return any(True for state in ways for _ in self._extensions(state))

    def _extensions(self, state: TreeState) -> Iterator[None]:
        """Match the remaining steps of a state, in all ways."""
        if not state.edges:
            yield
            return
        choice = self._rarest(state)
        if choice is None:
            return
        _, edge, key, bucket, start, stop = choice
        checked = stop - start
        checks = edge.checks
        if edge.cached:
            passing = self._passing(edge, key)
            if passing is None:
                checks = (*edge.cached, *checks)
            else:
                self._catch_up(edge, bucket, passing)
                bucket = passing.bucket
                start, stop = bucket.between(*self._reach(edge))
        rows, at, step, work = self.rows, self.at, edge.step, self.work
        after = None
        passed = 0
        for i in range(start, stop):
            work.candidates += 1
            rows[step], at[step] = bucket.rows[i], bucket.instants[i]
            if not checks or self._pass(checks):
                passed += 1
                after = after or state.tree.state(edge.target)
                if after.edges:
                    yield from self._extensions(after)
                else:
                    yield
        if len(state.edges) > 1:
            self._rates.note(edge, checked, passed)

    def _pass(self, checks: tuple[MatchCheck, ...]) -> bool:
        for check in checks:  # noqa: SIM110 - a loop is faster, in the hottest function
            if not check.passes(self):
                return False
        return True

    # --- the choice of the next step --------------------------------------------------------------

    def _rarest(self, state: TreeState) -> _Choice | None:
        """The step of least rank; None if some step has no solution in reach.

        Steps with few solutions of any key are examined first. So a step without solutions is
        mostly seen before the solutions of a frequent step are indexed.
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
            key = tuple([rows[step][4][column] for step, column in edge.sources])
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
        return (min(edges, key=lambda e: order.index(e.step) if e.step in order else -1),)

    def _reach(self, edge: TreeEdge) -> tuple[Instant, Instant]:
        """The bounds of an edge's solutions: after the first instant, before the second."""
        bounds = edge.bounds
        high = self._high(bounds)
        return self._low(bounds), min(high, self._clock.now) if edge.not_last else high

    def _low(self, bounds: Bounds) -> Instant:
        low, at = self._floor, self.at
        for i in bounds.after:
            if at[i] > low:  # faster than a call of `max`, in the hottest loop
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

    # --- the cache --------------------------------------------------------------------------------

    def _passing(self, edge: TreeEdge, key: Key) -> CheckedRows | None:
        """The solutions that pass an edge's cached checks; None at the first request."""
        beside = tuple([self.rows[i] for i in edge.beside])
        return self._cache.lookup(edge, key, beside, lambda: self._low(edge.cached_bounds))

    def _catch_up(self, edge: TreeEdge, bucket: Bucket, passing: CheckedRows) -> None:
        """Check the solutions that have been stored since the last search."""
        start, stop = bucket.between(passing.upto, self._high(edge.cached_bounds))
        rows, at, step = self.rows, self.at, edge.step
        self.work.candidates += max(0, stop - start)
        before = len(passing.bucket.rows)
        for i in range(start, stop):
            rows[step], at[step] = bucket.rows[i], bucket.instants[i]
            if self._pass(edge.cached):
                passing.bucket.add(at[step], rows[step])
        passing.upto = self._clock.now
        self._cache.size += len(passing.bucket.rows) - before
