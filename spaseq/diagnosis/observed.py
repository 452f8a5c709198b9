"""The observations of one reading of the streams: counts, solutions of every GPM, and window
events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spaseq.algebra.translate import EVENT
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.diagnosis.question import Question
from spaseq.gpm.graphs.vertical_partition import WindowPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST, Values
from spaseq.kb.versions import versions_of
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.records import record
from spaseq.sources.base import Source
from spaseq.windows.window_events import WindowEvent, WindowGraphs
from spaseq.windows.window_operator import WindowOperator
from spaseq.windows.window_runs import EVER, ContentEvent, WindowRun, run_of

_TOGETHER = 100_000
"""Number of windows' events that are evaluated together; an event counts in each of its windows."""

MOST_PREDICATES = 10_000
"""Maximum number of predicates of a stream that are counted."""

MOST_REASONS = 100
"""Maximum number of reasons for bad input of a stream that are distinguished."""


@dataclass(slots=True)
class SeenWindows:
    """The windows of one query.

    `rows` come from stage 1 of `plan`, in order of time, with the contents of windows. `values` are
    the values of the knowledge base, each from a time (ms) on.
    """

    plan: QueryPlan
    rows: SolutionBatch
    values: Values
    limits: Limits
    on_bad: OnBad

    def solutions(self, level: tuple[str, str] | None = None) -> SolutionBatch:
        """All rows, with the solutions on window events in the place of contents.

        With `level`, a GPM and a window, the GPM stands on the window without NEW or GONE.
        """
        plan = self.plan if level is None else _as_level(self.plan, *level)
        (_, first), *later = self.values
        operator = WindowOperator(plan, first, self.on_bad, self.limits)
        parts, done = list[SolutionBatch](), 0
        for since, knowledge in later:
            end = int(np.searchsorted(self.rows.time, since))
            parts.append(operator.advance(self.rows.take(slice(done, end)), since - 1))
            operator.use(knowledge)
            done = end
        last = int(self.rows.time.max()) if len(self.rows) else 0
        rest = self.rows.take(slice(done, len(self.rows)))
        parts += [
            operator.advance(rest, max([last, *(since for since, _ in later)])),
            operator.close(),
        ]
        rows = SolutionBatch.concat([p for p in parts if len(p)], plan.patterns.columns)
        return rows.take(np.lexsort((rows.stream, rows.k, rows.time)))

    def has_content(self, window: int) -> bool:
        """Whether a window event of a window holds an event."""
        return bool((self.rows.gpm == self._number(window)).any())

    def _number(self, window: int) -> int:
        content = self.plan.inputs.windows[window].content
        assert content is not None  # the plan keeps no groups
        return self.plan.patterns.number_of(content)

    def times(self) -> list[int]:
        """The times (ms) of all window events."""
        graphs, windows = WindowGraphs(self.plan), range(len(self.plan.inputs.windows))
        return [event.closed.time for window in windows for event in self._events(window, graphs)]

    def indices(self, window: int) -> Iterator[WindowPartition]:
        """The window events of a window, some at a time."""
        graphs = WindowGraphs(self.plan)
        part: list[WindowEvent] = []
        for event in self._events(window, graphs):
            part.append(event)
            if sum(len(each.closed.content) for each in part) > _TOGETHER:
                yield graphs.index(window, part)
                part = []
        if part:
            yield graphs.index(window, part)

    def holding(self, stream: int, time: int, k: int) -> dict[str, list[int]]:
        """The times (ms) of the window events that hold an event, by the windows' names."""
        by_name: dict[str, list[int]] = {}
        for window, window_plan in enumerate(self.plan.inputs.windows):
            for event in self._events(window, WindowGraphs(self.plan)):
                content = event.closed.content
                if any((e.stream, e.time, e.k) == (stream, time, k) for e in content):
                    by_name.setdefault(window_plan.name, []).append(event.closed.time)
        return by_name

    def _events(self, window: int, graphs: WindowGraphs) -> Iterator[WindowEvent]:
        window_plan = self.plan.inputs.windows[window]
        rows = self.rows.take(np.flatnonzero(self.rows.gpm == self._number(window)))
        runs: dict[tuple[str, ...], WindowRun] = {}
        for key, event in sorted(_content(rows, self.plan.sequence.partition),
                                 key=lambda each: graphs.order(each[1])):  # fmt: skip
            run = runs.setdefault(key, run_of(window_plan.extent))
            yield from (WindowEvent(key, closed) for closed in run.add(event))
        for key, run in runs.items():
            yield from (WindowEvent(key, closed) for closed in run.due(EVER))


