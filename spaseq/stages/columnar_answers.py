"""Answers of many matches at a time, as columns, from the numbers of their rows."""

from __future__ import annotations

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch, AnswerNames, Runs
from spaseq.automaton.batch.numbered_matches import NumberedMatches, joined
from spaseq.automaton.run.machine import Machine
from spaseq.compiled.arrays import Int64s
from spaseq.lang.shapes import QUERY, is_made
from spaseq.plan.evaluators import limits, selects, skips_nothing
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sharing import keeps_all
from spaseq.rdf.columns.term_columns import distinct_codes
from spaseq.stages.columnar_order import RowRanks, can_be_ordered, in_order

_EVALUATORS = ("compiled-chain", "compiled-compact", "compiled-registers")


def can_be_columns(plan: QueryPlan, limit: int | None) -> bool:
    """Whether each match that the evaluator gives is an answer, and SELECT has only variables.

    `limit` is that of the answers of an event, if there is one.
    """
    answers = plan.answers
    return (
        plan.sequence.evaluator.name in _EVALUATORS
        and (keeps_all(plan) or selects(plan))
        and skips_nothing(plan)
        and not answers.distinct
        and answers.template is None
        and answers.having is None
        and all(item.expr is None for item in answers.projection)
        and (limit is None or limits(plan))
    )


class ColumnarAnswers:
    """Makes the answers of a query for which `can_be_columns` is true."""

    def __init__(self, plan: QueryPlan, machine: Machine) -> None:
        # Of what a family adds, only the member's number decides the order.
        names = {v for gpm in plan.patterns.gpms for v in gpm.variables}
        variables = sorted(v for v in names if v == QUERY or not is_made(v))
        groups = machine.program.owner
        self._names = AnswerNames(
            tuple(machine.names),
            tuple(machine.streams),
            tuple(p.name for p in plan.answers.projection if p.name in variables),
            tuple(v for v in variables if v not in groups),
            tuple(v for v in variables if v in groups),
        )

    def answers(self, found: NumberedMatches) -> AnswerBatch | None:
        """The answers of some matches, in their order; None if columns are no gain."""
        if sum(len(piece.ends) for piece in found.pieces) < thresholds.current.columnar_matches:
            return None
        matches = joined(found.pieces)
        first = int(matches.rows.min())
        used, places = distinct_codes(
            (matches.rows - first).astype(np.int32), int(matches.rows.max()) - first + 1
        )
        solutions = Runs(places.astype(np.int64), matches.ends[:, 0].copy())
        if not can_be_ordered(solutions):
            return None
        rows = found.builder.columns(used.astype(np.int64) + first)
        rank = RowRanks.of(rows, self._names)
        trace = _traces(solutions, rank.items)
        return in_order(AnswerBatch(self._names, rows, solutions, trace), rank)


def _traces(solutions: Runs, items: Int64s) -> Runs:
    """The solutions in the order of traces, and each item once."""
    rank = items[solutions.places]
    rises = np.ones(len(rank), np.bool_)
    rises[1:] = rank[1:] > rank[:-1]
    rises[solutions.begins] = True
    if rises.all():
        return solutions
    match = np.repeat(np.arange(len(solutions)), solutions.lengths)
    order = np.lexsort((rank, match))
    match, rank = match[order], rank[order]
    kept = np.ones(len(rank), np.bool_)
    kept[1:] = (match[1:] != match[:-1]) | (rank[1:] != rank[:-1])
    ends = np.cumsum(np.bincount(match[kept], minlength=len(solutions)))
    return Runs(solutions.places[order[kept]], ends)
