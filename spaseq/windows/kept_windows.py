"""The kept groups or joins of GPMs on windows, in all partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from spaseq import thresholds
from spaseq.gpm.evaluator import CurrentEvaluator
from spaseq.gpm.graphs.vertical_partition import ScopedTerms
from spaseq.gpm.solution_rows import SolutionRows, without_private
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.limits import Limits
from spaseq.plan.query_plan import KeptGroups, KeptJoin, PanesExtent, QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.stateful import Stateful
from spaseq.windows.group_keeper import GroupKeeper
from spaseq.windows.group_tables import Key
from spaseq.windows.join_keeper import JoinKeeper
from spaseq.windows.lasting_solutions import ChangedSolutions
from spaseq.windows.window_closes import Closes
from spaseq.windows.window_events import WindowGraphs
from spaseq.windows.window_runs import EVER

Exceed = Callable[[int, int, str], None]
"""It is called with a window, the time (ms) of one of its events, and the limit that it exceeds."""


class KeptWindow(Stateful):
    """The keeper of a GPM on a window, and rows that wait for it."""

    STATE = ("_keeper",)

    def __init__(
        self,
        plan: QueryPlan,
        kept: KeptGroups | KeptJoin,
        window: int,
        changes: frozenset[str | None],
        exceed: Exceed,
        limits: Limits,
        counts: bool,
    ) -> None:
        """`counts`: the sequence counts the window events, also those without solutions."""
        self.gpm, self._window, self._plan = kept.gpm, window, plan
        self._counts, self._graphs = counts, WindowGraphs(plan)
        given = window, changes, partial(exceed, window), limits
        self._keeper: GroupKeeper | JoinKeeper = (
            JoinKeeper(plan, kept, *given)
            if isinstance(kept, KeptJoin)
            else GroupKeeper(plan, kept, *given)
        )
        numbers = [
            plan.patterns.number_of(c, bare) for c in kept.contents for bare in (False, True)
        ]
        self._numbers = numbers
        self._is_regular = isinstance(plan.inputs.windows[window].extent, PanesExtent)
        self._waiting: list[SolutionBatch] = []
        self._until = -EVER

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        return self._keeper.next_due

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
        plan, due = self._plan, self.next_due
        all_rows = SolutionBatch.concat([*self._waiting, rows], plan.patterns.columns)
        self._waiting = []
        if not len(all_rows) and (due is None or due > self._until):
            return []
        changed = self._keeper.advance(all_rows, self._until, evaluator)
        batches = [self._rows(self.gpm, each) for each in changed if len(each.event)]
        if self._counts and self._keeper.closed is not None and len(self._keeper.closed[0]):
            batches.append(self._rows(BARE, self._closed(*self._keeper.closed)))
        return batches

    def _rows(self, gpm: int, changed: ChangedSolutions) -> SolutionBatch:
        plan = self._plan
        index, solutions = self._graphs.of_solutions(self._window, changed)
        made = SolutionRows(plan, len(plan.inputs.streams) + self._window, index)
        made.add(gpm, without_private(solutions, plan.patterns.gpms[self.gpm].private))
        return made.batch()

    def _closed(self, closes: Closes, keys: Sequence[Key]) -> ChangedSolutions:
        """The last window events, each with the values of PARTITION BY as its only solution."""
        lexicon = Lexicon(ScopedTerms([]))
        partition = enumerate(self._plan.sequence.own_partition)
        columns = {v: encoded(lexicon, [key[i] for key in keys]) for i, v in partition}
        events = np.arange(len(closes), dtype=np.int64)
        return ChangedSolutions(closes, events, np.zeros(len(closes), np.int64), columns, lexicon)

    def look_again(self) -> None:
        """The knowledge base has changed."""
        if isinstance(self._keeper, GroupKeeper):
            self._keeper.look_again()

    def settle(self, evaluator: CurrentEvaluator) -> None:
        """Take the rows that wait, before a snapshot."""
        if self._waiting:
            self._advanced(SolutionBatch.empty(self._plan.patterns.columns), evaluator)


def kept_windows(plan: QueryPlan, exceed: Exceed, limits: Limits) -> Sequence[KeptWindow]:
    """The kept groups and joins of all GPMs, by window."""
    windows, counted = list[KeptWindow](), set[int]()
    for kept in plan.patterns.kept:
        changes: dict[int, set[str | None]] = {}
        for source in plan.patterns.gpms[kept.gpm].windows:
            changes.setdefault(source.window, set()).add(source.change)
        for window, wanted in changes.items():
            counts = plan.sequence.needs_instants and window not in counted
            counted.add(window)
            windows.append(
                KeptWindow(plan, kept, window, frozenset(wanted), exceed, limits, counts)
            )
    return windows
