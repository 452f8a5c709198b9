"""What is kept of a GPM on a window in all partitions, from window event to window event."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from spaseq import thresholds
from spaseq.gpm.evaluator import CurrentEvaluator
from spaseq.gpm.graphs.vertical_partition import ScopedTerms
from spaseq.gpm.solution_rows import SolutionRows, without_private
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.limits import Limits
from spaseq.plan.pattern_plan import KeptGroups, KeptJoin, PanesExtent
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.records import record
from spaseq.stateful import Stateful
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.kept_rows import Form
from spaseq.windows.lasting_solutions import ChangedSolutions
from spaseq.windows.window_closes import Closes
from spaseq.windows.window_events import WindowGraphs
from spaseq.windows.window_rows import WindowRows
from spaseq.windows.window_runs import EVER


@record
class KeptWindow:
    """A window of a plan of which something is kept.

    Attributes:
        changes: the wanted ones: NEW, GONE, None for all.
        exceed: called with the time (ms) of each window event whose solutions exceed a limit, and
            with the reason.
        counts: whether the sequence counts the window events, also those without solutions.
    """

    plan: QueryPlan
    window: int
    changes: frozenset[str | None]
    exceed: Callable[[int, str], None]
    limits: Limits
    counts: bool


class WindowKeeper(Stateful, ABC):
    """The rows of a GPM on a window, those that wait for others, and the solutions that it holds.

    Attributes:
        gpm: the number of the GPM.
        parts: numbers of values and terms of the rows.
        held: the solutions.
    """

    STATE = ("rows", "parts", "held")

    def __init__(
        self,
        window: KeptWindow,
        kept: KeptGroups | KeptJoin,
        form: Form,
        partitions: GroupTable | None = None,
    ) -> None:
        self.gpm, self._window, plan = kept.gpm, window, window.plan
        self.rows = WindowRows(plan, window.window, form, partitions)
        self.parts: Sequence[Stateful] = ()
        self._graphs = WindowGraphs(plan)
        self._numbers = [
            plan.patterns.number_of(c, bare) for c in kept.contents for bare in (False, True)
        ]
        self._is_regular = isinstance(plan.inputs.windows[window.window].extent, PanesExtent)
        self._waiting: list[SolutionBatch] = []
        self._until = -EVER

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        return self.rows.next_due

    def advance(
        self, rows: SolutionBatch, until: int, evaluator: CurrentEvaluator
    ) -> list[SolutionBatch]:
        """The GPM's solutions on the window events up to a time (ms), in order by partition.

        Rows of the contents may be in any order; no later row is at or before `until`.
        """
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
        plan, due = self._window.plan, self.next_due
        all_rows = SolutionBatch.concat([*self._waiting, rows], plan.patterns.columns)
        self._waiting = []
        if not len(all_rows) and (due is None or due > self._until):
            return []
        closes = self.rows.closes_after(self.append(all_rows), self._until)
        if not len(closes):
            return []
        batches = [self._batch(BARE, self._closed(closes))] if self._window.counts else []
        changed = self.changed(closes, evaluator)
        return [*(self._batch(self.gpm, each) for each in changed if len(each.event)), *batches]

    @abstractmethod
    def append(self, rows: SolutionBatch) -> int:
        """Append rows of the contents; how many there are of the window's streams."""

    @abstractmethod
    def changed(self, closes: Closes, evaluator: CurrentEvaluator) -> list[ChangedSolutions]:
        """The wanted solutions at window events."""

    def _batch(self, gpm: int, changed: ChangedSolutions) -> SolutionBatch:
        plan, window = self._window.plan, self._window.window
        index, solutions = self._graphs.of_solutions(window, changed)
        made = SolutionRows(plan, len(plan.inputs.streams) + window, index)
        made.add(gpm, without_private(solutions, plan.patterns.gpms[self.gpm].private))
        return made.batch()

    def _closed(self, closes: Closes) -> ChangedSolutions:
        """Window events, each with the values of PARTITION BY as its only solution."""
        lexicon = Lexicon(ScopedTerms([]))
        columns = self.rows.partition_codes(closes.partition, lexicon)
        events = np.arange(len(closes), dtype=np.int64)
        return ChangedSolutions(closes, events, np.zeros(len(closes), np.int64), columns, lexicon)

    def look_again(self) -> None:
        """The knowledge base has changed."""

    def settle(self, evaluator: CurrentEvaluator) -> None:
        """Take the rows that wait, before a snapshot."""
        if self._waiting:
            self._advanced(SolutionBatch.empty(self._window.plan.patterns.columns), evaluator)
