"""The groups of one GPM on one window, kept from window event to window event.

An event is matched once. It enters its groups, and leaves them, once, whatever the number of
windows that it is in. At a close only the groups are looked at that changed, and their aggregates
are computed only if they may pass the HAVING.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from spaseq import thresholds
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.window_partition import SolutionsPartition
from spaseq.limits import Limits
from spaseq.plan.query_plan import KeptGroups, QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.windows.group_aggregates import ChangedGroups, Exceeding, aggregate_texts
from spaseq.windows.group_rows import GroupRows, form_of
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.group_tests import tests_of
from spaseq.windows.kept_rows import KeptRows
from spaseq.windows.kernels.group_runs import BOTH, OTHER, advanced
from spaseq.windows.lasting_solutions import ChangedSolutions, Solution
from spaseq.windows.solution_events import as_events, solutions_of
from spaseq.windows.window_closes import Closes, closes_of


class GroupKeeper:
    """The kept groups of a GPM on a window, of which `changes` are wanted: NEW, GONE, None for all.

    `exceed` is called with the time (ms) of each window event whose solutions exceed a limit, and
    with the reason.
    """

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
        own = plan.inputs.windows[window]
        self._closes = closes_of(own.extent)
        self._rows = KeptRows(form_of(len(operands)))
        self._table = GroupTable(kept.columns, len(operands))
        self._given = GroupRows(plan, kept, window, self._table)
        pattern = plan.patterns.gpms[kept.gpm].pattern
        self._tests = tests_of(pattern, kept)
        self._entered, self._left = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._mark = np.zeros(1, np.int64)
        self._held: dict[int, tuple[Solution, ...]] = {}  # solutions by group
        self._begun = False  # whether there was a window event

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        return self._closes.next_due

    @property
    def is_idle(self) -> bool:
        """Whether it is as good as a new one."""
        return not len(self._rows) and not self._held and self.next_due is None

    def advance(self, rows: SolutionBatch, until: int, evaluator: GpmEvaluator) -> ChangedSolutions:
        """What the GPM gives on the window events up to a time (ms), in order of these.

        `rows` are those of the content, in any order; none come at or before `until` any more.
        """
        new = self._given.append(rows, self._rows)
        closes = self._closes.after(self._rows, new, until)
        events = self._rows.events_in(closes.enter, closes.leave)
        given: list[tuple[int, Solution]] = []
        variables: Sequence[str] = ()
        if len(closes):
            changed = self._changed(closes)
            variables, given = self._solutions(changed, closes, evaluator)
            self._begun = True
        self._forget()
        return ChangedSolutions(closes, events, variables, given)

    def _changed(self, closes: Closes) -> ChangedGroups:
        """The groups that change at some window events, but for those that surely do not pass."""
        rows, table = self._rows, self._table
        operands = table.sums[0].shape[0]
        moved = int(closes.enter[-1] - self._entered[0] + closes.leave[-1] - self._left[0]) + 1
        out = (
            np.empty((moved, 5), np.int64),
            np.empty((moved, operands, BOTH), np.int64),
            np.empty((moved, operands, OTHER + 1), np.int64),
        )
        made = advanced(
            self._entered,
            self._left,
            closes.enter,
            closes.leave,
            rows.base,
            not self._kept.group.keys and not self._begun,
            not self._kept.group.keys,
            (rows.arrays["group"], rows.arrays["following"]),
            (rows.arrays["kind"], rows.arrays["whole"], rows.arrays["shift"]),
            table.counts,
            table.sums,
            (table.held, self._mark),
            self._tests,
            np.empty(max(1, len(table)), np.int64),
            out,
        )
        return ChangedGroups(*(own[:made] for own in out))

    # --- solutions --------------------------------------------------------------------------------

    def _solutions(
        self, changed: ChangedGroups, closes: Closes, evaluator: GpmEvaluator
    ) -> tuple[Sequence[str], list[tuple[int, Solution]]]:
        """(variables, (window event, solution) pairs that the GPM gives)."""
        given: list[tuple[int, Solution]] = []
        variables: Sequence[str] = ()
        every = None in self._changes
        reached = 0  # the first window event whose solutions have not been given
        together = thresholds.current.changed_groups
        for start in range(0, max(1, len(changed)), together):
            some = changed.part(start, start + together)
            variables, found = self._evaluated(some, closes, evaluator)
            heads = some.head[:, :2].tolist()
            for (event, group), now in zip(heads, found, strict=True):
                while every and reached < event:
                    given += self._all(reached)
                    reached += 1
                given += self._change(event, group, now)
        while every and reached < len(closes):
            given += self._all(reached)
            reached += 1
        return variables, given

    def _all(self, event: int) -> Iterator[tuple[int, Solution]]:
        return ((event, solution) for own in self._held.values() for solution in own)

    def _change(
        self, event: int, group: int, now: tuple[Solution, ...]
    ) -> Iterator[tuple[int, Solution]]:
        """What is wanted of a group's change: solutions that are new, or gone."""
        before = self._held.get(group, ())
        if now == before:
            return
        if now:
            self._held[group] = now
        else:
            del self._held[group]
        if "NEW" in self._changes and None not in self._changes:
            known = frozenset(before)
            yield from ((event, solution) for solution in now if solution not in known)
        if "GONE" in self._changes:
            known = frozenset(now)
            yield from ((event, solution) for solution in before if solution not in known)

    def _evaluated(
        self, changed: ChangedGroups, closes: Closes, evaluator: GpmEvaluator
    ) -> tuple[Sequence[str], list[tuple[Solution, ...]]]:
        """(variables, the solutions of each changed group)."""
        found: list[tuple[Solution, ...]] = [()] * len(changed)
        passing = np.flatnonzero(changed.head[:, 4])
        index, exceeding = self._as_events(changed.take(passing), closes)
        solutions = evaluator.evaluate(index)
        exceeding |= evaluator.take_exceeding()
        for row, reason in sorted(exceeding.items()):
            self._exceed(int(index.batch.time[row]), reason)
        variables = sorted({*solutions.columns, *self._partition})
        for row, own in self._by_event(solutions, variables):
            if row not in exceeding:
                found[passing[row]] = own
        return variables, found

    def _by_event(
        self, found: EventSolutions, variables: Sequence[str]
    ) -> Iterator[tuple[int, tuple[Solution, ...]]]:
        """(event, its distinct solutions in the partition) of the events that have some."""
        by_event: dict[int, dict[Solution, None]] = {}
        places, solutions = solutions_of(found, variables, self._partition)
        for event, solution in zip(places.tolist(), solutions, strict=True):
            by_event.setdefault(event, {})[solution] = None
        for event, own in by_event.items():
            yield event, tuple(own)

    def _as_events(
        self, changed: ChangedGroups, closes: Closes
    ) -> tuple[SolutionsPartition, Exceeding]:
        """(groups as events, each with its keys and aggregates as a solution; those that exceed)"""
        group = self._kept.group
        exceeding = Exceeding()
        keys = [self._table.keys[i] for i in changed.head[:, 1].tolist()]
        texts: list[list[str | None]] = [[key[i] for key in keys] for i in range(len(group.keys))]
        texts += aggregate_texts(self._kept, changed, self._rows, self._limits, exceeding)
        names = (*group.keys, *(name for name, _ in group.aggregates))
        columns = dict(zip(names, texts, strict=True))
        return as_events(closes, changed.head[:, 0], group, columns), exceeding

    # --- state ------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Let go of the rows that have left, and of groups without rows."""
        rows, table = self._rows, self._table
        rows.drop(int(self._left[0]))
        size = len(table)
        used = table.counts[0][:size] > 0
        used[table.held[:size] > 0] = True
        if 4 * np.count_nonzero(used) > size:  # few are renumbered often
            return
        waiting = rows.column("group")
        used[waiting[waiting >= 0]] = True
        places = table.without_empty(used)
        if places is not None:
            waiting[:] = np.append(places, np.int32(-1))[waiting]
            self._held = {int(places[group]): own for group, own in self._held.items()}

    def snapshot(self) -> list[Any]:
        """The state, for `restore` on a keeper of the same plan."""
        held = [[group, *own] for group, own in self._held.items()]
        places = [int(self._entered[0]), int(self._left[0]), self._begun]
        seen = self._table.held[: len(self._table)].copy()
        rows, closes = self._rows.snapshot(), self._closes.snapshot()
        return [
            rows,
            closes,
            [*map(list, self._table.keys)],
            held,
            seen,
            places,
            self._given.order.events,
        ]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state: the rows in the window enter their groups again."""
        rows, closes, keys, held, seen, places, self._given.order.events = state
        self._rows.restore(rows)
        self._closes.restore(closes)
        self._table.restore([tuple(key) for key in keys])
        entered, left, self._begun = places
        self._entered[0], self._left[0] = left, left
        none = np.empty(0, np.int64)
        again = Closes(none, none.astype(np.int32), none, np.array([entered]), np.array([left]))
        self._changed(again)
        self._table.held[: len(seen)] = seen
        self._held = {group: tuple(map(tuple, own)) for group, *own in held}
