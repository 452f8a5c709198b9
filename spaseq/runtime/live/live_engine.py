"""The engine of a live run: messages from logs in, answers in order out.

What it gives depends only on the logs: late events are judged in the order of their own stream, an
event's lead over the clock by the arrival that the log has. So an engine that is restored and reads
the same messages again gives the same answers again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from spaseq.algebra.answers import Answer
from spaseq.errors import RunError
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.logs.stream_log import Entry, Message, Partitions, Raised
from spaseq.options import FileSourceSettings, StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.arrivals.arrived_splits import before_horizon
from spaseq.runtime.arrivals.horizon import Horizon
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.job.group_stage import GroupStage, groups
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.state_limits import check_state
from spaseq.runtime.live.message_events import message_events
from spaseq.runtime.live.partition_clocks import PartitionClocks
from spaseq.sources.broker_stream import BrokerStream
from spaseq.stages.sequence import PatternStage

_NEVER = -(2**63) + 1


class LiveEngine:
    """The stages of all queries of a job, and the clocks of its streams.

    Args:
        job: what to run; bad input and late events go to it, and it is told the counts.
        settings: how late events may be, and how far ahead.
        limits: of each query's state.
    """

    def __init__(
        self, job: Job, settings: FileSourceSettings, limits: StateLimits | None = None
    ) -> None:
        self._job, self._settings = job, settings
        self._state_limits = limits or StateLimits()
        self._clocks = {stream.iri: PartitionClocks(settings.delay_ms) for stream in job.streams}
        given = job.plans, job.knowledge, job.options, job.take_bad
        self._groups = [GroupStage(job.plans, group, *given[1:]) for group in groups(job.plans)]
        self._group_of = {n: stage for stage in self._groups for n in stage.group.numbers}
        bounds = job.options.limits
        self._matchers = {
            iri: [
                (number, PatternStage(plan, job.knowledge, job.take_bad, bounds))
                for number, plan in enumerate(job.plans)
                if iri in plan.inputs.streams
            ]
            for iri in self._clocks
        }

    def take(self, stream: BrokerStream, entries: Sequence[Entry]) -> None:
        """Take the next entries of a stream's log."""
        for place, some in groupby(entries, _place):
            if place is None:
                for entry in some:
                    if isinstance(entry, Partitions):
                        self._clocks[stream.iri].add(entry.count)
                    elif isinstance(entry, Raised):
                        self._clocks[stream.iri].of_partition(entry.partition).raise_to(entry.time)
            else:
                messages = [entry for entry in some if isinstance(entry, Message)]
                self._take_messages(stream, *place, messages)

    def _take_messages(
        self, stream: BrokerStream, arrival: int, partition: int, messages: Sequence[Message]
    ) -> None:
        """Take messages of one partition that came together."""
        clocks, stats, name = self._clocks[stream.iri], self._job.stats, stream.describe()
        at = time.perf_counter()
        on_bad = self._job.take_bad
        if isinstance(stream, LiftedBroker):
            batches = stream.events(messages, name, on_bad)
        else:
            batches = message_events(messages, stream.options, name, on_bad)
        for batch in batches:
            own = clocks.of_partition(partition)
            horizon = self._horizon(arrival, clocks.latest, batch)
            admitted = before_horizon(batch, horizon, own, name, self._job.take_bad)
            in_time, late = clocks.admit(partition, admitted)
            stats.events += len(batch)
            stats.triples += batch.triples
            stats.filtered += batch.filtered
            stats.late += len(late)
            for event in late:
                self._job.on_late(event)
            stats.add("ingest", time.perf_counter() - at)
            self._match(stream.iri, in_time)
            at = time.perf_counter()

    def _horizon(self, arrival: int, latest: int | None, batch: EventBatch) -> Horizon:
        """The horizon of messages that came together; a stream's first event starts its clock."""
        if latest is None and len(batch):
            latest = int(batch.time[0])
        start = arrival if latest is None else max(arrival, latest)
        return Horizon(start, self._settings.max_ahead_ms)

    def _match(self, iri: str, batch: EventBatch) -> None:
        at = time.perf_counter()
        for number, matcher in self._matchers[iri]:
            rows = matcher.match(batch)
            if len(rows):
                self._job.stats.count_solutions(self._job.plans[number], rows)
                self._group_of[number].push(number, rows.compact())
        self._job.stats.add("graph patterns", time.perf_counter() - at)

    def clocks(self) -> dict[tuple[str, int], StreamClock]:
        """The clock of each partition, by stream IRI and the partition's number."""
        return {
            (iri, number): clock
            for iri, clocks in self._clocks.items()
            for number, clock in enumerate(clocks.partitions)
        }

    def advance(self) -> Iterator[tuple[int, Answer]]:
        """(number of the query, answer) of all answers that the clocks make final."""
        at, stats = time.perf_counter(), self._job.stats
        stats.watermarks = {iri: clock.watermark for iri, clock in self._clocks.items()}
        known = [mark for mark in stats.watermarks.values() if mark is not None]
        stats.watermark = min(known) if len(known) == len(self._clocks) else None
        marks = {
            iri: _NEVER if mark is None else mark - 1 for iri, mark in stats.watermarks.items()
        }
        for group in self._groups:
            found = group.advance(marks)
            for number, partials in group.partials():
                self._job.take_partials(number, partials)
            for number, answers in found:
                for answer in answers:
                    yield number, answer
        stats.suppressed = sum(group.suppressed for group in self._groups)
        stats.add("sequence", time.perf_counter() - at)

    def snapshot(self) -> list[Any]:
        """The state as a value for `LiveDirectory.save_state`; call it after `advance` only.

        Raises:
            RunError: it exceeds a limit.
        """
        clocks = [[iri, clock.as_json()] for iri, clock in self._clocks.items()]
        states = [group.snapshot() for group in self._groups]
        stats = self._job.stats
        for group, state in zip(self._groups, states, strict=True):
            plan, live = group.plans[group.group.numbers[0]], group.live_runs()
            for number, runs in live.items():
                stats.live_runs[group.plans[number].identity.name] = runs
            stats.state_bytes[plan.identity.name] = len(state)
            self._check(plan, sum(live.values()), len(state))
        return [clocks, states]

    def _check(self, plan: QueryPlan, rows: int, size: int) -> None:
        columns = plan.patterns.columns
        check_state(
            self._state_limits, plan, 0, rows, size, lambda: SolutionBatch.concat([], columns)
        )

    def restore(self, state: list[Any]) -> None:
        """Go on from a snapshot; RunError if it is damaged."""
        try:
            clocks, states = state
            self._clocks = {iri: PartitionClocks.of_json(value) for iri, value in clocks}
            pairs = list(zip(self._groups, states, strict=True))
        except (TypeError, ValueError) as error:
            raise RunError(f"the state of the run is damaged: {error}") from error
        for group, snapshot in pairs:
            group.restore(snapshot)


def _place(entry: Entry) -> tuple[int, int] | None:
    """What messages that are read together have in common: their arrival and their partition."""
    return (entry.arrival, entry.partition) if isinstance(entry, Message) else None
