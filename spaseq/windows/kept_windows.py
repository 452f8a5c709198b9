"""The kept groups or joins of GPMs on windows, in all partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from spaseq import thresholds
from spaseq.gpm.evaluator import CurrentEvaluator
from spaseq.gpm.solution_rows import SolutionRows, without_private
from spaseq.limits import Limits
from spaseq.plan.query_plan import KeptGroups, KeptJoin, PanesExtent, QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stateful import Parts, Stateful
from spaseq.windows.group_keeper import GroupKeeper
from spaseq.windows.join_keeper import JoinKeeper
from spaseq.windows.window_events import WindowGraphs
from spaseq.windows.window_runs import EVER

Key = tuple[str, ...]
Keeper = GroupKeeper | JoinKeeper

Exceed = Callable[[int, int, str], None]
"""It is called with a window, the time (ms) of one of its events, and the limit that it exceeds."""


class KeptWindow(Stateful):
    """A keeper for each partition that has events; there is one without PARTITION BY."""

    STATE = ("_keepers",)

    def __init__(
        self,
        plan: QueryPlan,
        kept: KeptGroups | KeptJoin,
        window: int,
        changes: frozenset[str | None],
        exceed: Exceed,
        limits: Limits,
    ) -> None:
        self.gpm, self._window, self._plan = kept.gpm, window, plan
        self._graphs = WindowGraphs(plan)
        exceed_window = partial(exceed, window)
        if isinstance(kept, KeptJoin):
            self._made: Callable[[Mapping[str, str]], Keeper] = partial(
                JoinKeeper, plan, kept, window, changes, exceed_window, limits
            )
        else:
            self._made = partial(GroupKeeper, plan, kept, window, changes, exceed_window, limits)
        self._partition = plan.sequence.own_partition
        numbers = [
            plan.patterns.number_of(c, bare) for c in kept.contents for bare in (False, True)
        ]
        self._numbers = numbers
        self._keepers = Parts(self._keeper)
        self._is_regular = isinstance(plan.inputs.windows[window].extent, PanesExtent)
        self._waiting: list[SolutionBatch] = []
        self._until = -EVER

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        due = (keeper.next_due for keeper in self._keepers.values())
        return min((time for time in due if time is not None), default=None)

    def advance(
        self, rows: SolutionBatch, until: int, evaluator: CurrentEvaluator
    ) -> list[SolutionBatch]:
        """The GPM's solutions on the window events up to a time (ms); see `GroupKeeper.advance`."""
        self._until = max(self._until, until)
        is_own = np.logical_or.reduce([rows.gpm == number for number in self._numbers])
        window_rows = rows if is_own.all() else rows.take(np.flatnonzero(is_own))
        if self._may_wait(window_rows):
            self._waiting += [window_rows] if len(window_rows) else []
            return []
        return self._advanced(window_rows, evaluator)

    def _may_wait(self, rows: SolutionBatch) -> bool:
        """Whether rows may wait for others: no window closes before they are in it."""
        due = self.next_due
        if not self._is_regular or due is None or self._until >= due:
            return False
        return (
            len(self._waiting) < thresholds.current.waiting_pushes and not (rows.time >= due).any()
        )

    def _advanced(self, rows: SolutionBatch, evaluator: CurrentEvaluator) -> list[SolutionBatch]:
        """The result of `advance`, after the waiting rows have been taken."""
        all_rows = SolutionBatch.concat([*self._waiting, rows], self._plan.patterns.columns)
        self._waiting, until = [], self._until
        none = all_rows.take(slice(0, 0))
        given = dict(self._by_partition(all_rows))
        for key, keeper in self._keepers.items():
            due = keeper.next_due
            if key not in given and due is not None and due <= until:
                given[key] = none
        batches = list[SolutionBatch]()
        for key, some in given.items():
            keeper = self._keepers[key]
            batches += self._rows(keeper, some, until, evaluator)
            if self._partition and keeper.is_idle:
                del self._keepers[key]
        return batches

    def _keeper(self, key: Key) -> Keeper:
        return self._made(dict(zip(self._partition, key, strict=True)))

    def _by_partition(self, rows: SolutionBatch) -> Iterator[tuple[Key, SolutionBatch]]:
        """(partition, its rows in their order)."""
        if not len(rows):
            return
        if not self._partition:
            yield (), rows
            return
        which = np.zeros(len(rows), np.int64)
        for variable in self._partition:
            column = rows.values[variable]
            which = which * (len(column.terms) + 1) + column.codes + 1
            _, which = np.unique(which, return_inverse=True)
        order = np.argsort(which, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(which[order]) > 0))
        texts = [rows.texts(v, order[starts]) for v in self._partition]
        for number, some in enumerate(np.split(order, starts[1:])):
            key = tuple(text for table in texts if (text := table[number]) is not None)
            yield key, rows.take(some)

    def _rows(
        self, keeper: Keeper, rows: SolutionBatch, until: int, evaluator: CurrentEvaluator
    ) -> Iterator[SolutionBatch]:
        plan = self._plan
        private = plan.patterns.gpms[self.gpm].private
        for changed in keeper.advance(rows, until, evaluator):
            if len(changed.event):
                index, solutions = self._graphs.of_solutions(self._window, changed)
                made = SolutionRows(plan, len(plan.inputs.streams) + self._window, index)
                made.add(self.gpm, without_private(solutions, private))
                yield made.batch()

    def look_again(self) -> None:
        """The knowledge base has changed."""
        for keeper in self._keepers.values():
            if isinstance(keeper, GroupKeeper):
                keeper.look_again()

    def settle(self, evaluator: CurrentEvaluator) -> None:
        """Take the rows that wait, before a snapshot."""
        if self._waiting:
            self._advanced(SolutionBatch.empty(self._plan.patterns.columns), evaluator)


def kept_windows(plan: QueryPlan, exceed: Exceed, limits: Limits) -> Sequence[KeptWindow]:
    """The kept groups and joins of all GPMs, by window."""
    windows = []
    for kept in plan.patterns.kept:
        changes: dict[int, set[str | None]] = {}
        for source in plan.patterns.gpms[kept.gpm].windows:
            changes.setdefault(source.window, set()).add(source.change)
        for window, wanted in changes.items():
            windows.append(KeptWindow(plan, kept, window, frozenset(wanted), exceed, limits))
    return windows
