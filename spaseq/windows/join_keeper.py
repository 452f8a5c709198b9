"""A join across the events of one window, kept from window event to window event.

An event is matched once, whatever the number of windows that it is in. Its rows are rows of the
parts of the join, in the order of events, with their lists. They find their partners when they
enter, and each result stays until the first of its rows leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq import thresholds
from spaseq.algebra.nodes import possible, visible
from spaseq.compiled.arrays import Array, Bools, Int64s
from spaseq.gpm.evaluator import CurrentEvaluator
from spaseq.gpm.graphs.vertical_partition import ScopedTerms
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.plan.pattern_plan import JoinedPart, KeptJoin
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.window_groups import SOLVED
from spaseq.plan.window_joins import column_of
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.kept_rows import EVENT_COLUMNS, LINKS, Form
from spaseq.windows.kernels.joined_rows import joined
from spaseq.windows.kernels.window_bounds import FIRST, WAIT
from spaseq.windows.lasting_solutions import (
    ChangedSolutions,
    Given,
    LastingSolutions,
    agreeing,
    as_events,
    texts_of,
)
from spaseq.windows.window_closes import Closes
from spaseq.windows.window_keeper import KeptWindow, WindowKeeper
from spaseq.windows.window_rows import WindowRows, with_room

_MOST_TOGETHER = 65_536
"""Number of combinations for which there is room at a time, unless a single row has more."""


def form_of(kept: KeptJoin) -> Form:
    """The columns of the rows of a join."""
    return {
        **EVENT_COLUMNS,
        "part": (None, np.int8),  # -1 for none
        "keys": (len(kept.edges), np.int32),  # the number of the values of each edge's variables
        LINKS: (len(kept.edges), np.int64),  # the number of the next row with these
        "text": (len(kept.variables), np.object_),  # the values of the join's variables
    }


class JoinRows:
    """Makes rows of a join, and puts them behind others; `tables` number the values of each edge.

    The values of an edge begin with the partition's.
    """

    def __init__(self, plan: QueryPlan, kept: KeptJoin, to: WindowRows) -> None:
        self._kept, self._to = kept, to
        self.tables = [GroupTable((*to.variables, *edge.variables)) for edge in kept.edges]
        number_of = plan.patterns.number_of
        self._numbers = [number_of(part.content) for part in kept.parts]
        self._all = [number_of(kept.contents[0], bare) for bare in (False, True)]
        self._columns = [(column_of(plan, variable), part) for variable, part in kept.variables]

    def append(self, rows: SolutionBatch) -> int:
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
        given |= {"event": self._to.events_of(rows), "partition": self._to.partitions_of(rows)}
        self._to.take(rows, given)
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
        order = self._to.order.places(rows)
        return rows.take(order), part[order]

    def forget(self) -> bool:
        """Drop the values of edges that no row has; return whether the others have new numbers."""
        rows, changed = self._to, False
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


class JoinKeeper(WindowKeeper):
    """The kept join of a GPM on a window; a window event that exceeds a limit has no solutions."""

    parts: Sequence[GroupTable]
    held: LastingSolutions

    def __init__(self, window: KeptWindow, kept: KeptJoin) -> None:
        super().__init__(window, kept, form_of(kept))
        self._kept = kept
        self._given = JoinRows(window.plan, kept, self.rows)
        self.parts, self.held = self._given.tables, LastingSolutions(window.changes)
        self._variables = sorted({*visible(possible(kept.pattern)), *self.rows.variables})
        self._ends = np.array([(e.first, e.second) for e in kept.edges], np.int64).reshape(-1, 2)
        self._walks = _walks(kept)
        size = len(kept.parts)
        self._work = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._moved = np.zeros(3, np.int64)
        self._heads = self._tails = np.full((2 * len(kept.edges), 0), -1, np.int64)

    def append(self, rows: SolutionBatch) -> int:
        return self._given.append(rows)

    def changed(self, closes: Closes, evaluator: CurrentEvaluator) -> list[ChangedSolutions]:
        sizes, _ = self.rows.sizes(closes)
        given = self._changes(closes, evaluator)
        event = np.array([event for event, _ in given], np.int64)
        self._forget()
        lexicon = Lexicon(ScopedTerms([]))
        columns = {
            v: encoded(lexicon, [solution[i] for _, solution in given])
            for i, v in enumerate(self._variables)
        }
        return [ChangedSolutions(closes, event, sizes[event], columns, lexicon)]

    def _changes(self, closes: Closes, evaluator: CurrentEvaluator) -> Given:
        """The wanted solutions at some window events."""
        given: Given = []
        done = 0  # the window events before it have been given
        moved, most = self._moved, self._window.limits.solutions
        moved[:] = 0
        while done < len(closes):
            event, rows = self._joined(closes)
            self._add(event, rows, closes, evaluator)
            given += self.held.advance(closes, done, int(moved[0]))
            done = int(moved[0])
            if done < len(closes) and (
                moved[1] + moved[2] > most or self.held.size(int(closes.partition[done])) > most
            ):
                given += self._without(closes, done)
                done += 1
        return given

    def _joined(self, closes: Closes) -> tuple[Int64s, Int64s]:
        """(window event, rows of all parts) of combinations that come, as far as there is room."""
        together = min(thresholds.current.changed_groups, _MOST_TOGETHER)
        room = max(together, int(self._moved[1]))
        self._reserve()
        rows, arrays = self.rows, self.rows.arrays
        event, taken = np.empty(room, np.int64), np.empty((room, len(self._kept.parts)), np.int64)
        made = joined(
            self._moved,
            self._window.limits.solutions,
            rows.lists,
            (closes.partition, closes.enter, closes.leave),
            rows.base,
            (arrays["part"], arrays["keys"], arrays[LINKS], arrays["next"]),
            (self._heads, self._tails),
            (self._ends, self._walks),
            self._work,
            (event, taken),
        )
        return event[:made], taken[:made]

    def _add(
        self, event: Int64s, rows: Int64s, closes: Closes, evaluator: CurrentEvaluator
    ) -> None:
        """Hold the solutions of combinations, which begin at window events."""
        if not len(event):
            return
        places = rows - self.rows.base
        texts = self.rows.arrays["text"]
        lexicon = Lexicon(ScopedTerms([]))
        columns = {
            v: encoded(lexicon, texts[i, places[:, part]].tolist())
            for i, (v, part) in enumerate(self._kept.variables)
        }
        index = as_events(closes, event, self._kept.joined, columns, lexicon)
        made = evaluator()
        partition = closes.partition[event]
        codes = self.rows.partition_codes(partition, lexicon)
        evaluated = agreeing(made.evaluate(index), lexicon, codes)
        for row, reason in made.take_exceeding().items():
            self._window.exceed(int(index.batch.time[row]), reason)
        shown = [texts_of(evaluated.columns[v], lexicon) for v in self._variables]
        solutions = [*zip(*shown, strict=True)] if shown else [()] * len(evaluated.event)
        which = evaluated.event
        self.held.add(solutions, partition[which], event[which], rows.min(axis=1)[which])

    def _without(self, closes: Closes, event: int) -> Given:
        """The result at a window event whose solutions exceed the limit: none.

        At the next one of the partition all its rows enter again.
        """
        reason = f"more than {self._window.limits.solutions:,} solutions"
        self._window.exceed(int(closes.time[event]), reason)
        rows, partition = self.rows, closes.partition[event]
        given = self.held.without(int(partition), event)
        rows.lists[WAIT, partition] = rows.lists[FIRST, partition]
        self._moved[:] = event + 1, 0, 0
        of_partition = rows.column("keys")[:, rows.column("partition") == partition]
        for edge, keys in enumerate(of_partition):
            for lists in (self._heads, self._tails):
                lists[2 * edge : 2 * edge + 2, keys[keys >= 0]] = -1
        return given

    # --- state ------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop the rows that have left, the values that only they have, and idle partitions."""
        self.rows.drop_left()
        self.held.forget()
        is_moved = self._without_left()
        if self._given.forget() or is_moved:
            self._link()
        places = self.rows.without_idle(self.held.has)
        if places is not None:
            self.held.renumber_partitions(places)

    def _without_left(self, is_needed: bool = False) -> bool:
        """Drop the rows that have left, if there are many or it is needed; whether it is done."""
        first = self.rows.first
        places = self.rows.without_left(is_needed)
        if places is not None:
            self.held.renumber_rows(places, first)
        return places is not None

    def _reserve(self) -> None:
        """Make room for the lists of all values."""
        values = max(map(len, self._given.tables), default=0)
        self._heads, self._tails = (with_room(own, values) for own in (self._heads, self._tails))

    def _link(self) -> None:
        """Rebuild the lists of the rows in the window."""
        rows, first = self.rows, self.rows.first
        self._heads = self._tails = np.full((len(self._heads), 0), -1, np.int64)
        self._reserve()
        inside = np.flatnonzero(rows.inside())
        part, keys, following = rows.column("part"), rows.column("keys"), rows.column(LINKS)
        for edge_end, number in enumerate(self._ends.reshape(-1).tolist()):
            edge = edge_end // 2
            places = inside[part[inside] == number]
            if len(places):
                places = places[np.argsort(keys[edge, places], kind="stable")]
                values = keys[edge, places]
                last = np.append(values[1:] != values[:-1], True)
                following[edge, places] = np.where(last, -1, np.append(places[1:], 0) + first)
                self._tails[edge_end, values[last]] = places[last] + first
                begins = np.append(True, last[:-1])
                self._heads[edge_end, values[begins]] = places[begins] + first

    def _before_snapshot(self) -> None:
        if self._without_left(is_needed=True):
            self._link()

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
