"""A join across the events of one window, kept from window event to window event.

An event is matched once, whatever the number of windows that it is in. Its rows are rows of the
parts of the join, in the order of events, with their lists. They find their partners when they
enter, and each result stays until the first of its rows leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from spaseq import thresholds
from spaseq.algebra.nodes import possible, visible
from spaseq.compiled.arrays import Array, Bools, Int64s
from spaseq.gpm.evaluator import CurrentEvaluator
from spaseq.gpm.graphs.vertical_partition import ScopedTerms
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.limits import Limits
from spaseq.plan.query_plan import JoinedPart, KeptJoin, QueryPlan
from spaseq.plan.window_groups import SOLVED
from spaseq.plan.window_joins import column_of
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stateful import Stateful
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.kept_rows import EVENT_COLUMNS, LINKS, EventOrder, Form, KeptRows
from spaseq.windows.kernels.joined_rows import joined
from spaseq.windows.lasting_solutions import (
    ChangedSolutions,
    Given,
    LastingSolutions,
    agreeing,
    as_events,
    texts_of,
)
from spaseq.windows.window_closes import Closes, closes_of

_MOST_TOGETHER = 65_536
"""Number of combinations for which there is room at a time, unless a single row has more."""

_ALL = 2**62
"""Beyond every number of a row."""


def form_of(kept: KeptJoin) -> Form:
    """The columns of the rows of a join."""
    return {
        **EVENT_COLUMNS,
        "part": (None, np.int8),  # -1 for none
        "keys": (len(kept.edges), np.int32),  # the number of the values of each edge's variables
        LINKS: (len(kept.edges), np.int64),  # the number of the next row with these
        "text": (len(kept.variables), np.object_),  # the values of the join's variables
    }


class JoinRows(Stateful):
    """Makes rows of a join, in the `order` of events; `tables` number the values of each edge."""

    STATE = ("order", "tables")

    def __init__(self, plan: QueryPlan, kept: KeptJoin, window: int) -> None:
        self._kept = kept
        self.order = EventOrder(plan, window)
        self.tables = [GroupTable(edge.variables) for edge in kept.edges]
        number_of = plan.patterns.number_of
        self._numbers = [number_of(part.content) for part in kept.parts]
        self._all = [number_of(kept.contents[0], bare) for bare in (False, True)]
        self._columns = [(column_of(plan, variable), part) for variable, part in kept.variables]

    def append(self, rows: SolutionBatch, to: KeptRows) -> int:
        """Append the rows of the window's streams; how many there are."""
        rows, part = self._of_parts(rows)
        if not len(rows):
            return 0
        keys = np.full((len(self.tables), len(rows)), -1, np.int32)
        for keys_of_end, edge, table in zip(keys, self._kept.edges, self.tables, strict=True):
            places = np.flatnonzero((part == edge.first) | (part == edge.second))
            keys_of_end[places] = table.of_rows(rows.take(places))
        text = np.full((len(self._columns), len(rows)), None, np.object_)
        for values, (column, number) in zip(text, self._columns, strict=True):
            places = np.flatnonzero(part == number)
            values[places] = rows.values[column].objects(places)
        given: dict[str, Array] = {"part": part, "keys": keys, "text": text}
        to.append(len(rows), {**self.order.event_columns(rows), **given})
        return len(rows)

    def _of_parts(self, rows: SolutionBatch) -> tuple[SolutionBatch, Array]:
        """(rows in the order of events, the part of each); a row for each event at least."""
        parts = zip(self._kept.parts, self._numbers, strict=True)
        by_part = [_of_part(rows, part, number) for part, number in parts]
        unused: Bools = np.isin(rows.gpm, self._all)
        for of_part in by_part:
            unused[of_part] = False
        by_part.append(np.flatnonzero(unused))
        places = np.concatenate(by_part)
        part = np.repeat([*range(len(by_part) - 1), -1], [*map(len, by_part)]).astype(np.int8)
        rows = rows.take(places)
        order = self.order.places(rows)
        return rows.take(order), part[order]

    def forget(self, rows: KeptRows) -> bool:
        """Drop the values of edges that no row has; return whether the others have new numbers."""
        changed = False
        for number, table in enumerate(self.tables):
            keys = rows.column("keys")[number]
            used = np.zeros(len(table), np.bool_)
            used[keys[keys >= 0]] = True
            if 4 * np.count_nonzero(used) <= len(table):
                places = table.without_empty(used)
                if places is not None:
                    keys[:] = np.append(places, np.int32(-1))[keys]
                    changed = True
        return changed


