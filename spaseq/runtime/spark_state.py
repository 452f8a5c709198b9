"""Stage 2 of a followed run on Spark's workers: the sequence stage of a bucket, and its state.

The state of a bucket is a log: what came with each batch, after a snapshot that is taken anew when
the log has grown to its size. A batch therefore writes what it brought and no more, however large
the state is. A worker keeps the stages it has worked with; the next batch of a bucket that comes
to it reads only the part of the log that it has not seen.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spaseq.algebra.answers import Answer
from spaseq.engine import SequenceStage
from spaseq.errors import RunError, SpaseqError
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BadInput, SolutionBatch
from spaseq.runtime.job import Stats
from spaseq.runtime.spark_follow_stages import NEVER, PACKED, unpack
from spaseq.runtime.spark_rows import OUTPUT, SIDE, SideRows, answer_rows
from spaseq.runtime.spark_solve import StoredKnowledge
from spaseq.runtime.state_limits import StateLimits

STATE_FORMAT = 1
"""Version of what is in the state store; a snapshot in it has one of its own."""

META_DDL = (
    "format int, version bigint, first bigint, snapshot_chunks int, snapshot_bytes bigint,"
    " log_bytes bigint, marks array<bigint>"
)
CHUNK_KEY_DDL = "kind int, number bigint"
CHUNK_DDL = "data binary"

CHUNK_BYTES = 2**20
LOG_BYTES = 2**20
"""A log is not replaced by a snapshot before it has so many bytes, or `LOG_ENTRIES`."""
LOG_ENTRIES = 500

_SNAPSHOT, _LOG = 0, 1

GroupKey: TypeAlias = tuple[str, int, int]
"""(a checkpoint's id, query, bucket)."""


@dataclass(slots=True)
class Meta:
    """What is known of a bucket: `version` batches have come to it, those from `first` in the log.

    `marks` are the watermarks (ms) of the query's streams.
    """

    marks: list[int]
    format: int = STATE_FORMAT
    version: int = 0
    first: int = 1
    snapshot_chunks: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes in the state store."""
        return self.snapshot_bytes + self.log_bytes

    def row(self) -> tuple[Any, ...]:
        """In the order of `META_DDL`."""
        return (
            self.format,
            self.version,
            self.first,
            self.snapshot_chunks,
            self.snapshot_bytes,
            self.log_bytes,
            self.marks,
        )

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Meta:
        """The inverse of `row`; RunError if another version of the package wrote it otherwise."""
        form, version, first, chunks, snapshot_bytes, log_bytes, marks = row
        if form != STATE_FORMAT:
            raise RunError(f"state format {form} cannot be read; this version reads {STATE_FORMAT}")
        return cls(list(marks), form, version, first, chunks, snapshot_bytes, log_bytes)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a batch brings to a bucket: packs of solutions, and how far time has come (ms)."""

    watermark: int
    packs: tuple[bytes, ...]

    def apply(self, stage: SequenceStage, plan: QueryPlan) -> list[Answer]:
        """Work it off."""
        for pack in self.packs:
            stage.push(unpack(pack, plan.columns))
        return stage.advance(self.watermark)

    def data(self) -> bytes:
        """The entry as bytes, in a form that does not depend on this class."""
        return pickle.dumps((self.watermark, self.packs), protocol=5)

    @classmethod
    def of(cls, data: bytes) -> Entry:
        """The inverse of `data`."""
        return cls(*pickle.loads(data))

    def solutions(self, plan: QueryPlan) -> SolutionBatch:
        """All solutions that came."""
        return SolutionBatch.concat([unpack(p, plan.columns) for p in self.packs], plan.columns)


@dataclass(slots=True)
class Warm:
    """A stage that this worker has, and how many batches it has seen."""

    version: int
    stage: SequenceStage
    bad: list[BadInput]  # what endpoints did not answer the stage


@dataclass(slots=True)
class BucketState:
    """The state of one bucket: `meta` is a value state, `chunks` a map state of Spark's."""

    plan: QueryPlan
    meta: Any
    chunks: Any
    limit_per_event: int | None = None
    knowledge: StoredKnowledge | None = None

    def load(self, warm: Warm | None) -> tuple[Meta, Warm]:
        """Where the bucket stands, and a stage that stands there, made of `warm` if possible."""
        known = self.meta.get() if self.meta.exists() else None
        if known is None:
            marks = [NEVER] * len(self.plan.streams)
            return Meta(marks), self._fresh(0)
        meta = Meta.of(known)
        if warm is None or not meta.first - 1 <= warm.version <= meta.version:
            warm = self._fresh(meta.first - 1)
            if meta.snapshot_chunks:
                numbers = range(meta.snapshot_chunks)
                warm.stage.restore(b"".join(self._read(_SNAPSHOT, n) for n in numbers))
        for number in range(warm.version + 1, meta.version + 1):
            Entry.of(self._read(_LOG, number)).apply(warm.stage, self.plan)
            warm.version = number
        warm.bad.clear()  # it has been reported
        return meta, warm

    def append(self, meta: Meta, entry: Entry, stage: SequenceStage) -> None:
        """Keep what a batch brought; `stage` has worked it off."""
        data = entry.data()
        meta.version += 1
        meta.log_bytes += len(data)
        entries = meta.version - meta.first + 1
        if meta.log_bytes > max(LOG_BYTES, meta.snapshot_bytes) or entries > LOG_ENTRIES:
            self._replace(meta, stage.snapshot())
        else:
            self._write(_LOG, meta.version, data)
        self.meta.update(meta.row())

    def _replace(self, meta: Meta, snapshot: bytes) -> None:
        """A snapshot instead of the log."""
        for number in range(meta.first, meta.version):
            self.chunks.removeKey((_LOG, number))
        parts = [snapshot[i : i + CHUNK_BYTES] for i in range(0, len(snapshot), CHUNK_BYTES)]
        for number, part in enumerate(parts):
            self._write(_SNAPSHOT, number, part)
        for number in range(len(parts), meta.snapshot_chunks):
            self.chunks.removeKey((_SNAPSHOT, number))
        meta.snapshot_chunks, meta.snapshot_bytes = len(parts), len(snapshot)
        meta.first, meta.log_bytes = meta.version + 1, 0

    def _fresh(self, version: int) -> Warm:
        knowledge = None if self.knowledge is None else self.knowledge.open()
        bad: list[BadInput] = []
        stage = SequenceStage(self.plan, self.limit_per_event, knowledge, bad.append)
        return Warm(version, stage, bad)

    def _read(self, kind: int, number: int) -> bytes:
        found = self.chunks.getValue((kind, number))
        if found is None:
            raise RunError(f"the state of query {self.plan.name} lacks a part")
        return bytes(found[0])

    def _write(self, kind: int, number: int, data: bytes) -> None:
        self.chunks.updateValue((kind, number), (data,))


@dataclass(slots=True)
class FollowSequence(StatefulProcessor):  # type: ignore[misc]
    """For `transformWithStateInPandas` on groups of (query, bucket): rows of `PACKED` to `OUTPUT`.

    A group is called with every batch, because every batch brings it marks of its streams.
    `checkpoint` is the checkpoint's id.
    """

    plans: tuple[QueryPlan, ...]
    checkpoint: str
    knowledge: StoredKnowledge | None = None
    limit_per_event: int | None = None
    limits: StateLimits = field(default_factory=StateLimits)
    _meta: Any = field(default=None, init=False)
    _chunks: Any = field(default=None, init=False)

    warm: ClassVar[dict[GroupKey, Warm]] = {}
    """The stages that this process has."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._meta = handle.getValueState("meta", META_DDL)
        self._chunks = handle.getMapState("chunks", CHUNK_KEY_DDL, CHUNK_DDL)
        for key in [key for key in self.warm if key[0] != self.checkpoint]:
            del self.warm[key]

    def handleInputRows(
        self, key: tuple[int, int], rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        query, bucket = int(key[0]), int(key[1])
        if query == SIDE:
            yield from (frame[OUTPUT.names] for frame in rows)
            return
        side = SideRows(PACKED, 2**31 + bucket)
        group = self.checkpoint, query, bucket
        state = BucketState(
            self.plans[query], self._meta, self._chunks, self.limit_per_event, self.knowledge
        )
        try:
            # What fails half-way must not be used again, so it is taken out meanwhile.
            meta, warm = state.load(self.warm.pop(group, None))
            yield from self._advance((query, bucket), rows, state, meta, warm, side)
            self.warm[group] = warm
        except SpaseqError as error:
            yield side.batch([error]).to_pandas()[OUTPUT.names]

    def _advance(
        self,
        key: tuple[int, int],
        rows: Iterator[pd.DataFrame],
        state: BucketState,
        meta: Meta,
        warm: Warm,
        side: SideRows,
    ) -> Iterator[pd.DataFrame]:
        start = time.perf_counter()
        stage, plan, withheld = warm.stage, state.plan, warm.stage.withheld
        before = list(meta.marks)
        packs = _packs(rows, meta.marks)
        watermark = min(meta.marks)
        answers: list[Answer] = []
        if packs or watermark != min(before):
            entry = Entry(max(watermark - 1, NEVER), packs)
            answers = entry.apply(stage, plan)
            state.append(meta, entry, stage)
            rows_now = stage.live_runs()
            self.limits.check(plan, key[1], rows_now, meta.size, lambda: entry.solutions(plan))
            warm.version = meta.version
        elif meta.marks != before:
            state.meta.update(meta.row())
        if answers:
            yield answer_rows(key[0], answers).to_pandas()
        bad, warm.bad[:] = list(warm.bad), []
        stats = Stats(matches=len(answers), withheld=stage.withheld - withheld, bad=len(bad))
        stats.live_runs[plan.name] = stage.live_runs()
        stats.state_bytes[plan.name] = meta.size
        stats.add("sequence", time.perf_counter() - start)
        yield side.batch([*bad, stats]).to_pandas()[OUTPUT.names]


def _packs(rows: Iterator[pd.DataFrame], marks: list[int]) -> tuple[bytes, ...]:
    """The packs of a group; the marks are moved on."""
    packs = []
    for frame in rows:
        columns: Sequence[list[Any]] = [frame[c].tolist() for c in ("stream", "time", "payload")]
        for stream, mark, payload in zip(*columns, strict=True):
            if stream < 0:
                packs.append(bytes(payload))
            else:
                marks[stream] = max(marks[stream], mark)
    return tuple(packs)
