"""The engine of a live run: messages from logs in, answers in order out.

Its answers depend only on the logs: late events are judged in the order of their stream, and an
event's lead over the clock by its logged arrival. So an engine that is restored and reads the same
messages again gives the same answers again. Queries come and go between two calls of `advance`;
clocks and instants belong to the streams, so they do not depend on the queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answers import Answer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.connectors.base import by_kind, is_heartbeat
from spaseq.errors import OtherStateError, RunError
from spaseq.kb.knowledge_versions import TimedChange
from spaseq.logs.messages import MessageColumns
from spaseq.logs.stream_log import Entry, Heartbeat, Partitions
from spaseq.options import StageOptions, StateLimits
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.program_events import FewEvents, gathered
from spaseq.runtime.arrivals.arrived_batch import before_horizon
from spaseq.runtime.arrivals.passing_time import Watched
from spaseq.runtime.arrivals.stream_clock import StreamClock, event_horizon
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.state_limits import check_size, too_many_waiting
from spaseq.runtime.live.heartbeats import take_heartbeats
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.partition_clocks import PartitionClocks
from spaseq.runtime.live.stream_events import StreamEvents, arrival_times
from spaseq.runtime.pushed import PushedQueries, PushedState, Tolerated
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit
from spaseq.stages.unit_stages import Rows, StageFactory

_NEVER = -(2**63) + 1

AT_ONCE = 4 * 2**20
"""Bytes of a log that an engine in this process takes between two requests for answers."""


class EngineLost(RunError):
    """An engine has lost its state, so only a new one can continue, from the logs."""


@dataclass(slots=True)
class StreamCounts:
    """The counts of a stream so far."""

    accepted: int = 0
    bad: int = 0
    late: int = 0


class LiveEngine:
    """The stages of all queries of a job, and the clocks of its streams.

    Args:
        job: the first queries, and the knowledge; it gets bad input, late events and the counts.
            Its streams are not used.
        streams: all streams of the run.
        limits: of each query's state.
        tolerated: which failures of queries do not end the run.
        since: events before this time (ms) are for no query.
    """

    at_once = AT_ONCE

    def __init__(
        self,
        job: Job,
        streams: Sequence[LiveStream],
        limits: StateLimits | None = None,
        tolerated: Tolerated = Tolerated.NONE,
        since: int | None = None,
    ) -> None:
        self._since = since
        self._job, self.limits = job, limits or StateLimits()
        self._tolerated = tolerated
        self._streams = {stream.iri: stream for stream in streams}
        self._clocks = {s.iri: PartitionClocks(s.settings.delay_ms) for s in streams}
        self._events = {s.iri: StreamEvents(s.source.options.messages) for s in streams}
        self.counts = {iri: StreamCounts() for iri in self._streams}
        self._use(job.plans)

    def _use(self, plans: Sequence[QueryPlan]) -> None:
        families = self._tolerated is Tolerated.ALL  # they fail together
        self.queries = PushedQueries(plans, self._evaluation(), families, self._tolerated)
        self._read()

    def _evaluation(self) -> StageFactory:
        """The factory of the queries' stages."""
        how = StageFactory(self._job.knowledge, self._options, self._job.take_bad)
        self._use_versions(how)
        return how

    def _use_versions(self, how: StageFactory) -> None:
        """Pass the changes of graphs so far to the factory of stages."""
        self.versions = how.versions
        for change in self._job.graph_changes:
            how.versions.add(change)
        how.versions.drop(min(self.marks().values(), default=_NEVER))

    @property
    def _options(self) -> StageOptions:
        """The options of the stages."""
        return self.limits.stages(self._job.options)

    def _read(self) -> None:
        """Set up reading of the streams for the present queries."""
        self._predicates: dict[str, tuple[str, ...] | None] = dict.fromkeys(self._streams, ())
        self._sources = {iri: stream.source.keeping(()) for iri, stream in self._streams.items()}
        for query in self.queries.queries:
            self._read_also(query.plan)

    def _read_also(self, plan: QueryPlan) -> None:
        """Set up reading of the streams for one more query."""
        for iri in self._streams.keys() & {*plan.inputs.streams}:
            known, own = self._predicates[iri], stream_predicates([plan], iri)
            both = None if known is None or own is None else tuple(sorted({*known, *own}))
            if both != known:
                self._predicates[iri] = both
                self._sources[iri] = self._streams[iri].source.keeping(both)

    def add(self, plan: QueryPlan) -> None:
        """Add a query, or replace the one of its title, for the messages from now on.

        Raises:
            UsageError: as from `PushedQueries.add`. Nothing has changed.
        """
        title = plan.identity.title
        replaced = self.queries.query_of(title)
        self.queries.add(plan, replaced)
        added = self.queries.query_of(title)
        if replaced is not None or added is None:
            self._read()
        else:  # reading all queries again would take longer with each one
            self._read_also(added.plan)

    def adopt(self, plan: QueryPlan, other: PushedQueries) -> None:
        """Add a query with its state from an engine that has it alone."""
        self.queries.adopt(plan, other)
        self._read()

    def remove(self, query: PushedQuery) -> None:
        """Remove a query with its state."""
        self.queries.remove(query)
        self._read()

    def change_graph(self, change: TimedChange) -> None:
        """Change a graph; no reader of it was given an event at or after that time."""
        self.queries.change_graph(change)

    def first_change(self, graph: str) -> int:
        """The time (ms) after all events, and all windows, that readers of a graph have had."""
        read = {
            iri
            for unit, sources in self.queries.running.sources().items()
            if graph in unit.queries[0].plan.inputs.kbs
            for iri in sources & self._clocks.keys()
        }
        clocks = [clock for iri in read for clock in self._clocks[iri].partitions]
        marks = [self._clocks[iri].watermark for iri in read]
        known = [clock.latest for clock in clocks]
        return max([_NEVER, *(time + 1 for time in (*known, *marks) if time is not None)])

    def take(self, iri: str, entries: Sequence[Entry]) -> None:
        """Take the next entries of a stream's log."""
        self._match_all(self._in_time(iri, entries))

    def _in_time(self, iri: str, entries: Sequence[Entry]) -> Iterator[EventBatch]:
        """The events that are in time, numbered."""
        for entry in in_turn(entries):
            if isinstance(entry, MessageColumns):
                if is_heartbeat(entry.media_type[0]):
                    clock = self._clocks[iri].of_partition(int(entry.partition[0]))
                    bad = self._job.stats.bad
                    take_heartbeats(self._streams[iri], entry, clock, self._job.take_bad)
                    self.counts[iri].bad += self._job.stats.bad - bad
                else:
                    yield from self._events_in_time(iri, entry)
            elif isinstance(entry, Partitions):
                self._clocks[iri].add(entry.count)
            elif isinstance(entry, Heartbeat):
                self._clocks[iri].of_partition(entry.partition).raise_to(entry.time)

    def _events_in_time(self, iri: str, messages: MessageColumns) -> Iterator[EventBatch]:
        """The events in time of messages of one partition that arrived together."""
        arrival, partition = int(messages.arrival[0]), int(messages.partition[0])
        source, clocks, stats = self._sources[iri], self._clocks[iri], self._job.stats
        counts, name, on_bad = self.counts[iri], source.describe(), self._job.take_bad
        at, bad = time.perf_counter(), stats.bad
        for batch in self._read_events(iri, messages):
            clock = clocks.of_partition(partition)
            ahead_ms = self._streams[iri].settings.max_ahead_ms
            horizon = event_horizon(self._clocks[iri].latest, arrival, batch.time, ahead_ms)
            given = batch.time, arrival, clocks.least(partition)
            batch = batch.with_time(arrival_times(*given, horizon, clock.latest))
            admitted = before_horizon(batch, horizon, clock, name, on_bad)
            in_time, late = clocks.admit(partition, admitted, arrival)
            counts.accepted += len(batch)
            counts.late += len(late)
            stats.events += len(batch)
            stats.triples += batch.triples
            stats.filtered += batch.filtered
            stats.late += len(late)
            for event in late:
                self._job.on_late(event)
            stats.add("ingest", time.perf_counter() - at)
            yield in_time
            at = time.perf_counter()
        counts.bad += stats.bad - bad

    def _read_events(self, iri: str, messages: MessageColumns) -> Iterator[EventBatch]:
        """The events of messages that arrived together."""
        return self._events[iri].read(self._sources[iri], messages, self._job.take_bad)

    def _match_all(self, batches: Iterable[EventBatch]) -> None:
        """Match events; those that came one by one together."""
        if self._since is not None:
            since = self._since
            batches = (each.take(np.flatnonzero(each.time >= since)) for each in batches)
        for some in gathered(batches, thresholds.current.gathered_triples):
            self._match(some)

    def _match(self, events: EventBatch | FewEvents) -> None:
        at = time.perf_counter()
        solutions = list[tuple[PushedUnit, Rows]]()
        for unit, rows in self.queries.match(events):
            if len(rows):
                if not unit.is_family:
                    self._job.stats.count_solutions(unit.queries[0].plan, rows)
                solutions.append((unit, rows if isinstance(rows, EventRows) else rows.compact()))
        self.queries.push(solutions)
        self._job.stats.add("graph patterns", time.perf_counter() - at)

    def duplicates(self, iri: str) -> int:
        """Number of events of a stream that were dropped because their graph was seen before."""
        return self._events[iri].duplicates

    def clocks(self) -> dict[tuple[str, int], StreamClock]:
        """The clock of each partition, by stream IRI and the partition's number."""
        return {
            (iri, number): clock
            for iri, clocks in self._clocks.items()
            for number, clock in enumerate(clocks.partitions)
        }

    def watermark(self, iri: str) -> int | None:
        """The watermark (ms) of a stream; None if it has none yet."""
        return self._clocks[iri].watermark

    def streams_read(self, iris: Iterable[str]) -> dict[str, PartitionClocks]:
        """The clocks of some streams, by IRI."""
        return {iri: self._clocks[iri] for iri in iris}

    def goes_on(self, iri: str) -> bool:
        """Whether the time of a stream advances by itself."""
        stream = self._streams[iri]
        return stream.takes_clock or stream.settings.idle_ms is not None

    def marks(self) -> dict[str, int]:
        """By stream IRI the time (ms) at or before which no event follows."""
        known = {iri: clock.watermark for iri, clock in self._clocks.items()}
        return {iri: _NEVER if mark is None else mark - 1 for iri, mark in known.items()}

    def watched(self) -> Watched:
        """The queries that wait for time after the last `advance`."""
        return self.queries.running.watched(self.marks())

    def advance(self) -> list[tuple[QueryPlan, Answer]]:
        """All answers that are final at the clocks, each with its query."""
        at, stats = time.perf_counter(), self._job.stats
        answers = self.queries.advance_streams(self.marks())
        queries = self.queries.queries
        for number, waiting in self.queries.partials():
            self._job.take_partial(queries[number].plan, waiting)
        self._tell()
        stats.query_seconds = dict(self.queries.seconds)
        stats.add("sequence", time.perf_counter() - at)
        return [(queries[number].plan, answer) for number, answer in answers]

    def _tell(self) -> None:
        """Report the watermarks of the streams, and the counts of left-out answers."""
        stats = self._job.stats
        stats.watermarks = {iri: clock.watermark for iri, clock in self._clocks.items()}
        known = [mark for mark in stats.watermarks.values() if mark is not None]
        stats.watermark = min(known) if known and len(known) == len(self._clocks) else None
        stats.suppressed, stats.muted = self.queries.suppressed, self.queries.muted

    def snapshot(self) -> list[Any]:
        """The state as a value for `LiveDirectory.save_state`; call it after `advance` only.

        Raises:
            RunError: a query exceeds a limit, and failures are not tolerated.
        """
        states = self.queries.snapshot()
        live_runs, state_bytes = dict[str, int](), dict[str, int]()
        for titles, state in states[0]:
            query = self.queries.query_of(titles[0])
            assert query is not None
            name = query.plan.identity.name  # the first one's stands for a family
            live_runs[name] = self.queries.unit(query).sequence.live_runs()
            state_bytes[name] = len(state)
        self._job.stats.live_runs, self._job.stats.state_bytes = live_runs, state_bytes
        return [self.streams_as_json(), self.counts_as_json(), states]

    def streams_as_json(self) -> list[Any]:
        """The clocks and other state of the streams, for `restore_streams`."""
        clocks = [[iri, clock.as_json()] for iri, clock in self._clocks.items()]
        return [clocks, [[iri, some.as_json()] for iri, some in self._events.items()]]

    def use_settings(self) -> None:
        """Use the delays of the present settings from now on, whatever a snapshot has."""
        for iri, stream in self._streams.items():
            self._clocks[iri].use_delay(stream.settings.delay_ms)

    def restore_streams(self, value: list[Any]) -> None:
        """Continue from a result of `streams_as_json`; streams that are not configured any more are
        left out.
        """
        clocks, events = value
        for iri, values in clocks:
            if iri in self._streams:
                self._clocks[iri] = PartitionClocks.of_json(values)
        for iri, values in events:
            if iri in self._streams:
                self._events[iri].restore(values)

    def check_waiting(self) -> dict[str, str]:
        """The queries that have exceeded the limit on partial matches, with the reason.

        Raises:
            RunError: there is one, and failures are not tolerated.
        """
        by_title = {}
        for query, excess in self.queries.exceeded().items():
            plan, none = query.plan, _no_rows(query)
            error = too_many_waiting(self.limits, plan, 0, 0, excess, none)
            if self._tolerated is Tolerated.NONE:
                raise error
            by_title[plan.identity.title] = str(error)
        return by_title

    def check_sizes(self) -> dict[str, str]:
        """The queries whose state was too large at the last snapshot, with the reason.

        Raises:
            RunError: there is one, and failures are not tolerated.
        """
        by_title = {}
        for unit in self.queries.running:
            for query, size in self._state_sizes(unit):
                try:
                    check_size(self.limits, query.plan, 0, size, partial(_no_rows, query))
                except RunError as error:
                    if self._tolerated is Tolerated.NONE:
                        raise
                    by_title[query.plan.identity.title] = str(error)
        return by_title

    def _state_sizes(self, unit: PushedUnit) -> list[tuple[PushedQuery, int]]:
        """The bytes of a unit's queries; none if all together are few.

        Members of a family share its bytes by their partial matches.
        """
        queries = unit.queries
        size = self._job.stats.state_bytes.get(queries[0].plan.identity.name, 0)
        if size <= self.limits.bytes:
            return []
        if len(queries) == 1:
            return [(queries[0], size)]
        sizes = [sum(unit.live_states(query).waiting.values()) for query in queries]
        total = max(1, sum(sizes))
        return [(query, size * n // total) for query, n in zip(queries, sizes, strict=True)]

    def begin_at(self, streams: list[Any], plans: Sequence[QueryPlan] | None) -> None:
        """Begin at a result of `streams_as_json`, with queries that have no state yet."""
        if streams:
            self.restore_streams(streams)
        if plans is not None:
            self._use(plans)
        self._tell()

    def counts_as_json(self) -> list[Any]:
        """The counts of each stream, for `restore_counts`."""
        return [[iri, [c.accepted, c.bad, c.late]] for iri, c in self.counts.items()]

    def restore_counts(self, counts: list[Any]) -> None:
        """Continue from a result of `counts_as_json`."""
        self.counts.update((iri, StreamCounts(*c)) for iri, c in counts if iri in self._streams)

    def restore(self, state: list[Any], plans: Sequence[QueryPlan] | None = None) -> None:
        """Restore from a snapshot, with its queries.

        Raises:
            OtherStateError: a query's state is of an incompatible version. Nothing has changed.
            RunError: the snapshot is damaged.
        """
        try:
            streams, counts, states = state
            self._restore_queries(states, plans)
            self.restore_streams(streams)
            self.restore_counts(counts)
        except (TypeError, ValueError) as error:
            raise RunError(f"the state of the run is damaged: {error}") from error
        self._tell()

    def _restore_queries(self, states: PushedState, plans: Sequence[QueryPlan] | None) -> None:
        before = [query.plan for query in self.queries.queries]
        if plans is not None:
            self._use(plans)
        try:
            self.queries.restore(states)
        except OtherStateError:
            if plans is not None:
                self._use(before)
            raise


def _no_rows(query: PushedQuery) -> SolutionBatch:
    return SolutionBatch.empty(query.plan.patterns.columns)


def in_turn(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries in order. Messages that arrived together for one partition form a block.

    Heartbeats have separate blocks.
    """
    for _, some in groupby(entries, type):
        together = list(some)
        blocks = [entry for entry in together if isinstance(entry, MessageColumns)]
        if blocks:
            block = MessageColumns.concat(blocks)
            for run in block.runs(block.arrival, block.partition):
                yield from by_kind(run)
        else:
            yield from together


EngineMaker = Callable[[Job, Sequence[LiveStream], StateLimits, Tolerated], LiveEngine]
"""Makes the engine of a run, for the streams and limits of the run."""