def _of_part(rows: SolutionBatch, part: JoinedPart, number: int) -> Int64s:
    """The places of the rows of a part, which have a number."""
    of_part = rows.gpm == number
    if part.stream is not None:
        of_part &= rows.stream == part.stream
    if SOLVED in rows.values:
        of_part &= rows.values[SOLVED].codes >= 0
    return np.flatnonzero(of_part)


class JoinKeeper(Stateful):
    """The kept join of a GPM on a window, of which `changes` are wanted: NEW, GONE, None for all.

    `exceed` is called with the time (ms) of each window event whose solutions exceed a limit, and
    with the reason; such an event has none.
    """

    STATE = ("_rows", "_closes", "_given", "_held", "_places")

    def __init__(
        self,
        plan: QueryPlan,
        kept: KeptJoin,
        window: int,
        changes: frozenset[str | None],
        exceed: Callable[[int, str], None],
        limits: Limits,
        partition: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`partition` has the values of the variables of PARTITION BY."""
        self._partition = partition
        self._kept, self._exceed, self._limits = kept, exceed, limits
        self._closes = closes_of(plan.inputs.windows[window].extent)
        self._rows = KeptRows(form_of(kept))
        self._given = JoinRows(plan, kept, window)
        self._held = LastingSolutions(changes)
        self._variables = sorted({*visible(possible(kept.pattern)), *partition})
        self._ends = np.array([(e.first, e.second) for e in kept.edges], np.int64).reshape(-1, 2)
        self._walks = _walks(kept)
        size = len(kept.parts)
        self._work = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._moved = np.zeros(5, np.int64)
        self._heads = self._tails = np.full((2 * len(kept.edges), 0), -1, np.int64)

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

        `rows` are rows of the contents, in any order; no later row is at or before `until`.
        """
        new = self._given.append(rows, self._rows)
        closes = self._closes.after(self._rows, new, until)
        given = self._changes(closes, evaluator) if len(closes) else []
        event = np.array([event for event, _ in given], np.int64)
        sizes = self._rows.events_in(closes.enter[event], closes.leave[event])
        self._forget()
        lexicon = Lexicon(ScopedTerms([]))
        columns = {
            v: encoded(lexicon, [solution[i] for _, solution in given])
            for i, v in enumerate(self._variables)
        }
        return [ChangedSolutions(closes, event, sizes, columns, lexicon)]

    def _changes(self, closes: Closes, evaluator: CurrentEvaluator) -> Given:
        """The wanted solutions at some window events."""
        given: Given = []
        done = 0  # the window events before it have been given
        moved, most = self._moved, self._limits.solutions
        moved[2:] = 0
        while done < len(closes):
            event, rows = self._joined(closes)
            self._add(event, rows, closes, evaluator, done)
            given += self._given_until(closes, done, int(moved[2]))
            done = int(moved[2])
            if done < len(closes) and (moved[3] + moved[4] > most or len(self._held) > most):
                given += self._without(closes, done)
                done += 1
        return given

    def _joined(self, closes: Closes) -> tuple[Int64s, Int64s]:
        """(window event, rows of all parts) of combinations that come, as far as there is room."""
        together = min(thresholds.current.changed_groups, _MOST_TOGETHER)
        room = max(together, int(self._moved[3]))
        self._reserve()
        rows = self._rows
        event, taken = np.empty(room, np.int64), np.empty((room, len(self._kept.parts)), np.int64)
        made = joined(
            self._moved,
            self._limits.solutions,
            closes.enter,
            closes.leave,
            rows.base,
            (rows.arrays["part"], rows.arrays["keys"], rows.arrays[LINKS]),
            (self._heads, self._tails),
            (self._ends, self._walks),
            self._work,
            (event, taken),
        )
        return event[:made], taken[:made]

    def _add(
        self,
        event: Int64s,
        rows: Int64s,
        closes: Closes,
        evaluator: CurrentEvaluator,
        done: int,
    ) -> None:
        """Hold the solutions of combinations, which begin at window events."""
        if not len(event):
            return
        places = rows - self._rows.base
        texts = self._rows.arrays["text"]
        lexicon = Lexicon(ScopedTerms([]))
        columns = {
            v: encoded(lexicon, texts[i, places[:, part]].tolist())
            for i, (v, part) in enumerate(self._kept.variables)
        }
        index = as_events(closes, event, self._kept.joined, columns, lexicon)
        made = evaluator()
        evaluated = agreeing(made.evaluate(index), lexicon, self._partition)
        for row, reason in made.take_exceeding().items():
            self._exceed(int(index.batch.time[row]), reason)
        shown = [texts_of(evaluated.columns[v], lexicon) for v in self._variables]
        solutions = [*zip(*shown, strict=True)] if shown else [()] * len(evaluated.event)
        self._held.add(solutions, event[evaluated.event] - done, rows.min(axis=1)[evaluated.event])

    def _given_until(self, closes: Closes, done: int, reached: int) -> Given:
        """The wanted solutions at the window events from `done` on and before `reached`."""
        given = self._held.advance(closes.leave[done:reached])
        return [(done + event, solution) for event, solution in given]

    def _without(self, closes: Closes, event: int) -> Given:
        """The result at a window event whose solutions exceed the limit: none.

        At the next one all rows of the window enter again.
        """
        reason = f"more than {self._limits.solutions:,} solutions"
        self._exceed(int(closes.time[event]), reason)
        given = self._held.advance(np.array([_ALL]))
        self._start_at(int(closes.leave[event]), event + 1)
        return [(event, solution) for _, solution in given]

    def _start_at(self, row: int, event: int) -> None:
        """Go on with empty lists: rows enter again from a row on, at the next window event."""
        self._moved[:] = row, row, event, 0, 0
        self._heads[:], self._tails[:] = -1, -1

    # --- state ------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop the rows that have left, and the values that only they have."""
        self._rows.drop(int(self._moved[1]))
        self._held.forget()
        if self._given.forget(self._rows):
            self._link()

    def _reserve(self) -> None:
        """Make room for the lists of all values."""
        values, room = max(map(len, self._given.tables), default=0), self._heads.shape[1]
        if values > room:
            more = ((0, 0), (0, max(64, 2 * values) - room))
            self._heads = np.pad(self._heads, more, constant_values=-1)
            self._tails = np.pad(self._tails, more, constant_values=-1)

    def _link(self) -> None:
        """Rebuild the lists of the rows in the window."""
        rows, (entered, left) = self._rows, self._moved[:2].tolist()
        self._heads = self._tails = np.full((len(self._heads), 0), -1, np.int64)
        self._reserve()
        inside = slice(left - rows.first, entered - rows.first)
        part, keys = rows.column("part")[inside], rows.column("keys")[:, inside]
        following = rows.column(LINKS)[:, inside]
        for edge_end, number in enumerate(self._ends.reshape(-1).tolist()):
            edge = edge_end // 2
            places = np.flatnonzero(part == number)
            if len(places):
                places = places[np.argsort(keys[edge, places], kind="stable")]
                values = keys[edge, places]
                last = np.append(values[1:] != values[:-1], True)
                following[edge, places] = np.where(last, -1, np.append(places[1:], 0) + left)
                self._tails[edge_end, values[last]] = places[last] + left
                first = np.append(True, last[:-1])
                self._heads[edge_end, values[first]] = places[first] + left

    @property
    def _places(self) -> list[int]:
        """The next row to enter, and to leave."""
        places: list[int] = self._moved[:2].tolist()
        return places

    @_places.setter
    def _places(self, places: list[int]) -> None:
        self._moved[:2] = places

    def _after_restore(self) -> None:
        self._link()


def _walks(kept: KeptJoin) -> Int64s:
    """The walk through the join tree from each part, int64 [parts, edges, 4] (`joined`)."""
    ways = [
        (number, *ends, 2 * number + side)
        for number, edge in enumerate(kept.edges)
        for side, ends in enumerate(((edge.second, edge.first), (edge.first, edge.second)))
    ]
    walks = []
    for start in range(len(kept.parts)):
        reached, walk = {start}, list[tuple[int, int, int, int]]()
        while len(walk) < len(kept.edges):
            way = next(way for way in ways if way[1] in reached and way[2] not in reached)
            walk.append(way)
            reached.add(way[2])
        walks.append(walk)
    return np.array(walks, np.int64).reshape(len(kept.parts), len(kept.edges), 4)
