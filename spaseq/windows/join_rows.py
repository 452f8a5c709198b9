"""Rows of contents as rows of the parts of a join: in the order of events, with their lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.arrays import Array, Bools, Int64s
from spaseq.plan.query_plan import JoinedPart, KeptJoin, QueryPlan
from spaseq.plan.window_groups import SOLVED
from spaseq.plan.window_joins import column_of
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.windows.event_order import EventOrder
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.kept_rows import EVENT_COLUMNS, LINKS, Form, KeptRows


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
    """Makes rows of a join, in the `order` of events; `tables` number the values of each edge."""

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
        """Let go of the values of edges that no row has; whether the others have new numbers."""
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

    def snapshot(self) -> list[Any]:
        """The state, for `restore`."""
        return [self.order.events, [[*map(list, table.keys)] for table in self.tables]]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self.order.events, keys = state
        for table, table_keys in zip(self.tables, keys, strict=True):
            table.restore([tuple(key) for key in table_keys])


def _of_part(rows: SolutionBatch, part: JoinedPart, number: int) -> Int64s:
    """The places of the rows of a part, which have a number."""
    of_part = rows.gpm == number
    if part.stream is not None:
        of_part &= rows.stream == part.stream
    if SOLVED in rows.values:
        of_part &= rows.values[SOLVED].codes >= 0
    return np.flatnonzero(of_part)
