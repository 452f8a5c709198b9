"""The groups of one GPM on one window, kept from window event to window event.

An event is matched once. It enters its groups, and leaves them, once, whatever the number of
windows that it is in. At a close only changed groups are visited, and their aggregates are computed
only if they may pass the HAVING.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.evaluator import CurrentEvaluator, EventSolutions
from spaseq.gpm.graphs.vertical_partition import SolutionsPartition
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.plan.pattern_plan import KeptGroups
from spaseq.plan.window_groups import reads_around
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.windows.group_aggregates import ChangedGroups, Exceeding, aggregates, codes_of, tests_of
from spaseq.windows.group_rows import GroupRows, TwinRows, form_of
from spaseq.windows.group_tables import GroupTable, TrackedOperands
from spaseq.windows.kept_rows import LINKS
from spaseq.windows.kernels.group_runs import HEAD, MEMBERS, NO_TERM, TAIL, WIDTH, advanced
from spaseq.windows.kernels.window_bounds import LOOK
from spaseq.windows.lasting_solutions import ChangedSolutions, GroupSolutions, agreeing, as_events
from spaseq.windows.window_closes import Closes
from spaseq.windows.window_keeper import KeptWindow, WindowKeeper
from spaseq.windows.window_rows import renumbered


class GroupKeeper(WindowKeeper):
    """The kept groups of a GPM on a window."""

    parts: Sequence[GroupTable | TwinRows]
    held: GroupSolutions

    def __init__(self, window: KeptWindow, kept: KeptGroups) -> None:
        plan, self._kept = window.plan, kept
        operands = plan.patterns.contents[kept.content].operands or ()
        self._tracked = tracked = TrackedOperands.of(kept, len(operands))
        self._ways = np.array(tracked.queues, np.int64).reshape(-1, 2)
        self._twins = np.array(tracked.twins, np.int64)
        partition = plan.sequence.own_partition
        sums = len(operands) + len(tracked.twins)
        self._table = GroupTable((*partition, *kept.columns), sums, len(tracked.queues))
        own = None if kept.columns else self._table  # then a group is a partition
        super().__init__(window, kept, form_of(tracked), own)
        self._given = GroupRows(plan, kept, self.rows, self._table, tracked)
        self.parts = [*([self._table] if kept.columns else ()), *self._given.twins.values()]
        pattern = plan.patterns.gpms[kept.gpm].pattern
        self._tests = tests_of(pattern, kept, tracked)
        self._mark = 0  # the last one in the kernel
        self.held = GroupSolutions(window.changes)
        self._reads_knowledge = reads_around(pattern)

    def append(self, rows: SolutionBatch) -> int:
        return self._given.append(rows)

    def changed(self, closes: Closes, evaluator: CurrentEvaluator) -> list[ChangedSolutions]:
        sizes, moved = self.rows.sizes(closes)
        changed, given = self._changed(closes, moved), list[ChangedSolutions]()
        for first, end, some in _together(changed, len(closes)):
            partition = closes.partition[first:end]
            if not len(some) and not self.held.last_in(partition):
                continue
            solutions, lexicon = self._evaluated(some, closes, evaluator)
            heads = some.head[:, :2] - (first, 0)
            event, columns = self.held.advance(partition, heads, solutions, lexicon)
            at = first + event
            given.append(ChangedSolutions(closes, at, sizes[at], columns, lexicon))
        self._forget()
        return given

    def look_again(self) -> None:
        """Visit all groups at their next window event, as the knowledge base has changed."""
        if self._reads_knowledge:
            self.rows.lists[LOOK, : len(self.rows.partitions)] = 1

    def _changed(self, closes: Closes, moved: int) -> ChangedGroups:
        """The groups that change at some window events, without those that surely do not pass.

        `moved` is how many rows enter and leave.
        """
        rows, table, arrays = self.rows, self._table, self.rows.arrays
        visits, visited = self._visits(closes)
        room = moved + visited
        out = (
            np.empty((room, 5), np.int64),
            np.empty((room, len(table.numbers), WIDTH), np.int64),
            np.empty((room, len(self._ways)), np.int64),
        )
        made = advanced(
            self._mark,
            rows.lists,
            (closes.partition, closes.enter, closes.leave),
            rows.base,
            visits,
            not self._kept.columns,
            (arrays["group"], arrays[LINKS], arrays["next"]),
            (arrays["kind"], arrays["whole"], arrays["shift"], arrays["value"]),
            (self._ways, table.ends, arrays["after"], arrays["before"]),
            (self._twins, arrays["twin"], arrays["again"]),
            (table.counts, table.numbers, table.held),
            self._tests,
            np.empty(max(1, len(table)), np.int64),
            out,
        )
        self._mark += len(closes)
        return ChangedGroups(*(column[:made] for column in out))

    def _visits(self, closes: Closes) -> tuple[tuple[Int64s, Int64s], int]:
        """(the groups of each partition, as the kernel wants them; the most that it visits)."""
        look, none = self.rows.lists[LOOK], np.empty(0, np.int64)
        if not self._kept.columns:
            return (none, none), int(np.count_nonzero(look[closes.partition]))
        if not (look > 0).any():
            return (none, none), 0
        owners = self.rows.partitions_of_keys(self._table.keys)
        order = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[order], np.arange(len(look) + 1))
        return (order, starts), len(owners)

    # --- solutions --------------------------------------------------------------------------------

    def _evaluated(
        self, changed: ChangedGroups, closes: Closes, evaluator: CurrentEvaluator
    ) -> tuple[EventSolutions, Lexicon]:
        """(the solutions of changed groups, their terms)."""
        passing = np.flatnonzero(changed.head[:, 4])
        index, exceeding = self._as_events(changed.take(passing), closes)
        made = evaluator()
        partition = closes.partition[changed.head[passing, 0]]
        codes = self.rows.partition_codes(partition, index.lexicon)
        solutions = agreeing(made.evaluate(index), index.lexicon, codes)
        exceeding |= made.take_exceeding()
        for row, reason in sorted(exceeding.items()):
            self._window.exceed(int(index.batch.time[row]), reason)
        kept = ~np.isin(solutions.event, [*exceeding])
        columns = {v: codes[kept] for v, codes in solutions.columns.items()}
        kept_solutions = EventSolutions(passing[solutions.event[kept]], columns, index.lexicon)
        return kept_solutions, index.lexicon

    def _as_events(
        self, changed: ChangedGroups, closes: Closes
    ) -> tuple[SolutionsPartition, Exceeding]:
        """(groups as events, each with its keys and aggregates as a solution; those that exceed)"""
        group, exceeding = self._kept.group, Exceeding()
        values = aggregates(
            self._kept, self._tracked, changed, self.rows, self._window.limits, exceeding
        )
        lexicon, columns = codes_of(values)
        used, which = np.unique(changed.head[:, 1], return_inverse=True)
        keys = [self._table.keys[number] for number in used.tolist()]
        first = len(self.rows.variables)
        texts = ([key[first + i] for key in keys] for i in range(len(group.keys)))
        codes = [encoded(lexicon, column)[which] for column in texts]
        names = (*group.keys, *(name for name, _ in group.aggregates))
        given = dict(zip(names, [*codes, *columns], strict=True))
        return as_events(closes, changed.head[:, 0], group, given, lexicon), exceeding

    # --- state ------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop rows that have left, groups without rows, and partitions without anything."""
        rows = self.rows
        rows.drop_left()
        self._given.forget()
        self._without_left()
        if self._kept.columns:
            self._without_empty()
        places = rows.without_idle(self.held.has)
        if places is not None:
            self.held.renumber_partitions(places)
            if not self._kept.columns:
                self._renumber_groups(places)

    def _without_left(self, is_needed: bool = False) -> None:
        """Drop the rows that have left, if there are many or it is needed."""
        rows, table, first = self.rows, self._table, self.rows.first
        places = rows.without_left(is_needed)
        if places is None:
            return
        for column, more in ((LINKS, 0), ("twin", 0), ("after", 1), ("before", 1)):
            numbers = rows.column(column)
            unknown = numbers == NO_TERM
            numbers[:] = renumbered(numbers - more, places, first) + more
            numbers[unknown] = NO_TERM
        rows_of_group = table.counts[:, HEAD : TAIL + 1]
        rows_of_group[:] = renumbered(rows_of_group, places, first)
        table.ends[:] = renumbered(table.ends - 1, places, first) + 1
        self._given.renumber_rows(places, first)

    def _without_empty(self) -> None:
        """Drop the groups without rows, if there are many."""
        table, size = self._table, len(self._table)
        if size <= thresholds.current.kept_groups:
            return
        used = (table.counts[:size, MEMBERS] > 0) | (table.held[:size] > 0)
        if 4 * np.count_nonzero(used) > size:  # few are renumbered often
            return
        waiting = self.rows.column("group")
        used[waiting[waiting >= 0]] = True
        places = table.without_empty(used)
        if places is not None:
            self._renumber_groups(places)

    def _renumber_groups(self, places: Int32s) -> None:
        self.held.renumber_groups(places)
        group = self.rows.column("group")
        group[:] = np.append(places, np.int32(-1))[group]
        self._given.renumber_groups(places)

    def _before_snapshot(self) -> None:
        self._without_left(is_needed=True)

    def _after_restore(self) -> None:
        """The rows in the window enter their groups again."""
        rows, held = self.rows, self._table.held.copy()
        look = rows.lists[LOOK].copy()
        again = rows.entering_again()
        self._changed(again, len(rows))
        rows.lists[LOOK], self._table.held[:] = look, held
        self.look_again()


def _together(changed: ChangedGroups, events: int) -> Iterator[tuple[int, int, ChangedGroups]]:
    """(first window event, the one after the last, the changes at them) for all in order."""
    first = start = 0
    heads, together = changed.head[:, 0], thresholds.current.changed_groups
    while start + together < len(changed):
        end = int(np.searchsorted(heads, max(heads[start] + 1, heads[start + together])))
        yield first, int(heads[end - 1]) + 1, changed.part(start, end)
        first, start = int(heads[end - 1]) + 1, end
    yield first, events, changed.part(start, len(changed))
