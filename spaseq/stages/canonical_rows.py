"""The canonical order of the solutions of an event, independent of how they were found.

An evaluator that returns the first matches of an instant, up to a limit, depends on the order of
its rows. Evaluation on one event or on a batch gives the same solutions, but not in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.runs import Values
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn


class CanonicalRows:
    """Orders the rows of one event and GPM by the texts of their terms, variable by variable."""

    def __init__(self, plan: QueryPlan) -> None:
        self._variables = [v for v in plan.patterns.columns.variables if v != QUERY]
        self._places = [
            [gpm.variables.index(v) for v in self._variables if v in gpm.variables]
            for gpm in plan.patterns.gpms
        ]

    def events(self, events: Sequence[EventRows], watermark: int) -> list[EventRows]:
        """Single events with their solutions in order."""
        return [event if len(event) < 2 else self._event(event) for event in events]

    def _event(self, event: EventRows) -> EventRows:
        def order(solution: tuple[int, Values]) -> tuple[int, list[str]]:
            gpm, values = solution
            places = range(len(values)) if gpm == BARE else self._places[gpm]
            return gpm, [values[column] or "" for column in places]

        solutions = sorted(event.solutions, key=order)
        return EventRows(event.stream, event.time, event.k, event.event, solutions)

    def rows(self, rows: SolutionBatch, watermark: int) -> SolutionBatch:
        """The rows of many events in order; in a family, the rows of each member by themselves."""
        places: list[Int32s | Int64s] = [rows.gpm, rows.stream, rows.k, rows.time]
        if QUERY in rows.values:
            places.insert(0, rows.values[QUERY].codes)
        order = np.lexsort(places)
        same = np.ones(max(0, len(rows) - 1), np.bool_)
        for column in places:
            same &= column[order[1:]] == column[order[:-1]]
        if not same.any():
            return rows
        tied = np.zeros(len(rows), np.bool_)
        tied[order[1:]] |= same
        tied[order[:-1]] |= same
        ranks = np.zeros((len(self._variables), len(rows)), np.int64)
        for rank, variable in zip(ranks, self._variables, strict=True):
            rank[tied] = _ranks(rows.values[variable].take(np.flatnonzero(tied)))
        return rows.take(np.lexsort([*ranks[::-1], *places]))


def _ranks(column: TermColumn) -> Int64s:
    """The rank [n] of each term in the order of texts; an unbound variable comes first."""
    texts = np.array([text or "" for text in column.texts()], object)
    return np.unique(texts, return_inverse=True)[1].astype(np.int64)
