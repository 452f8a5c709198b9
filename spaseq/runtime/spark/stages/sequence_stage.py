"""Stage 2 of a bounded run on Spark's workers: sorted packs of solutions in, answers out.

The packs of a partition come sorted by group, bucket and least time. The task processes one
(group, bucket) after the other. It holds only packs whose times overlap; of queries that read each
other's streams, all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.depth import make_room_for_any
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.inputs.stream_options import OnBad, warn
from spaseq.runtime.arrivals.tie_numbering import (
    EarlierTies,
    OtherTies,
    Overlap,
    TieMerge,
    TieTable,
    TimeExtent,
    earlier,
)
from spaseq.runtime.bounded_sequence import SortedUnit, sequenced
from spaseq.runtime.job.chaining import QueryGroups
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.job.unit_graph import UnitGraph
from spaseq.runtime.spark.rows.stage_rows import (
    END,
    EXTENT,
    OUTPUT,
    OVERLAP,
    SIDE,
    TIES,
    TaskReport,
    answer_rows,
    partial_rows,
    rows,
)
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.stages.held_answers import HeldAnswers
from spaseq.stages.hopeless_rows import leave_out_hopeless
from spaseq.stages.query_units import QueryUnits
from spaseq.stages.sorting import RowSorter
from spaseq.stages.unit_sequence import FoundAnswers
from spaseq.stages.unit_stages import StageFactory, UnitStage

Ties: TypeAlias = EarlierTies | OtherTies

SOURCE = 2**31
"""The order of side rows: this stage comes after all streams."""


_PLACE = ("unit", "bucket", "time", "split")


@dataclass(slots=True)
class _UnitAlone:
    """The stage of a unit that no registered stream connects with others.

    `waiting` has the rows before the first advance; the stage gets them if a match is possible.
    `held` has the answers of a family, which come together.
    """

    unit: int
    stage: UnitStage
    held: HeldAnswers | None
    waiting: RowSorter | None
    rows: int = 0  # since the last advance

    def push(self, rows: SolutionBatch) -> None:
        """Take rows, which wait before the first advance."""
        self.rows += len(rows)
        if self.waiting is None:
            self.stage.push(rows)
        else:
            self.waiting.add(rows)

    def advance(self, watermark: int) -> FoundAnswers:
        """The answers that are certain by a watermark (ms)."""
        self.rows = 0
        self._begin()
        return self.stage.advance(watermark)

    def close(self, plan: QueryPlan, open_end: int | None) -> FoundAnswers:
        """The remaining answers; all rows have come. `open_end` is as for `SequenceStage`."""
        if self.waiting is not None and not leave_out_hopeless(plan, self.waiting):
            return {}
        self._begin()
        return self.stage.close(open_end)

    def _begin(self) -> None:
        """Let the stage have the rows that wait."""
        waiting, self.waiting = self.waiting, None
        for batch, _ in waiting.batches() if waiting is not None else ():
            self.stage.push(batch)


class _ConnectedUnits:
    """Units that registered streams connect. Their second stage is that of a local run."""

    def __init__(
        self, units: QueryUnits, members: Sequence[int], how: StageFactory, on_bad: OnBad
    ) -> None:
        self._numbers = {plan.identity.name: n for n, plan in enumerate(units.queries)}
        self._made = list[pa.RecordBatch]()  # rows of partial matches, and of changes of graphs
        self._job = Job(
            units.queries,
            (),
            how.knowledge,
            how.options,
            on_bad=on_bad,
            on_partial=self._take_partial,
            on_changes=self._take_changes,
        )
        how = replace(how, on_bad=self._job.take_bad)
        self._nodes = {n: SortedUnit(units.unit_plan(n), self._job, how) for n in members}

    def _take_partial(self, query: str, partial: PartialAnswer) -> None:
        self._made.append(partial_rows(self._numbers[query], [partial]))

    def _take_changes(self, plan: QueryPlan, answers: Sequence[Answer]) -> None:
        self._made.append(answer_rows(self._numbers[plan.identity.name], answers))

    def push(self, unit: int, rows: SolutionBatch) -> None:
        """Take solutions, which stage 1 has counted."""
        self._nodes[unit].sorter.add(rows)

    def rows(self, open_end: int | None) -> Iterator[pa.RecordBatch]:
        """All answers and partial matches; `open_end` is as for `SequenceStage`."""
        for number, answers in sequenced(self._job, UnitGraph(self._nodes.values()), open_end):
            yield answer_rows(number, answers)
            yield from self._taken()
        yield from self._taken()

    def _taken(self) -> list[pa.RecordBatch]:
        made, self._made = self._made, []
        return made

    def count(self, stats: Stats) -> None:
        """Add what was counted to the counts of the task, which counts bad input itself."""
        stats.add_task(replace(self._job.stats, bad=0, lost={}, first_lost={}))


@dataclass(slots=True)
class SequenceTask:
    """One task of stage 2."""

    groups: QueryGroups
    stats: Stats
    options: StageOptions = StageOptions()
    knowledge: StoredKnowledge | None = None
    on_bad: OnBad = warn
    ties: Mapping[int, Ties] | None = (
        None  # by split; from the rows' extents and tables if not given
    )
    _columns: dict[int, SolutionColumns] = field(init=False)
    _place: tuple[int, int] | None = None  # the group and the bucket that come now
    _group: _UnitAlone | _ConnectedUnits | None = None
    _extents: list[TimeExtent] = field(default_factory=list)
    _merge: TieMerge = field(default_factory=TieMerge)
    _end: int | None = None  # the greatest time of all streams, if their end closes no window

    def __post_init__(self) -> None:
        self._columns = {n: plan.patterns.columns for n, plan in self.groups.units.plans.items()}

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer rows and side rows of a partition."""
        for batch in batches:
            query = batch.column("query").to_numpy()
            if (query == TIES).any():
                payloads = batch.filter(pa.array(query == TIES)).column("payload").to_pylist()
                for data in payloads:
                    self._merge.add(TieTable.of(data))
            if (query == EXTENT).any():
                payloads = batch.filter(pa.array(query == EXTENT)).column("payload").to_pylist()
                self._extents += [TimeExtent.of(data) for data in payloads]
            if (query == END).any():
                payloads = batch.filter(pa.array(query == END)).column("payload").to_pylist()
                self.note_ends(map(TimeExtent.of, payloads))
            if (query == SIDE).any():
                yield batch.filter(pa.array(query == SIDE)).select(OUTPUT.names)
            for row in np.flatnonzero(query >= 0).tolist():
                pack_row, payload = batch.slice(row, 1), batch.column("payload")[row].as_py()
                unit, bucket, first, split = (pack_row.column(n)[0].as_py() for n in _PLACE)
                solutions = SolutionCodec(self._columns[unit]).decode(payload)
                yield from self.take(unit, bucket, first, split, solutions)
        yield from self.close()

    def note_ends(self, extents: Iterable[TimeExtent]) -> None:
        """Take note of the times of splits, if the end of the streams closes no window."""
        known = [self._end, *(extent.last for extent in extents)]
        if self.options.open_end:
            self._end = max((time for time in known if time is not None), default=None)

    def take(
        self, unit: int, bucket: int, first: int, split: int, solutions: SolutionBatch
    ) -> Iterator[pa.RecordBatch]:
        """Answer rows that a pack of a split allows; `first` is the pack's least time (ms)."""
        place = self.groups.home[unit].first, bucket
        if self._group is None or self._place != place:
            yield from self.close()
            self._group, self._place = self._begun(unit), place
        group = self._group
        if isinstance(group, _ConnectedUnits):
            group.push(unit, self._numbered(split, solutions))
            return
        began = time.perf_counter()
        answers: FoundAnswers = {}
        if group.rows >= thresholds.current.advanced_rows:
            answers = group.advance(first - 1)  # later packs begin no earlier
        group.push(self._numbered(split, solutions))
        yield from self._out(group, answers, began)

    def _begun(self, unit: int) -> _UnitAlone | _ConnectedUnits:
        """The stage of a unit, or those of its group."""
        make_room_for_any()
        known = self.knowledge.open() if self.knowledge else KnowledgeBase.empty()
        how = StageFactory(known, self.options, self.on_bad)
        units, members = self.groups.units, self.groups.home[unit].members
        if len(members) > 1:
            return _ConnectedUnits(units, members, how, self.on_bad)
        held_answers = HeldAnswers() if unit in units.families else None
        stage, waiting = how.sequence(units.unit_plan(unit)), RowSorter(self._columns[unit])
        return _UnitAlone(unit, stage, held_answers, waiting)

    def _numbered(self, split: int, solutions: SolutionBatch) -> SolutionBatch:
        """Solutions numbered as in the whole stream; extents and tables come before packs."""
        if self.ties is None:
            self.ties = {**earlier(self._extents), **self._merge.ties()}
        known = self.ties.get(split)
        return solutions if known is None else known.renumber(solutions)

    def close(self) -> Iterator[pa.RecordBatch]:
        """The answer rows that are left of the present group and bucket."""
        start = time.perf_counter()
        group, self._group = self._group, None
        if isinstance(group, _ConnectedUnits):
            yield from group.rows(self._end)
            group.count(self.stats)
        if not isinstance(group, _UnitAlone):
            return
        units = self.groups.units
        answers = group.close(units.plans[group.unit], self._end)
        self.stats.suppressed += group.stage.suppressed
        self.stats.add_muted(group.stage.muted)
        yield from self._out(group, answers, start)
        if group.held is not None:
            for query in units.members(group.unit):
                for some in group.held.take(query):
                    yield answer_rows(query, some)
            group.held.close()

    def _out(
        self, group: _UnitAlone, by_query: FoundAnswers, start: float
    ) -> Iterator[pa.RecordBatch]:
        batches = []
        for query, pieces in by_query.items():
            for answers in pieces:
                self.stats.count_made(self.groups.units.queries[query], len(answers))
                if group.held is not None:
                    group.held.add(query, answers)
                elif answers:
                    batches.append(answer_rows(query, answers))
        partials = group.stage.partials()
        if partials:
            batches.append(partial_rows(group.unit, partials))
        title = self.groups.units.plans[group.unit].identity.title
        self.stats.add_work("sequence", title, time.perf_counter() - start)
        yield from batches


def run_sequences(
    groups: QueryGroups,
    options: StageOptions,
    knowledge: StoredKnowledge,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: sorted rows of `PACKS` to rows of `OUTPUT`."""
    report = TaskReport(OUTPUT, SOURCE)
    task = SequenceTask(groups, report.stats, options, knowledge, report.take)
    yield from report.rows(_unless_overlap(task.rows(batches), batches), batches)


def _unless_overlap(
    answer_parts: Iterator[pa.RecordBatch], given: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Some rows; a row that says it if splits overlap. All that is given is read then."""
    try:
        yield from answer_parts
    except Overlap:
        yield rows(OUTPUT, 1, query=OVERLAP, order="", payload=b"")
        for _ in given:
            pass