def _content(
    rows: SolutionBatch, partition: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], ContentEvent]]:
    """(partition, event) of the rows of a content."""
    texts = [rows.texts(v) for v in partition]
    keys: Any = zip(*texts, strict=True) if texts else [()] * len(rows)
    places = rows.time.tolist(), rows.k.tolist(), rows.stream.tolist()
    columns: tuple[list[Any], ...] = (*places, rows.event.texts(), rows.texts(EVENT))
    events = map(ContentEvent._make, zip(*columns, strict=True))
    return zip(keys, events, strict=True)


def _as_level(plan: QueryPlan, gpm: str, window: str) -> QueryPlan:
    named = [each.name == window for each in plan.inputs.windows]

    def changed(one: GpmPlan) -> GpmPlan:
        sources = (replace(s, change=None) if named[s.window] else s for s in one.windows)
        return replace(one, windows=tuple(dict.fromkeys(sources)))

    gpms = tuple(changed(one) if one.name == gpm else one for one in plan.patterns.gpms)
    return replace(plan, patterns=replace(plan.patterns, gpms=gpms))


@dataclass(slots=True)
class StreamSeen:
    """The observations of one stream: counts, the first and last time (ms), predicates, bad input.

    `predicates` counts the triples of each predicate, by its N-Triples text. `bad` counts the bad
    inputs of each reason; `example` is the first one of each.
    """

    name: str
    iri: str
    events: int = 0
    triples: int = 0
    first: int | None = None
    last: int | None = None
    predicates: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    example: dict[str, BadInput] = field(default_factory=dict)

    def take(self, batch: EventBatch) -> None:
        """Count a batch."""
        self.triples += batch.triples
        if not len(batch):
            return
        self.events += len(batch)
        first, last = int(batch.time.min()), int(batch.time.max())
        self.first = first if self.first is None else min(first, self.first)
        self.last = last if self.last is None else max(last, self.last)
        counts = np.bincount(batch.p) if len(batch.p) else np.empty(0, np.int64)
        for code in np.flatnonzero(counts).tolist():
            text = batch.terms[code]
            if text in self.predicates or len(self.predicates) < MOST_PREDICATES:
                self.predicates[text] += int(counts[code])

    def take_bad(self, bad: BadInput) -> None:
        """Count bad input."""
        if bad.reason in self.bad or len(self.bad) < MOST_REASONS:
            self.bad[bad.reason] += 1
            self.example.setdefault(bad.reason, bad)


@record
class Observed:
    """The observations of one reading of all streams of a question.

    Attributes:
        question: the question.
        streams: in the order of the query.
        rows: from stage 1 of the plan `question.watched`, in order of instant and stream: the
            solutions of all GPMs, and bare rows (`gpm` is BARE). Without PARTITION BY, an event
            without a solution has one bare row. With it, each event has a bare row for each of its
            partitions. On windows, these are the solutions on window events.
        values: of the knowledge base.
        needed: the numbers of the values that GPMs see, from the first event to the last one.
        limits: of the evaluation.
        failed: by reason, the number of events that exceed a limit or lack an endpoint's answer.
        windows: the windows of the query, if any.
    """

    question: Question
    streams: tuple[StreamSeen, ...]
    rows: SolutionBatch
    values: GraphValues
    needed: range
    limits: Limits = DEFAULT_LIMITS
    failed: Mapping[str, int] = field(default_factory=dict)
    windows: SeenWindows | None = None

    def counts(self, name: str) -> tuple[int, int]:
        """(solutions, events with a solution) of a GPM."""
        mask = self.rows.gpm == self.question.gpm_number(name)
        return int(mask.sum()), _events(self.rows, mask)

    @property
    def knowledge(self) -> KnowledgeBase:
        """The last value that GPMs see."""
        return self.values.values[self.needed[-1]]

    @property
    def solutions(self) -> SolutionBatch:
        """The rows without the bare ones."""
        return self.rows.take(np.flatnonzero(self.rows.gpm != BARE))


def _events(rows: SolutionBatch, mask: Bools) -> int:
    """Number of events of some rows, which are in order of instant and stream."""
    places: list[Int64s] = [c[mask].astype(np.int64) for c in (rows.time, rows.k, rows.stream)]
    if not len(places[0]):
        return 0
    new = np.logical_or.reduce([column[1:] != column[:-1] for column in places])
    return 1 + int(new.sum())


