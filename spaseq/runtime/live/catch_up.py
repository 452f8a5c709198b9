"""A query that was added for events of the past: it reads the logs until it has caught up.

It is evaluated apart from all others, which do not wait. Its clocks begin as they were at the point
from which it reads, so late events and instants are those that the run has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spaseq.algebra.answers import Answer
from spaseq.logs.stream_log import MessageReader, StreamLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.live.live_engine import LiveEngine, LiveStream
from spaseq.runtime.live.past_points import PastPoint
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
        since: it takes no event before this time (ms).
    """

    def __init__(
        self,
        job: Job,
        plan: QueryPlan,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        start: PastPoint,
        since: int,
    ) -> None:
        self.plan, self.start = plan, start
        own = Job((plan,), (), job.knowledge, job.options, stats=Stats())
        self.engine = LiveEngine(own, streams, tolerated=Tolerated.ALL, since=since)
        if start.streams:
            self.engine.restore_streams(start.streams)
        self._readers: dict[str, MessageReader] = {
            iri: log.reader(start.places.get(iri, 0)) for iri, log in logs.items()
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
        for iri, reader in self._readers.items():
            entries = reader.read(_AT_ONCE, until.get(iri, reader.next))
            if entries:
                self.engine.take(iri, entries)
        return [answer for _, answer in self.engine.advance()]

    def snapshot(self) -> bytes:
        """The state of the query, after `advance`."""
        queries = self.engine.queries
        return queries.unit(queries.queries[0]).snapshot()

    def close(self) -> None:
        """Close the files."""
        for reader in self._readers.values():
            reader.close()
