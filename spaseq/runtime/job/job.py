"""The job of a run, its input and its reports: the common contract of both runtimes.

A runtime is a function `run(job) -> Iterator[tuple[int, Answer]]`. It yields answers, each with the
index of its query in `job.plans`. The answers of each query are in order
(docs/meaning.md#order-of-answers). It updates `job.stats` while it runs and calls the `on_*`
functions in the calling thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.compiled.arrays import Int64s
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST, TimedChange
from spaseq.kb.service_address import RetryCount
from spaseq.lang.shapes import QUERY
from spaseq.measures import BadGeometryCount, Measures
from spaseq.options import StageOptions
from spaseq.plan.families import Family, UnitPlan
from spaseq.plan.predicates import stream_patterns, stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.kept_groups import keeping_lasting
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import BadInput, ignore, warn_once
from spaseq.records import record
from spaseq.sources.base import Source
from spaseq.stages.joint_patterns import table_rows_of

if TYPE_CHECKING:
    from spaseq.kb.watched_graphs import KbWatch, KeptGraph
    from spaseq.runtime.job.graph_dumps import GraphDumps


@record
class LateEvent:
    """An event behind its stream's watermark, and its delay."""

    stream: str
    event: str | None
    time: int  # ms
    lateness_ms: int


@dataclass(slots=True)
class Stats:
    """Counts of a run so far. `stages` is seconds of work per stage, summed over tasks."""

    events: int = 0
    triples: int = 0
    matches: int = 0
    suppressed: int = 0  # answers that the limit per event leaves out
    muted: dict[str, int] = field(default_factory=dict)  # answers that MUTE leaves out, by query
    bad: int = 0
    lost: dict[str, int] = field(default_factory=dict)  # values that casts lose, by field
    first_lost: dict[str, str] = field(default_factory=dict)  # the first of each field, in words
    filtered: int = 0  # rows that a lift makes no event of
    skipped_groups: int = 0  # row groups of Parquet that were not read
    late: int = 0
    partial: int = 0  # partial matches, if they are asked for
    repeated: int = 0  # requests to endpoints that were sent again
    bad_geometries: int = 0  # literals that are no geometry, in each batch that has them
    refreshed: int = 0  # times that a changed knowledge base was loaded
    seconds: float = 0.0
    watermark: int | None = None  # ms, the least of all streams
    watermarks: dict[str, int | None] = field(default_factory=dict)  # by stream that is followed
    stages: dict[str, float] = field(default_factory=dict)
    solutions: dict[str, dict[str, int]] = field(default_factory=dict)  # by query and GPM
    answers: dict[str, int] = field(default_factory=dict)  # by query
    changes: dict[str, int] = field(default_factory=dict)  # by query that maintains a graph
    query_seconds: dict[str, float] = field(default_factory=dict)  # of both stages; see `add_work`
    live_runs: dict[str, int] = field(default_factory=dict)  # by query that is followed
    state_bytes: dict[str, int] = field(default_factory=dict)  # likewise
    batches: int = 0  # of a followed run
    phases: dict[str, float] = field(default_factory=dict)  # seconds of the last batch, by Spark's

    @property
    def waits_for(self) -> str | None:
        """The stream with the least watermark, for which answers wait; None if none is behind."""
        marks = self.watermarks
        if len(set(marks.values())) < 2:
            return None
        return min(marks, key=lambda stream: _time_or_never(marks[stream]))

    @property
    def slowest(self) -> tuple[str, float] | None:
        """(name, share) of a query or family with most of the work of several; else None."""
        total = sum(self.query_seconds.values())
        if len(self.query_seconds) < 2 or total < _SLOW_SECONDS:
            return None
        name = max(self.query_seconds, key=self.query_seconds.__getitem__)
        share = self.query_seconds[name] / total
        return (name, share) if share > _MOST_WORK else None

    def count_bad(self, bad_inputs: Iterable[BadInput]) -> None:
        """Count bad input, and the values that casts lose."""
        for bad in bad_inputs:
            if bad.lost is None:
                self.bad += 1
                continue
            name, count = bad.lost
            if not count:
                continue  # a remark
            where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
            self.lost[name] = self.lost.get(name, 0) + count
            self.first_lost.setdefault(name, f"{where}: {bad.reason}")

    def count_answers(self, query: str, count: int) -> None:
        """Count answers of a query, given by its title."""
        self.matches += count
        if count:
            self.answers[query] = self.answers.get(query, 0) + count

    def add_muted(self, muted: Mapping[str, int]) -> None:
        """Add answers that MUTE has left out, by the title of the query."""
        for query, count in muted.items():
            self.muted[query] = self.muted.get(query, 0) + count

    def count_made(self, plan: QueryPlan, count: int) -> None:
        """Count the answers of a query, or the changes by a query that maintains a graph."""
        title = plan.identity.title
        if plan.maintained is None:
            self.count_answers(title, count)
        elif count:
            self.changes[title] = self.changes.get(title, 0) + count

    def add_work(self, stage: str, query: str, seconds: float) -> None:
        """Add work done in a stage for a query; members of a family share its title."""
        self.add(stage, seconds)
        self.query_seconds[query] = self.query_seconds.get(query, 0.0) + seconds

    def count_solutions(self, plan: QueryPlan, rows: SolutionBatch | EventRows) -> None:
        """Count the rows from stage 1, by GPM."""
        of_query = self.solutions.setdefault(plan.identity.title, {})
        evaluated = plan.patterns.evaluated
        counts = np.bincount(np.add(rows.gpm, 1))[1:][: len(evaluated)]  # without bare rows
        for number in np.flatnonzero(counts).tolist():
            name = evaluated[number].name
            of_query[name] = of_query.get(name, 0) + int(counts[number])

    def count_members(self, family: Family, plans: Mapping[int, QueryPlan], counts: Int64s) -> None:
        """Add the counts of `counted`."""
        names = [gpm.name for gpm in family.plan.patterns.gpms]
        for row, gpm in zip(*(some.tolist() for some in np.nonzero(counts)), strict=True):
            for number in family.owners[row]:
                of_query = self.solutions.setdefault(plans[number].identity.title, {})
                of_query[names[gpm]] = of_query.get(names[gpm], 0) + int(counts[row, gpm])

    def count_unit(self, unit: UnitPlan, rows: SolutionBatch) -> None:
        """Count the rows from stage 1 of a unit, by query and GPM."""
        if unit.family is None:
            self.count_solutions(unit.plan, rows)
        elif len(rows):
            self.count_members(unit.family, unit.plans, counted(unit.family, rows))

    def add_solutions(self, solutions: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counts of a task."""
        for query, counts in solutions.items():
            of_query = self.solutions.setdefault(query, {})
            for name, count in counts.items():
                of_query[name] = of_query.get(name, 0) + count

    def add(self, stage: str, seconds: float) -> None:
        """Add work done in a stage."""
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def add_task(self, part: Stats) -> None:
        """Add the counts and stage times of a task."""
        self.events += part.events
        self.triples += part.triples
        self.matches += part.matches
        self.answers = _summed(self.answers, part.answers)
        self.changes = _summed(self.changes, part.changes)
        self.query_seconds = _summed(self.query_seconds, part.query_seconds)
        self.suppressed += part.suppressed
        self.add_muted(part.muted)
        self.bad += part.bad
        self.lost = _summed(self.lost, part.lost)
        self.first_lost = {**part.first_lost, **self.first_lost}
        self.filtered += part.filtered
        self.skipped_groups += part.skipped_groups
        self.late += part.late
        self.repeated += part.repeated
        self.bad_geometries += part.bad_geometries
        self.add_solutions(part.solutions)
        for stage, seconds in part.stages.items():
            self.add(stage, seconds)


N = TypeVar("N", int, float)


def _summed(one: Mapping[str, N], other: Mapping[str, N]) -> dict[str, N]:
    """The sum of two counts, by query."""
    return {**one, **{name: one.get(name, 0) + value for name, value in other.items()}}


_SLOW_SECONDS = 1.0
"""Seconds of work together below which no query is slow."""

_MOST_WORK = 0.5
"""Share of the work above which a query is named."""


def _time_or_never(mark: int | None) -> float:
    return float("-inf") if mark is None else mark


SHAPES_PER_BATCH = 25
"""Number of additional query shapes for which batches become larger.

A batch has a fixed cost for each query or family.
"""

MOST_LARGER = 8
"""Maximum factor by which batches grow."""


def counted(family: Family, rows: SolutionBatch) -> Int64s:
    """The rows from stage 1 of a family, by row of its table and GPM [rows, gpms]."""
    column, gpms = rows.values[QUERY], len(family.plan.patterns.gpms)
    if family.plan.inputs.windows:  # stage 1 knows no members
        return np.zeros((len(family.rows), gpms), np.int64)
    has_row = column.codes >= 0  # other rows belong to every member
    cell = table_rows_of(column.terms)[column.codes[has_row]] * gpms + rows.gpm[has_row]
    totals = np.bincount(cell, minlength=len(family.rows) * gpms).reshape(-1, gpms)
    return totals + np.bincount(rows.gpm[~has_row], minlength=gpms)


@dataclass(slots=True)
class Job:
    """Queries, their inputs, and the callbacks for everything but answers.

    Sources get the predicates of the queries, and read larger batches if many queries differ in
    more than constants.
    """

    plans: tuple[QueryPlan, ...]  # each after those whose registered streams it reads
    streams: tuple[Source, ...]  # each stream of the plans once, registered ones left out
    knowledge: KnowledgeBase
    options: StageOptions = StageOptions()
    graphs: Mapping[str, KeptGraph] = field(default_factory=dict)  # that may change from outside
    dumps: GraphDumps | None = None  # of graphs that queries maintain; written at the end
    graph_changes: list[TimedChange] = field(default_factory=list)  # of these so far, in order
    graphs_since: int = EARLIEST  # ms; what these were before is not known any more
    watch: KbWatch | None = None  # sees changes of the knowledge base, if streams are followed
    on_bad: Callable[[BadInput], None] = ignore
    on_lost: Callable[[BadInput], None] = warn_once
    on_late: Callable[[LateEvent], None] = ignore
    on_note: Callable[[str], None] = ignore  # notes for the user
    on_partial: Callable[[str, PartialAnswer], None] = ignore  # with the query's name
    on_changes: Callable[[QueryPlan, Sequence[Answer]], None] = ignore  # of maintained graphs
    on_progress: Callable[[Stats], None] = ignore
    stats: Stats = field(default_factory=Stats)
    measures: Measures | None = None  # filled by the local runtime, if they are asked for

    def __post_init__(self) -> None:
        if self.watch is not None:
            self.plans = tuple(keeping_lasting(plan, plan.inputs.kbs) for plan in self.plans)
        larger = max(1, min(MOST_LARGER, _shapes(self.plans) // SHAPES_PER_BATCH))
        self.streams = tuple(
            source.keeping(stream_predicates(self.plans, source.iri))
            .matched_by(functools.partial(stream_patterns, self.plans, source.iri))
            .in_batches(larger)
            for source in self.streams
        )

    def take_partials(self, query: int, partials: Iterable[PartialAnswer]) -> None:
        """Report partial matches of a query."""
        for partial in partials:
            self.take_partial(self.plans[query], partial)

    def take_partial(self, plan: QueryPlan, partial: PartialAnswer) -> None:
        """Report a partial match of a query."""
        self.stats.partial += 1
        self.on_partial(plan.identity.name, partial)

    def take_changes(self, plan: QueryPlan, answers: Sequence[Answer]) -> None:
        """Take answers of a query that maintains a graph."""
        self.on_changes(plan, answers)
        if self.dumps is not None:
            self.dumps.take(plan, answers)

    def take_bad(self, bad: BadInput) -> None:
        """Count bad input and report it."""
        self.stats.count_bad([bad])
        self.report_bad(bad)

    def report_bad(self, bad: BadInput) -> None:
        """Report bad input, or a lost value, that has been counted."""
        (self.on_bad if bad.lost is None else self.on_lost)(bad)


def _shapes(plans: Iterable[QueryPlan]) -> int:
    """The number of shapes of some queries; queries from one template share a shape."""
    return len({id(plan.shape or plan) for plan in plans})


class ProcessCounts:
    """The process counts since the last call of `add_to`, or since this object was made."""

    def __init__(self) -> None:
        self._requests, self._geometries = RetryCount(), BadGeometryCount()

    def add_to(self, stats: Stats) -> None:
        """Add them to the counts of a run or task."""
        stats.repeated += self._requests.take()
        stats.bad_geometries += self._geometries.take()
