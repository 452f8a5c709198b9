"""Stage 2 of a followed run on Spark's workers: a bucket's sequence stage and its stored state.

The state of a bucket is a snapshot and a log of the input of every batch since. So a batch writes
only its own input, however large the state is. When the log has grown to the size of the snapshot,
a new snapshot replaces both. A worker keeps its stages between batches (a `WarmStage`) and reads
only the part of the log that they have not seen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pandas as pd

from spaseq import thresholds
from spaseq.algebra.answers import Answer
from spaseq.errors import RunError, SpaseqError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.depth import make_room_for_any
from spaseq.options import StageOptions, StateLimits
from spaseq.plan.families import QueryUnits
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.records import record
from spaseq.runtime.group_stage import GroupStage
from spaseq.runtime.job.job import ProcessCounts, Stats
from spaseq.runtime.job.state_limits import check_size, too_many_waiting
from spaseq.runtime.job.unit_graph import QueryGroup, QueryGroups
from spaseq.runtime.spark.rows.stage_rows import (
    OUTPUT,
    SIDE,
    Message,
    OutputRow,
    answer_rows,
    batch_of,
    messages_of,
    partial_rows,
)
from spaseq.runtime.spark.stages.followed_patterns import NEVER
from spaseq.runtime.spark.stages.held_solutions import HeldSolutions, NewPack
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain

STATE_FORMAT = 3
"""Version of the state's layout; snapshots have a version of their own."""

CHUNK_BYTES = 2**20

TOPICS = "topics"
"""The directory of a checkpoint for the results of tasks at partitions of Kafka."""

_SNAPSHOT, _LOG = 0, 1

GroupKey: TypeAlias = tuple[str, int, int]
"""(a checkpoint's id, query, bucket)."""


@dataclass(slots=True)
class Meta:
    """The contents of a bucket's state.

    Attributes:
        version: number of entries so far.
        first: the first entry in the log; the snapshot includes the entries before it.
        snapshot_chunks, snapshot_bytes: the size of the snapshot.
        log_bytes: the size of the log.
        marks: the watermarks (ms) of the group's streams.
    """

    version: int = 0
    first: int = 1
    snapshot_chunks: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0
    marks: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes in the state store."""
        return self.snapshot_bytes + self.log_bytes

    def row(self) -> tuple[Any, ...]:
        """The value of the state variable `meta`."""
        return STATE_FORMAT, *astuple(self)

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Meta:
        """The inverse of `row`; RunError for a layout of another version of the package."""
        form, *stored = row
        if form != STATE_FORMAT:
            raise RunError(f"state format {form} cannot be read; this version reads {STATE_FORMAT}")
        meta = cls(*stored)
        meta.marks = list(meta.marks)
        return meta


@record
class Entry:
    """The input of a batch for a bucket: an entry of the log.

    Attributes:
        times: per stream of the group the time (ms) at or before which no event follows.
        packs: (query, packed solutions).
        knowledge: the name of the knowledge base.
    """

    times: tuple[int, ...]
    packs: tuple[tuple[int, bytes], ...]
    knowledge: str = ""

    def apply(self, stage: GroupStage) -> list[tuple[int, Sequence[Answer]]]:
        """Process the entry; return the answers, by query."""
        self.push(stage)
        return self.advance(stage)

    def push(self, stage: GroupStage, *, check: bool = False) -> None:
        """Push the solutions into the stage; `check` is for a stored entry."""
        for query, pack in self.packs:
            stage.push(
                query, SolutionCodec(stage.plans[query].patterns.columns).decode(pack, check=check)
            )

    def advance(self, stage: GroupStage) -> list[tuple[int, Sequence[Answer]]]:
        """The answers, by query, that are final at the entry's watermarks."""
        return stage.advance(dict(zip(stage.group.streams, self.times, strict=True)))

    def data(self) -> bytes:
        """The entry as bytes, which do not name this class."""
        return dump_plain((self.times, self.packs, self.knowledge))

    @classmethod
    def of(cls, data: bytes) -> Entry:
        """The inverse of `data`."""
        return cls(*load_plain(data))

    def solutions(self, query: int, stage: GroupStage) -> SolutionBatch:
        """The solutions of a query in this entry."""
        columns = stage.plans[query].patterns.columns
        parts = [
            SolutionCodec(columns).decode(pack) for reader, pack in self.packs if reader == query
        ]
        return SolutionBatch.concat(parts, columns)


