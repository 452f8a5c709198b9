"""From blocks of rows to event batches: mostly one event for each row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.lift.lift_plan import LiftPlan, LostValue, OnBadRow
from spaseq.lift.pruned_lifts import needed_variables
from spaseq.lift.row_blocks import FilteredRows, RowBlock, TimedRows
from spaseq.lift.solutions import WhereClause, lost_values
from spaseq.lift.template_graphs import LiftedBatch, Templates
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter

_SOLUTION_BITS = 40
"""Number of bits for solutions in a position."""


class EventMaker:
    """Makes the events of one stream from blocks of rows.

    Attributes:
        filtered: how many rows had no solution.
        is_usual: whether the lift has one template without blank nodes, and each row one solution:
            then parts of the lift may be left out, and triples made on demand.
    """

    def __init__(
        self,
        plan: LiftPlan,
        stream: str,
        types: dict[str, str] | None = None,
        counter: InstantCounter | None = None,
        limits: Limits = DEFAULT_LIMITS,
        asked: Collection[str] | None = None,
        decimal: str = ".",
    ) -> None:
        """`asked` are the predicates whose triples are needed; None: all.

        `decimal` is the sign in numbers that casts read.
        """
        self._plan, self._stream, self._limits = plan, stream, limits
        self._asked, self._types, self._decimal = asked, types or {}, decimal
        self._where = WhereClause(plan, types, decimal)
        self._counter = counter or InstantCounter()
        self._remarks: list[str] = []
        self._times = TimeTerms(stream, plan.time_unit, self._remarks.append)
        self._templates = Templates(plan, limits, self._times, asked)
        self._templates.is_usual &= self._where.one_each
        self.is_usual = self._templates.is_usual
        self._compared = None if asked is None else needed_variables(plan, asked)
        self._solutions = 0
        self._part: EventMaker | None = None
        self.filtered = 0

    def of_part(self, plan: LiftPlan) -> EventMaker:
        """The maker for a part of the same lift (`pruned_lifts`); it continues the numbering of
        instants.
        """
        if plan is self._plan:
            return self
        if self._part is None or self._part._plan != plan:
            counted = self._counter, self._limits, self._asked, self._decimal
            self._part = EventMaker(plan, self._stream, self._types, *counted)
        return self._part

    def lifted(self, block: RowBlock, on_bad: OnBadRow, times: Int64s | None = None) -> LiftedBatch:
        """The events of a block's rows, in order; bad rows are reported.

        A row for which the lift makes no time has that of `times` [n], in ms, if it is not NO_TIME.
        """
        solutions = self._where.solutions(block, self._solutions, self._compared)
        self._solutions += max(len(block), solutions.most)
        made = self._templates.events(solutions, len(block), times)
        self.filtered += made.events.filtered
        bad = {**made.bad, **solutions.bad}
        for row in sorted(bad):
            on_bad(int(block.lines[row]), bad[row], None)
        for lost in lost_values(solutions.lost, bad):
            on_bad(int(block.lines[lost.row]), lost.reason, lost)
        while self._remarks:  # a lost value of no rows
            field = f"time of <{self._stream}>"
            on_bad(int(block.lines[0]), self._remarks.pop(), LostValue(field, "", 0, "", 0))
        return replace(made, events=made.events.with_k(self._counter.assign(made.events.time)))

    def without(self, block: FilteredRows | TimedRows) -> LiftedBatch:
        """The events of rows that are not read: none, or without names and triples."""
        times, filtered = np.empty(0, np.int64), 0
        if isinstance(block, TimedRows):
            times = block.times
        else:
            filtered = len(block)
        self.filtered += filtered
        size, codes = len(times), np.empty(0, np.int32)
        start, terms = np.zeros(size + 1, np.int64), ListedTerms([])
        events = EventBatch(
            self._stream,
            times,
            self._counter.assign(times),
            EventNames.none(size),
            start,
            codes,
            codes,
            codes,
            terms,
            filtered=filtered,
            skipped_groups=block.groups,
        )
        return LiftedBatch(events, np.empty(0, np.int64), tuple, {})

    def begin_at(self, *place: object) -> None:
        """Go on with other rows: instants are counted anew, solutions numbered from a place."""
        self._counter = InstantCounter()
        self.number_after(*place)

    def number_after(self, *place: object) -> None:
        """Number solutions from a number on that only this place has.

        The labels of blank nodes have the numbers, so no two places share a blank node.
        """
        digest = blake2b(repr((self._stream, *place)).encode(errors="replace"), digest_size=8)
        self._solutions = int.from_bytes(digest.digest()) << _SOLUTION_BITS
