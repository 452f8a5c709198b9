"""A query that was added for events of the past: it reads the logs until it has caught up.

It is evaluated apart from all others, which do not wait. Its clocks begin as they were at the point
from which it reads, so late events and instants are those that the run has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.logs.stream_log import MessageReader, StreamLog
from spaseq.options import StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import asks_endpoints
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.live_stream import LiveStream
from spaseq.runtime.live.past_points import HistoryGone, PastPoint, PastPoints
from spaseq.runtime.live.query_changes import StandingQuery
from spaseq.runtime.pushed import Tolerated

_AT_ONCE = 2**18  # bytes of a log that are read before others have their turn


class CatchUp:
    """A query on its way to the end of the logs.

    Args:
        job: of the run.
        plan: the query.
        streams: all streams of the run.
        logs: their logs.
        start: where it begins.
        limits: of its state.
        since: it takes no event before this time (ms).

    Attributes:
        put_at: the next record of each stream's log when the query was put.
        reads_past: whether all that it has read was logged before the query was put.
    """

    def __init__(
        self,
        job: Job,
        plan: QueryPlan,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        start: PastPoint,
        limits: StateLimits,
        since: int,
    ) -> None:
        self.plan, self.start, self.reads_past = plan, start, True
        self.put_at: Mapping[str, int] = {}
        own = Job((plan,), (), job.knowledge, job.options, stats=Stats())
        self.engine = LiveEngine(own, streams, limits, Tolerated.ALL, since)
        if start.streams:
            self.engine.restore_streams(start.streams)
        self._readers: dict[str, MessageReader] = {
            iri: log.reader(min(start.places.get(iri, 0), log.log.end)) for iri, log in logs.items()
        }

    @property
    def places(self) -> dict[str, int]:
        """The record of each stream's log that it reads next."""
        return {iri: reader.next for iri, reader in self._readers.items()}

    @property
    def failure(self) -> str | None:
        """Why it cannot go on."""
        return self.engine.queries.queries[0].failure

    def advance(self, until: Mapping[str, int]) -> Sequence[Answer]:
        """Read a little more, at most to some places; the answers."""
        places = self.places
        self.reads_past = any(places.get(iri, 0) < end for iri, end in self.put_at.items())
        for iri, reader in self._readers.items():
            end = until.get(iri, reader.next)
            if self.reads_past:
                end = min(end, max(reader.next, self.put_at.get(iri, 0)))
            entries = reader.read(_AT_ONCE, end)
            if entries:
                self.engine.take(iri, entries)
        answers = [answer for _, answer in self.engine.advance()]
        for reason in self.engine.check_waiting().values():
            self.engine.queries.fail(self.engine.queries.queries[0], reason)
        return answers

    @property
    def watermark(self) -> int:
        """The time (ms) at or before which no event of its streams follows."""
        marks = self.engine.marks()
        return min(marks[iri] for iri in self.plan.inputs.streams)

    def snapshot(self) -> bytes:
        """The state of the query, after `advance`."""
        queries = self.engine.queries
        return queries.unit(queries.queries[0]).snapshot()

    def close(self) -> None:
        """Close the files."""
        for reader in self._readers.values():
            reader.close()


class CatchUps(dict[str, CatchUp]):
    """The queries that have not caught up, by name, and the points where others can begin."""

    def __init__(
        self,
        job: Job,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        limits: StateLimits,
    ) -> None:
        super().__init__()
        self._job, self._streams, self._logs, self._limits = job, streams, logs, limits
        self.points = PastPoints()

    def point(self, plan: QueryPlan, since: int) -> PastPoint:
        """Where a query begins that is to see all events from a time (ms) on.

        Raises:
            HistoryGone: some of them may have been dropped from the logs.
            UsageError: it reads a stream that another query registers, or asks an endpoint.
        """
        self._check(plan)
        point = self.points.before(since, plan.inputs.streams)
        if point is not None:
            return point
        if any(log.log.first for log in self._logs.values()):
            raise HistoryGone("events of that time may have been dropped from the logs")
        return self.first(plan)

    def first(self, plan: QueryPlan) -> PastPoint:
        """Where the logs begin now; UsageError as from `point`."""
        self._check(plan)
        return PastPoint({iri: log.log.first for iri, log in self._logs.items()}, [])

    def _check(self, plan: QueryPlan) -> None:
        if asks_endpoints(plan, self._job.knowledge):
            raise UsageError(
                f"query {plan.identity.title} cannot begin in the past: it asks an endpoint, which "
                "need not answer as it would have answered then. Add it without from"
            )
        for iri in plan.inputs.streams:
            if iri not in self._logs:
                raise UsageError(
                    f"query {plan.identity.title} cannot begin in the past: no log keeps the "
                    f"events of the stream <{iri}>"
                )

    def begin(
        self, query: StandingQuery, plan: QueryPlan, start: PastPoint, put_at: Mapping[str, int]
    ) -> None:
        """Let a query read from a point on; `put_at` is as for `CatchUp`."""
        self[query.name] = self.made(plan, start, query.since, put_at)

    def made(
        self, plan: QueryPlan, start: PastPoint, since: int, put_at: Mapping[str, int]
    ) -> CatchUp:
        """A query that reads from a point on, and is not among these."""
        given = self._job, plan, self._streams, self._logs, start, self._limits
        own = CatchUp(*given, since)
        own.put_at = put_at
        return own

    def starts(self) -> list[Any]:
        """Where each query began, and was put, as values that a state can have."""
        return [(name, tuple(own.start), dict(own.put_at)) for name, own in self.items()]
