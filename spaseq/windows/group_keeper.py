"""The groups of one GPM on one window, kept from window event to window event.

An event is matched once. It enters its groups, and leaves them, once, whatever the number of
windows that it is in. At a close only changed groups are visited, and their aggregates are computed
only if they may pass the HAVING.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from spaseq import thresholds
from spaseq.gpm.evaluator import CurrentEvaluator, EventSolutions
from spaseq.gpm.graphs.vertical_partition import SolutionsPartition
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.limits import Limits
from spaseq.plan.query_plan import KeptGroups, QueryPlan
from spaseq.plan.window_groups import reads_around
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stateful import Stateful
from spaseq.windows.group_aggregates import ChangedGroups, Exceeding, aggregates, codes_of, tests_of
from spaseq.windows.group_rows import GroupRows, form_of
from spaseq.windows.group_tables import GroupTable, TrackedOperands
from spaseq.windows.kept_rows import KeptRows
from spaseq.windows.kernels.group_runs import MEMBERS, WIDTH, advanced
from spaseq.windows.lasting_solutions import ChangedSolutions, GroupSolutions, agreeing, as_events
from spaseq.windows.window_closes import Closes, closes_of


class GroupKeeper(Stateful):
    """The kept groups of a GPM on a window, of which `changes` are wanted: NEW, GONE, None for all.

    `exceed` is called with the time (ms) of each window event whose solutions exceed a limit, and
    with the reason.
    """

    STATE = ("_rows", "_closes", "_table", "_held", "_given", "_begun")

    def __init__(
        self,
        plan: QueryPlan,
        kept: KeptGroups,
        window: int,
        changes: frozenset[str | None],
        exceed: Callable[[int, str], None],
        limits: Limits,
        partition: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`partition` has the values of the variables of PARTITION BY."""
        self._partition, self._limits = partition, limits
        self._kept, self._changes, self._exceed = kept, changes, exceed
        operands = plan.patterns.contents[kept.content].operands or ()
        window_plan = plan.inputs.windows[window]
        self._closes = closes_of(window_plan.extent)
        self._tracked = tracked = TrackedOperands.of(kept, len(operands))
        self._ways = np.array(tracked.queues, np.int64).reshape(-1, 2)
        self._twins = np.array(tracked.twins, np.int64)
        self._rows = KeptRows(form_of(tracked))
        sums = len(operands) + len(tracked.twins)
        self._table = GroupTable(kept.columns, sums, len(tracked.queues))
        self._given = GroupRows(plan, kept, window, self._table, tracked)
        pattern = plan.patterns.gpms[kept.gpm].pattern
        self._tests = tests_of(pattern, kept, tracked)
        self._moved = np.zeros(3, np.int64)  # the next row to enter, to leave; the last mark
        self._held = GroupSolutions(changes)
        self._begun = False  # whether there was a window event
        self._reads_knowledge = reads_around(pattern)
        self._looks_again = False  # whether the knowledge base has changed since

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        return self._closes.next_due

    @property
    def is_idle(self) -> bool:
        """Whether it is as good as a new one."""
        return not len(self._rows) and not len(self._held) and self.next_due is None

    def advance(
        self, rows: SolutionBatch, until: int, evaluator: CurrentEvaluator
    ) -> list[ChangedSolutions]:
        """The result of the GPM on the window events up to a time (ms), in order.

        `rows` are rows of the content, in any order; no later row is at or before `until`.
        """
        new = self._given.append(rows, self._rows)
        closes = self._closes.after(self._rows, new, until)
        given = list[ChangedSolutions]()
        if len(closes):
            changed = self._changed(closes)
            for first, end, some in _together(changed, len(closes)):
                if not len(some) and None not in self._changes:
                    continue  # nothing is new or gone
                solutions, lexicon = self._evaluated(some, closes, evaluator)
                heads = some.head[:, :2] - (first, 0)
                event, columns = self._held.advance(end - first, heads, solutions, lexicon)
                at = first + event
                sizes = self._rows.events_in(closes.enter[at], closes.leave[at])
                given.append(ChangedSolutions(closes, at, sizes, columns, lexicon))
            self._begun, self._looks_again = True, False
        self._forget()
        return given

    def look_again(self) -> None:
        """Visit all groups at the next window event, as the knowledge base has changed."""
        self._looks_again = self._reads_knowledge

    def _changed(self, closes: Closes) -> ChangedGroups:
        """The groups that change at some window events, without those that surely do not pass."""
        rows, table, arrays = self._rows, self._table, self._rows.arrays
        first = int(not self._kept.group.keys and not self._begun)
        if self._looks_again:
            first = len(table)
        moved = int(closes.enter[-1] + closes.leave[-1] - self._moved[:2].sum()) + first
        out = (
            np.empty((moved, 5), np.int64),
            np.empty((moved, len(table.numbers), WIDTH), np.int64),
            np.empty((moved, len(self._ways)), np.int64),
        )
        made = advanced(
            self._moved,
            closes.enter,
            closes.leave,
            rows.base,
            first,
            not self._kept.group.keys,
            (arrays["group"], arrays["following"]),
            (arrays["kind"], arrays["whole"], arrays["shift"], arrays["value"]),
            (self._ways, table.ends, arrays["after"], arrays["before"]),
            (self._twins, arrays["twin"], arrays["again"]),
            (table.counts, table.numbers, table.held),
            self._tests,
            np.empty(max(1, len(table)), np.int64),
            out,
        )
        return ChangedGroups(*(column[:made] for column in out))

    # --- solutions --------------------------------------------------------------------------------

    def _evaluated(
        self, changed: ChangedGroups, closes: Closes, evaluator: CurrentEvaluator
    ) -> tuple[EventSolutions, Lexicon]:
        """(the solutions of changed groups, their terms)."""
        passing = np.flatnonzero(changed.head[:, 4])
        index, exceeding = self._as_events(changed.take(passing), closes)
        made = evaluator()
        solutions = agreeing(made.evaluate(index), index.lexicon, self._partition)
        exceeding |= made.take_exceeding()
        for row, reason in sorted(exceeding.items()):
            self._exceed(int(index.batch.time[row]), reason)
        kept = ~np.isin(solutions.event, [*exceeding])
        columns = {v: codes[kept] for v, codes in solutions.columns.items()}
        kept_solutions = EventSolutions(passing[solutions.event[kept]], columns, index.lexicon)
        return kept_solutions, index.lexicon

    def _as_events(
        self, changed: ChangedGroups, closes: Closes
    ) -> tuple[SolutionsPartition, Exceeding]:
        """(groups as events, each with its keys and aggregates as a solution; those that exceed)"""
        group, exceeding = self._kept.group, Exceeding()
        values = aggregates(self._kept, self._tracked, changed, self._rows, self._limits, exceeding)
        lexicon, columns = codes_of(values)
        used, which = np.unique(changed.head[:, 1], return_inverse=True)
        keys = [self._table.keys[number] for number in used.tolist()]
        texts = ([key[i] for key in keys] for i in range(len(group.keys)))
        codes = [encoded(lexicon, column)[which] for column in texts]
        names = (*group.keys, *(name for name, _ in group.aggregates))
        given = dict(zip(names, [*codes, *columns], strict=True))
        return as_events(closes, changed.head[:, 0], group, given, lexicon), exceeding

    # --- state ------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop rows that have left, and groups without rows."""
        rows, table = self._rows, self._table
        rows.drop(int(self._moved[1]))
        self._given.forget(rows.first, None)
        size = len(table)
        used = table.counts[:size, MEMBERS] > 0
        used[table.held[:size] > 0] = True
        if 4 * np.count_nonzero(used) > size:  # few are renumbered often
            return
        waiting = rows.column("group")
        used[waiting[waiting >= 0]] = True
        places = table.without_empty(used)
        if places is not None:
            waiting[:] = np.append(places, np.int32(-1))[waiting]
            self._held.renumber(places)
            self._given.forget(rows.first, places)

    def snapshot(self) -> tuple[Any, ...]:
        """The state: the kept rows, their positions, and the groups given out."""
        seen = self._table.held[: len(self._table)].copy()
        return super().snapshot(), self._moved[:2].tolist(), seen

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on from a state: the rows in the window enter their groups again."""
        kept, (entered, left), seen = state
        super().restore(kept)
        self._moved[:2] = left
        none = np.empty(0, np.int64)
        again = Closes(none, none.astype(np.int32), none, np.array([entered]), np.array([left]))
        self._changed(again)
        self._table.held[: len(seen)] = seen
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
