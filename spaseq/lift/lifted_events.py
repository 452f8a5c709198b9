"""From solutions and a template to event batches: one event for each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Int64s
from spaseq.lift.lift_plan import LiftPlan, LostValue, lost_values
from spaseq.lift.row_blocks import FilteredRows, RowBlock, TableBlock, TimedRows
from spaseq.lift.row_solutions import SolutionMaker
from spaseq.lift.template_graphs import MadeEvents, TemplateGraphs, joined, refuse_long_literals
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.solution_batch import repeated_rows
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.terms.times import time_literal

if TYPE_CHECKING:
    from spaseq.lift.lane_events import LaneEvents

_SOLUTION_BITS = 40
"""Number of bits for solutions in a position."""

OnBadRow = Callable[[int, str, "LostValue | None"], None]
"""Called with the position of a bad row in its block, and the reason.

With a lost value the row is an event, without the result of a cast.
"""


@dataclass(frozen=True, slots=True)
class LiftedBatch:
    """The events of some rows of a block.

    `time_texts` returns the literals [n] of their times, `rows` [n] are their positions in the
    block.
    """

    events: EventBatch
    time_texts: Callable[[], Sequence[str]]
    rows: Int64s


class EventMaker:
    """Makes the events of one stream from blocks of rows.

    Attributes:
        filtered: how many rows had no solution.
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
        self._asked = asked
        self._maker = SolutionMaker(plan, types, decimal)
        self._counter = counter or InstantCounter()
        self._remarks: list[str] = []
        self._times = TimeTerms(stream, plan.time_unit, self._remarks.append)
        self._solutions = 0
        self._types, self._decimal = types or {}, decimal
        self._lanes: LaneEvents | None = None
        self._by_row = False
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

    def lifted(
        self, block: RowBlock | TableBlock, on_bad: OnBadRow, times: Int64s | None = None
    ) -> Iterator[LiftedBatch]:
        """The events of a block's rows, in order; bad rows are reported.

        The rows of a table are lifted as columns, if the lift and the rows allow it. `times` are
        for rows without one, as in `events`.
        """
        if isinstance(block, RowBlock):
            yield self.events(block, on_bad, times)
        elif self._columns() is None:
            yield from self._row_by_row(block, 0, on_bad, times)
        else:
            yield from self._as_columns(block, 0, on_bad, times)

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
        return LiftedBatch(events, tuple, np.empty(0, np.int64))

    @property
    def makes_columns(self) -> bool:
        """Whether the lift allows it to lift tables as columns."""
        return self._columns() is not None

    def _columns(self) -> LaneEvents | None:
        if self._lanes is None and not self._by_row:
            from spaseq.lift.lane_events import LaneEvents
            from spaseq.lift.lanes import NotColumns

            try:
                self._lanes = LaneEvents(
                    self._plan,
                    self._times,
                    self._counter,
                    self._limits,
                    self._asked,
                    (self._types, self._decimal),
                )
            except NotColumns:
                self._by_row = True
        return self._lanes

    def _as_columns(
        self, block: TableBlock, before: int, on_bad: OnBadRow, times: Int64s | None
    ) -> Iterator[LiftedBatch]:
        """The events of rows, `before` rows after the first of the whole block, as `times` are."""
        from spaseq.lift.lanes import NotColumns

        assert self._lanes is not None
        try:
            events, texts, rows = self._lanes.events(block)
        except NotColumns:
            if len(block) <= thresholds.current.lifted_table_rows:
                yield from self._row_by_row(block, before, on_bad, times)
                return
            size = -(-len(block) // 8)
            for start in range(0, len(block), size):
                part = block.part(start, size)
                yield from self._as_columns(part, before + start, on_bad, times)
            return
        self.filtered += events.filtered
        _report_lost(self._lanes.lost, before, on_bad)
        self._remark(before, on_bad)
        yield LiftedBatch(events, self._time_texts(events, texts), rows + before)

    def _row_by_row(
        self, block: TableBlock, before: int, on_bad: OnBadRow, times: Int64s | None
    ) -> Iterator[LiftedBatch]:
        wanted = self._plan.fields.wanted
        for start in range(0, len(block), thresholds.current.block_rows):
            rows = block.part(start, thresholds.current.block_rows).rows(wanted)
            first = before + start

            def report(row: int, reason: str, lost: LostValue | None, first: int = first) -> None:
                on_bad(first + row, reason, lost)

            row_times = None if times is None else times[first : first + len(rows)]
            made = self.events(rows, report, row_times)
            yield replace(made, rows=made.rows + first)

    def events(self, block: RowBlock, on_bad: OnBadRow, times: Int64s | None = None) -> LiftedBatch:
        """The events of a block's rows, in order; bad rows are reported.

        A row for which the lift makes no time has that of `times` [n], in ms, if it is not NO_TIME.
        """
        solutions = self._maker.solutions(block, self._solutions)
        self._solutions += max(len(block), solutions.most)
        rows = np.array(solutions.rows, np.int64)
        present = np.unique(rows)
        filtered = len(block) - len(present) - len(solutions.bad)
        self.filtered += filtered
        bad = dict(solutions.bad)
        event = np.searchsorted(present, rows)  # [m] the event of each solution
        codes: dict[str, int] = {}
        parts = []
        for plan in (self._plan, *self._plan.others):
            graph = TemplateGraphs(
                plan, solutions, None if times is None else times[present], codes, self._times
            )
            several = bool(self._plan.others)
            parts.append(graph.made(event, len(present), several))
            refuse_long_literals(parts[-1], self._limits)
        made = parts[0] if len(parts) == 1 else joined(parts, [*codes])
        for number, reason in made.bad.items():
            bad.setdefault(int(present[number // len(parts)]), reason)
        present = np.repeat(present, len(parts))
        for row in sorted(bad):
            on_bad(row, bad[row], None)
        _report_lost(lost_values(solutions.lost, bad), 0, on_bad)
        self._remark(0, on_bad)
        return self._batch(made, filtered, present)

    def _remark(self, row: int, on_bad: OnBadRow) -> None:
        """Report the detected unit of times, as a lost value of no rows."""
        while self._remarks:
            field = f"time of <{self._stream}>"
            on_bad(row, self._remarks.pop(), LostValue(field, "", row, "", 0))

    def number_after(self, *place: object) -> None:
        """Number solutions from a number on that only this place has.

        The labels of blank nodes have the numbers, so no two places share a blank node.
        """
        digest = blake2b(repr((self._stream, *place)).encode(errors="replace"), digest_size=8)
        self._solutions = int.from_bytes(digest.digest()) << _SOLUTION_BITS

    def _batch(self, made: MadeEvents, filtered: int, rows: Int64s) -> LiftedBatch:
        kept = np.ones(len(made.time), np.bool_)
        kept[[*made.bad, *made.absent]] = False
        inside = kept[made.event]
        number = np.cumsum(kept) - 1
        start = np.zeros(int(kept.sum()) + 1, np.int64)
        np.cumsum(np.bincount(number[made.event[inside]], minlength=len(start) - 1), out=start[1:])
        s, p, o = made.s[inside], made.p[inside], made.o[inside]
        twice = repeated_rows(start, s, p, o)
        if len(twice):
            s, p, o = (np.delete(column, twice) for column in (s, p, o))
            start = start - np.searchsorted(twice, start)
        time = made.time[kept]
        kept_names = [name for name, keep in zip(made.names, kept.tolist(), strict=True) if keep]
        names = EventNames.of(kept_names)
        texts = [made.terms[code] for code in made.time_code[kept].tolist()]
        k = self._counter.assign(time)
        terms = ListedTerms(made.terms)
        events = EventBatch(self._stream, time, k, names, start, s, p, o, terms, filtered=filtered)
        return LiftedBatch(events, self._time_texts(events, lambda: texts), rows[kept])

    def _time_texts(
        self, events: EventBatch, texts: Callable[[], Sequence[str]]
    ) -> Callable[[], Sequence[str]]:
        """A function for the literals of times, except integers that are seconds."""
        if self._times.scale == 1:
            return texts
        return lambda: [time_literal(time) for time in events.time.tolist()]


def _report_lost(values: Iterable[LostValue], before: int, on_bad: OnBadRow) -> None:
    for lost in values:
        on_bad(before + lost.row, lost.reason, lost)
