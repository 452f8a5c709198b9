"""The clock of one stream that is followed: its watermark, its late events, its instants.

An event is late if its time is more than the delay behind the greatest time that its stream had
before it. That depends on the order of the stream's events alone, not on how they were cut into
batches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from spaseq.rdf.batches import EventBatch, Int32s, Int64s
from spaseq.runtime.job import LateEvent

_BEFORE_ALL = -(2**62)  # before every time, and far enough from the least int64 to subtract from


@dataclass(slots=True)
class StreamClock:
    """Where a stream stands. `counts` is how many events had each time not behind the watermark."""

    delay_ms: int
    latest: int | None = None  # the greatest time so far, ms
    counts: dict[int, int] = field(default_factory=dict)

    @property
    def watermark(self) -> int | None:
        """No event before this time (ms) will be let through; None before the first event."""
        return None if self.latest is None else self.latest - self.delay_ms

    def admit(self, batch: EventBatch) -> tuple[EventBatch, list[LateEvent]]:
        """The events that are not late, with their k, and the late ones."""
        if not len(batch):
            return batch, []
        latest = _BEFORE_ALL if self.latest is None else self.latest
        greatest = np.maximum.accumulate(np.concatenate([[latest], batch.time]))
        limit = greatest[:-1] - self.delay_ms
        behind = batch.time < limit
        late = [
            LateEvent(
                batch.stream, batch.graph[i], int(batch.time[i]), int(limit[i] - batch.time[i])
            )
            for i in np.flatnonzero(behind).tolist()
        ]
        kept = select_events(batch, ~behind) if late else batch
        self.latest = int(greatest[-1])
        return replace(kept, k=self._count(kept.time)), late

    def _count(self, times: Int64s) -> Int32s:
        """k of each event, and the counts moved on."""
        distinct, inverse, sizes = np.unique(times, return_inverse=True, return_counts=True)
        order = np.argsort(inverse, kind="stable")
        rank = np.empty(len(times), np.int64)
        rank[order] = np.arange(len(times)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        before = np.array([self.counts.get(t, 0) for t in distinct.tolist()], np.int64)
        for time, size in zip(distinct.tolist(), sizes.tolist(), strict=True):
            self.counts[time] = self.counts.get(time, 0) + size
        watermark = self.watermark
        assert watermark is not None
        self.counts = {t: n for t, n in self.counts.items() if t >= watermark}
        return (before[inverse] + rank).astype(np.int32) if len(times) else np.empty(0, np.int32)

    def to_json(self) -> str:
        """The clock as text; `from_json` takes it up again."""
        return json.dumps([self.delay_ms, self.latest, list(self.counts.items())])

    @classmethod
    def from_json(cls, text: str) -> StreamClock:
        """The inverse of `to_json`."""
        delay_ms, latest, counts = json.loads(text)
        return cls(delay_ms, latest, dict(counts))


def select_events(batch: EventBatch, mask: npt.NDArray[np.bool_]) -> EventBatch:
    """The events of a batch where `mask` (bool[n]) holds."""
    sizes = np.diff(batch.start)
    triples = np.repeat(mask, sizes)
    first, last = int(batch.start[0]), int(batch.start[-1])
    chosen = sizes[mask]
    return EventBatch(
        batch.stream,
        batch.time[mask],
        batch.k[mask],
        batch.names(np.flatnonzero(mask)).to_pylist(),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)]),
        batch.s[first:last][triples],
        batch.p[first:last][triples],
        batch.o[first:last][triples],
        batch.terms,
    )
