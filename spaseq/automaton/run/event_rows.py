"""Rows of single events as Python tuples: the input of stage 2 for pushed events.

A pushed event must be processed within microseconds, too fast to make columns. Stored rows of many
such events become columns later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from spaseq.automaton.run.runs import Row, Values
from spaseq.expr.doubles import double_of
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch, texts_of_columns
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.rdf.terms.number_kinds import OTHER

GpmRow: TypeAlias = tuple[int, Row]
"""A GPM (its index, or BARE) and one of its solutions."""


@lru_cache(4096)
def known_double(text: str | None) -> tuple[float, int]:
    """`double_of` for a term; NaN of kind OTHER where a variable is unbound."""
    return (np.nan, OTHER) if text is None else double_of(text)


@dataclass(slots=True)
class EventRows:
    """The solutions of one event, each with its GPM.

    `stream` is an index into the plan's list, `(time, k)` the event's instant (ms), `event` its
    graph's IRI. If stage 2 needs all events, an event without solutions has a row of BARE. Under
    PARTITION BY each event has such a row for each of its partitions, with the partition's values.
    """

    stream: int
    time: int
    k: int
    event: str | None
    solutions: Sequence[tuple[int, Values]]

    def __len__(self) -> int:
        return len(self.solutions)

    @property
    def gpm(self) -> list[int]:
        """The GPM of each solution."""
        return [gpm for gpm, _ in self.solutions]

    def rows(self) -> list[GpmRow]:
        """The solutions as rows."""
        stream, time, k, event = self.stream, self.time, self.k, self.event
        return [(gpm, (stream, time, k, event, values)) for gpm, values in self.solutions]


def batch_of(
    rows: Sequence[GpmRow], variables: Sequence[tuple[str, ...]], columns: SolutionColumns
) -> SolutionBatch:
    """The same rows as columns; `variables` are given by GPM, the partition's last."""
    values = {v: _texts(rows, variables, v) for v in {*columns.variables, *columns.numbers}}
    positions = np.array([row[:3] for _, row in rows], np.int64).reshape(-1, 3)
    return SolutionBatch(
        positions[:, 0].astype(np.int32),
        np.ascontiguousarray(positions[:, 1]),
        positions[:, 2].astype(np.int32),
        np.array([gpm for gpm, _ in rows], np.int32),
        EventNames.of([row[3] for _, row in rows]),
        {v: TermColumn.of(values[v]) for v in columns.variables},
        {v: _numbers(values[v]) for v in columns.numbers},
    )


def events_of(rows: SolutionBatch, variables: Sequence[tuple[str, ...]]) -> list[EventRows]:
    """The inverse of `batch_of`, in the order of the events' first rows; equal rows come once."""
    texts = dict(zip(rows.values, texts_of_columns([*rows.values.values()]), strict=True))
    columns = [[texts[v] for v in of_gpm] for of_gpm in variables]  # by GPM, BARE last
    places = zip(rows.stream.tolist(), rows.time.tolist(), rows.k.tolist(), strict=True)
    names, gpms = rows.event.texts(), rows.gpm.tolist()
    found: dict[tuple[int, int, int], tuple[int, dict[tuple[int, Values], None]]] = {}
    for i, (place, gpm) in enumerate(zip(places, gpms, strict=True)):
        known = found.get(place)
        if known is None:
            known = found[place] = i, {}
        known[1][gpm, tuple([column[i] for column in columns[gpm]])] = None
    return [
        EventRows(*place, names[first], [*solutions]) for place, (first, solutions) in found.items()
    ]


def _texts(
    rows: Sequence[GpmRow], variables: Sequence[tuple[str, ...]], variable: str
) -> list[str | None]:
    gpms = (*range(len(variables) - 1), BARE)
    at = {g: vs.index(variable) for g, vs in zip(gpms, variables, strict=True) if variable in vs}
    return [row[4][at[gpm]] if gpm in at else None for gpm, row in rows]


def _numbers(texts: Sequence[str | None]) -> NumberColumn:
    doubles = [known_double(text) for text in texts]
    return NumberColumn(
        np.array([value for value, _ in doubles], np.float64),
        np.array([kind for _, kind in doubles], np.int8),
    )
