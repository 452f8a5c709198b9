"""The window events of a query, of the rows that its streams gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spaseq.algebra.translate import EVENT
from spaseq.gpm.graphs.window_partition import WindowPartition
from spaseq.kb.knowledge_versions import Values
from spaseq.limits import Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.windows.window_events import WindowEvent, WindowGraphs
from spaseq.windows.window_operator import WindowOperator
from spaseq.windows.window_runs import EVER, ContentEvent, WindowRun, run_of

_TOGETHER = 100_000
"""How many events of windows are looked at together; an event counts in each of its windows."""


@dataclass(slots=True)
class SeenWindows:
    """The windows of one query.

    `rows` are what stage 1 of `plan` gives, in order of time: the contents of windows among them.
    `values` are what the knowledge base is, each from a time (ms) on.
    """

    plan: QueryPlan
    rows: SolutionBatch
    values: Values
    limits: Limits
    on_bad: OnBad

    def solutions(self, as_levels: bool = False) -> SolutionBatch:
        """All rows, with the solutions on window events in the place of contents.

        With `as_levels` a GPM on NEW or GONE has the solutions of its windows themselves.
        """
        plan = _as_levels(self.plan) if as_levels else self.plan
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


def _as_levels(plan: QueryPlan) -> QueryPlan:
    gpms = tuple(
        replace(gpm, windows=tuple(dict.fromkeys(replace(s, change=None) for s in gpm.windows)))
        for gpm in plan.patterns.gpms
    )
    return replace(plan, patterns=replace(plan.patterns, gpms=gpms))