class Observer:
    """Collects the observations of a question's streams, batch by batch."""

    def __init__(
        self, question: Question, knowledge: KnowledgeBase, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._question, self._limits = question, limits
        inputs = question.plan.inputs
        self._streams = {
            iri: StreamSeen(name, iri)
            for iri, name in zip(inputs.streams, inputs.stream_names, strict=True)
        }
        self._failed = Counter[str]()
        self._values = GraphValues.of(knowledge, inputs.kbs)
        self._stages = dict[int, PatternStage]()  # by the number of the value
        self._rows: list[SolutionBatch] = []

    def read(self, source: Source) -> None:
        """Read a stream to its end.

        Raises:
            InputError: it cannot be read.
        """
        seen = self._streams[source.iri]
        self.take(source.keeping(None).open(seen.take_bad), source.iri)

    def take(self, batches: Iterable[EventBatch], iri: str) -> None:
        """Take the events of a stream."""
        seen = self._streams[iri]
        for batch in batches:
            seen.take(batch)
            for number, part in self._values.parts(batch):
                rows = self._stage(number).match(part)
                if len(rows):
                    self._rows.append(rows.compact())

    def _stage(self, number: int) -> PatternStage:
        """Evaluates with a value of the knowledge base."""
        if number not in self._stages:
            given = self._question.watched, self._values.values[number], self._fail, self._limits
            self._stages[number] = PatternStage(*given)
        return self._stages[number]

    def observed(self) -> Observed:
        """All that was collected."""
        columns = self._question.watched.patterns.columns
        rows = SolutionBatch.concat(self._rows, columns)
        order = np.lexsort((rows.stream, rows.k, rows.time))
        if not (np.diff(order) == 1).all():
            rows = rows.take(order)
        windows = None
        if self._question.watched.inputs.windows:
            values = [*zip(self._values.since, self._values.values, strict=True)]
            given = self._question.watched, rows, values, self._limits, self._fail
            windows = SeenWindows(*given)
            rows = windows.solutions()
        return Observed(
            self._question,
            tuple(self._streams.values()),
            rows,
            self._values,
            self._needed(windows),
            self._limits,
            self._failed,
            windows,
        )

    def _needed(self, windows: SeenWindows | None) -> range:
        """The numbers of the values that GPMs see."""
        times = [] if windows is None else windows.times()
        if any(gpm.streams for gpm in self._question.plan.patterns.gpms):
            seen = (t for s in self._streams.values() for t in (s.first, s.last))
            times += [time for time in seen if time is not None]
        if not times:
            return range(1)
        return range(self._values.number(min(times)), self._values.number(max(times)) + 1)

    def _fail(self, bad: BadInput) -> None:
        if bad.reason in self._failed or len(self._failed) < MOST_REASONS:
            self._failed[bad.reason] += 1


# --- The values of the knowledge base at the times of events, where its graphs are replaced -------


@record
class GraphValues:
    """The values of a knowledge base, and the time (ms) since which each holds; ascending."""

    since: tuple[int, ...]
    values: tuple[KnowledgeBase, ...]

    @classmethod
    def of(cls, knowledge: KnowledgeBase, graphs: Collection[str]) -> GraphValues:
        """The values of a knowledge base that has versions of some graphs."""
        values = {EARLIEST: knowledge}
        given = ((time, iri, name) for iri in graphs for time, name in versions_of(knowledge, iri))
        for time, iri, name in sorted(given):
            last = [*values.values()][-1]
            values[time] = replace(last, graphs={**last.graphs, iri: knowledge.graphs[name]})
        return cls((*values,), (*values.values(),))

    def number(self, time: int) -> int:
        """The number of the value at a time (ms)."""
        return bisect_right(self.since, time) - 1

    def numbers(self, batch: EventBatch) -> Int64s:
        """The number of the value that each event of a batch sees."""
        value_numbers: Int64s = np.searchsorted(np.array(self.since), batch.time, side="right") - 1
        return value_numbers

    def parts(self, batch: EventBatch) -> Iterator[tuple[int, EventBatch]]:
        """The events of a batch by their values' numbers."""
        if len(self.since) == 1:
            yield 0, batch
            return
        numbers = self.numbers(batch)
        for number in np.unique(numbers).tolist():
            yield number, batch.take(np.flatnonzero(numbers == number))