@dataclass(slots=True)
class WarmStage:
    """A stage that a worker keeps between batches.

    Attributes:
        version: number of entries that the stage has processed.
        stage: the stage.
        bad: the events for which an endpoint gave the stage no answer.
        knowledge: the name of the knowledge base of the last entry.
    """

    version: int
    stage: GroupStage
    bad: list[BadInput]
    knowledge: str = ""


@dataclass(slots=True)
class BucketState:
    """The stored state of one bucket.

    Attributes:
        units: the units of the run.
        group: the units that the bucket belongs to.
        meta: Spark's value state of a `Meta` row.
        chunks: Spark's map state from (kind, number) to bytes: chunks of the snapshot, and entries.
        options: of the sequence stages.
        knowledge: the knowledge base.
        directory: of the checkpoint, for messages.
    """

    units: QueryUnits
    group: QueryGroup
    meta: Any
    chunks: Any
    options: StageOptions = StageOptions()
    knowledge: StoredKnowledge | None = None
    directory: str = ""

    def load(self, warm: WarmStage | None) -> tuple[Meta, WarmStage]:
        """The bucket's meta data, and a stage that has processed all entries.

        The stage is `warm`, if `warm` has processed no other entries.

        Raises:
            RunError: the state is damaged, or of a version that cannot be read.
        """
        known = self.meta.get() if self.meta.exists() else None
        if known is None:
            marks = [NEVER] * len(self.group.streams)
            return Meta(marks=marks), self._fresh(0)
        with self._reading():
            meta = Meta.of(known)
        if warm is None or not meta.first - 1 <= warm.version <= meta.version:
            warm = self._fresh(meta.first - 1)
            if meta.snapshot_chunks:
                numbers = range(meta.snapshot_chunks)
                with self._reading():
                    warm.stage.restore(b"".join(self._read(_SNAPSHOT, n) for n in numbers))
        for number in range(warm.version + 1, meta.version + 1):
            with self._reading():
                entry = Entry.of(self._read(_LOG, number))
            self._use(entry.knowledge, warm)
            with self._reading():
                entry.push(warm.stage, check=True)
            entry.advance(warm.stage)
            warm.stage.partials()  # which their batch has given, like its answers
            warm.version = number
        warm.bad.clear()  # the batches of these entries have reported them
        return meta, warm

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Name the checkpoint in errors of stored state."""
        try:
            yield
            return
        except RunError as error:
            reason, cause = str(error), error.__cause__
        except BROKEN as error:
            reason, cause = (
                f"the state of {self.group.title(self.units)} is damaged: {error}",
                error,
            )
        raise RunError(
            f"checkpoint {self.directory} cannot be resumed: {reason}. Restore the directory from "
            "a copy, or start again with an empty one"
        ) from cause

    def times(self, meta: Meta) -> tuple[int, ...]:
        """Per stream of the group the time (ms) at or before which no event follows."""
        marks = meta.marks
        if len(self.group.members) == 1:  # only the last of the streams counts
            marks = [min(marks)] * len(marks)
        return tuple(max(mark - 1, NEVER) for mark in marks)

    def renew(self, name: str, meta: Meta, warm: WarmStage) -> bool:
        """Use the named knowledge base from now on; return whether entries of the log had another
        one.

        If so, a snapshot must replace the log: the log cannot be processed again once the other
        knowledge base is gone.
        """
        return self._use(name, warm) and meta.version >= meta.first

    def _use(self, name: str, warm: WarmStage) -> bool:
        """Set the knowledge base of the stage; False if it has that one already, or reads none."""
        if name in ("", warm.knowledge) or not warm.stage.reads_knowledge:
            return False
        assert self.knowledge is not None
        warm.stage.use(self.knowledge.named(name).open())
        warm.knowledge = name
        return True

    def append(self, meta: Meta, entry: Entry, stage: GroupStage, *, renewed: bool = False) -> None:
        """Store an entry that `stage` has processed; `renewed` is the result of `renew`."""
        data = entry.data()
        meta.version += 1
        meta.log_bytes += len(data)
        entries = meta.version - meta.first + 1
        long = (
            meta.log_bytes > max(thresholds.current.log_bytes, meta.snapshot_bytes)
            or entries > thresholds.current.log_entries
        )
        if long or renewed:
            self._replace(meta, stage.snapshot())
        else:
            self._write(_LOG, meta.version, data)
        self.meta.update(meta.row())

    def _replace(self, meta: Meta, snapshot: bytes) -> None:
        """Replace the log and the last snapshot by a new snapshot."""
        for number in range(meta.first, meta.version):
            self.chunks.removeKey((_LOG, number))
        parts = [snapshot[i : i + CHUNK_BYTES] for i in range(0, len(snapshot), CHUNK_BYTES)]
        for number, part in enumerate(parts):
            self._write(_SNAPSHOT, number, part)
        for number in range(len(parts), meta.snapshot_chunks):
            self.chunks.removeKey((_SNAPSHOT, number))
        meta.snapshot_chunks, meta.snapshot_bytes = len(parts), len(snapshot)
        meta.first, meta.log_bytes = meta.version + 1, 0

    def _fresh(self, version: int) -> WarmStage:
        knowledge = KnowledgeBase.empty() if self.knowledge is None else self.knowledge.open()
        bad: list[BadInput] = []
        make_room_for_any()
        stage = GroupStage(self.units, self.group, knowledge, self.options, bad.append)
        return WarmStage(version, stage, bad)

    def _read(self, kind: int, number: int) -> bytes:
        chunk = self.chunks.getValue((kind, number))
        if chunk is None:
            raise RunError(f"the state of {self.group.title(self.units)} lacks a part")
        return bytes(chunk[0])

    def _write(self, kind: int, number: int, data: bytes) -> None:
        self.chunks.updateValue((kind, number), (data,))


@record
class Buckets:
    """Stage 2 in a worker, for the buckets and queries that Spark sends to it.

    Every batch reaches every bucket, because it brings the watermarks of its streams. The first
    unit of a `QueryGroup` identifies the group.

    Attributes:
        groups: the groups of the run.
        checkpoint: the checkpoint's id.
        directory: of the checkpoint.
        knowledge: the knowledge base.
        options: of the sequence stages.
        limits: of each bucket's state.
        has_topics: whether a stream is a topic at Kafka.
    """

    groups: QueryGroups
    checkpoint: str
    directory: str
    knowledge: StoredKnowledge | None = None
    options: StageOptions = StageOptions()
    limits: StateLimits = field(default_factory=StateLimits)
    has_topics: bool = False

    warm: ClassVar[dict[GroupKey, WarmStage]] = {}
    """The stages that this process keeps."""

    def batch(
        self, query: int, bucket: int, rows: Iterator[pd.DataFrame], meta: Any, chunks: Any
    ) -> Iterator[pd.DataFrame]:
        """Turn a batch's rows of `PACKED` for one bucket into rows of `OUTPUT`.

        Args:
            query: the first unit of the group, or `SIDE`.
            bucket: the bucket's number.
            rows: the rows.
            meta, chunks: the variables of the bucket's state; see `BucketState`.
        """
        for key in [key for key in self.warm if key[0] != self.checkpoint]:
            del self.warm[key]
        if query == SIDE:
            yield from (frame[OUTPUT.names] for frame in rows)
            return
        warm_key = self.checkpoint, query, bucket
        state = BucketState(
            self.groups.units,
            self.groups.home[query],
            meta,
            chunks,
            options=self.options,
            knowledge=self.knowledge,
            directory=self.directory,
        )
        try:
            # A stage that fails half-way must not be used again, so it is removed meanwhile.
            stands, warm = state.load(self.warm.pop(warm_key, None))
            yield from self._advance(bucket, rows, state, stands, warm)
            self.warm[warm_key] = warm
        except SpaseqError as error:
            yield _side_row(bucket, error)

    def _advance(
        self,
        bucket: int,
        rows: Iterator[pd.DataFrame],
        state: BucketState,
        meta: Meta,
        warm: WarmStage,
    ) -> Iterator[pd.DataFrame]:
        start, process = time.perf_counter(), ProcessCounts()
        stage, suppressed, muted = warm.stage, warm.stage.suppressed, Counter(warm.stage.muted)
        before, marks_before = state.times(meta), list(meta.marks)
        came = _Arrivals.of(rows, meta.marks)
        held = HeldSolutions(state.chunks, state.units.plans, Path(self.directory, TOPICS))
        packs, knowledge = came.packs, came.knowledge
        if self.has_topics:
            packs += tuple(held.turn(came.unnumbered, meta.marks, came.ties))
        entry = Entry(state.times(meta), packs, knowledge)
        stats, renewed = Stats(), state.renew(knowledge, meta, warm)
        if packs or entry.times != before or renewed:
            numbered, partials = entry.apply(stage), stage.partials()
            state.append(meta, entry, stage, renewed=renewed)
            self._check_size(bucket, meta.size + held.size, entry, state.units, stage)
            warm.version = meta.version
            for query, answers in numbered:
                if answers:
                    yield batch_of(OUTPUT, answer_rows(query, answers)).to_pandas()
                stats.count_answers(state.units.queries[query].identity.title, len(answers))
            for query, closed in partials:
                if closed:
                    yield batch_of(OUTPUT, partial_rows(query, closed)).to_pandas()
            self._check_waiting(bucket, entry, state.units, stage)
        elif meta.marks != marks_before:
            state.meta.update(meta.row())
        bad, warm.bad[:] = list(warm.bad), []
        stats.bad, stats.suppressed = len(bad), stage.suppressed - suppressed
        stats.add_muted(Counter(stage.muted) - muted)
        process.add_to(stats)
        for unit, runs in stage.live_runs().items():
            stats.live_runs[stage.plans[unit].identity.name] = runs
        stats.state_bytes[state.group.title(state.units)] = meta.size + held.size
        title = state.group.title(state.units)
        stats.add_work("sequence", title, time.perf_counter() - start)
        yield _side_row(bucket, *bad, stats)

    def _check_size(
        self, bucket: int, size: int, entry: Entry, units: QueryUnits, stage: GroupStage
    ) -> None:
        """RunError if the stored state of a bucket is too large."""
        for unit, plan in stage.plans.items():
            limits = self.limits.times(len(units.members(unit)))
            check_size(limits, plan, bucket, size, partial(entry.solutions, unit, stage))

    def _check_waiting(
        self, bucket: int, entry: Entry, units: QueryUnits, stage: GroupStage
    ) -> None:
        """TooManyWaiting if a query exceeds the limit on partial matches, the first such query."""
        exceeded = stage.exceeded()
        if not exceeded:
            return
        query = min(exceeded, key=lambda number: exceeded[number].instant)
        unit = next(unit_plan for unit_plan in stage.plans if query in units.members(unit_plan))
        recent = entry.solutions(unit, stage)
        plan, excess = units.queries[query], exceeded[query]
        raise too_many_waiting(self.limits, plan, query, bucket, excess, recent)


def _side_row(bucket: int, *messages: Message) -> pd.DataFrame:
    row = OutputRow.of_messages(*messages_of(2**31 + bucket, 0, messages))
    return batch_of(OUTPUT, [row]).to_pandas()


@record
class _Arrivals:
    """The rows of a batch for a bucket, besides the watermarks.

    Attributes:
        packs: (query, pack) of solutions whose events are numbered.
        unnumbered: the packs of further partitions of topics.
        ties: by stream of the group, the file that numbers events.
        knowledge: the name of the knowledge base.
    """

    packs: tuple[tuple[int, bytes], ...]
    unnumbered: tuple[NewPack, ...]
    ties: dict[int, str]
    knowledge: str

    @classmethod
    def of(cls, rows: Iterator[pd.DataFrame], marks: list[int]) -> _Arrivals:
        """The contents of rows of `PACKED`; advances the marks."""
        packs, unnumbered, ties, knowledge = [], list[NewPack](), dict[int, str](), ""
        names = ("reader", "stream", "partition", "time", "ties", "payload")
        for frame in rows:
            columns: Sequence[list[Any]] = [frame[name].tolist() for name in names]
            for reader, stream, partition, mark, file, payload in zip(*columns, strict=True):
                if reader < 0:
                    marks[stream] = max(marks[stream], mark)
                    # Files and topics are planned one after the other, and rows come in any order.
                    knowledge = max(knowledge, bytes(payload).decode())
                    if file:
                        ties[stream] = file
                elif partition == 0:
                    packs.append((int(reader), bytes(payload)))
                else:
                    origin = int(stream), int(partition), int(reader)
                    unnumbered.append(NewPack(*origin, bytes(payload)))
        return cls(tuple(packs), tuple(unnumbered), ties, knowledge)
