"""Both stages of a batch of a standing run on Spark's workers.

A task of stage 1 reads a block of messages and matches its events. The driver decides afterwards
which events are late, and numbers events of equal time: so solutions name their event by its number
in the block. A task of stage 2 advances stages of units from their states before the batch to their
states after it. The state of a worker only saves time. A task gets a state of some batches ago, and
the later steps. A worker with a later stage does only the missing steps.
"""

from __future__ import annotations

import pickle
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spaseq.algebra.answer_blocks import blocks
from spaseq.compiled import mode
from spaseq.compiled.arrays import Bools
from spaseq.errors import RunError
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST, KnowledgeVersions, TimedChange
from spaseq.lang.depth import make_room_for_any
from spaseq.options import StageOptions
from spaseq.plan.families import UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.records import record
from spaseq.runtime.arrivals.tie_numbering import numbered
from spaseq.runtime.job.job import Stats
from spaseq.runtime.live.stream_events import StreamEvents
from spaseq.runtime.spark.rows.stage_rows import by_bucket
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.runtime.spark.stages.standing_messages import (
    BatchOutline,
    Definition,
    JudgedEvents,
    LoggedStep,
    PartKey,
    QueryDefinition,
    ReadPiece,
    SolvedBlock,
    StageStep,
    StepResult,
    StreamReader,
    TaskMessages,
)
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.unit_sequence import FoundAnswers, UnitSequence
from spaseq.stages.unit_stages import UnitPatterns, patterns_of


@record
class StandingTasks:
    """The tasks of a run.

    Attributes:
        run: the run, and the edition of its definitions; tasks with equal ones share all
            definitions.
        shelves: broadcasts, each with (its last number, pickled definitions by number).
        knowledge: the knowledge base before its graphs changed.
        changes: broadcasts of changes, each with their total number by then; see `take_changes`.
        settled: no event at or before this time (ms) follows, and none is in a log of steps.
        states: broadcasts of large states, by part.
        options: of the stages.
        kernels: the mode of kernels.
    """

    run: tuple[str, int]
    shelves: tuple[tuple[int, Any], ...]
    knowledge: StoredKnowledge
    changes: tuple[tuple[int, Any], ...]
    settled: int
    states: Mapping[PartKey, Any]
    options: StageOptions
    kernels: mode.Mode

    def solved(self, data: bytes) -> SolvedBlock:
        """Stage 1 of a pickled `TaskMessages`."""
        return self._workshop().solved(pickle.loads(data))

    def stepped(self, data: bytes) -> list[StepResult]:
        """Stage 2 of pickled steps, and of the judged events by block."""
        workshop = self._workshop()
        steps, judged = pickle.loads(data)
        return [workshop.stepped(step, judged, self.states) for step in steps]

    def _workshop(self) -> Workshop:
        global _present
        self.kernels.take()
        make_room_for_any()
        if _present is None or _present.run != self.run:
            _present = Workshop(self.run, self.knowledge.open(), self.options)
        for last, shelf in self.shelves:
            if last > _present.last:
                _present.pickled.update(shelf.value)
                _present.last = last
        for count, shelf in self.changes:
            if count > _present.changes:
                _present.take_changes(*shelf.value)
        _present.settle(self.settled)
        return _present


_ALWAYS = EARLIEST, 2**63 - 1
_SPAN = struct.Struct("<qq")  # first time, and end (ms), for which solutions count


def packed(rows: SolutionBatch, columns: SolutionColumns, span: tuple[int, int] = _ALWAYS) -> bytes:
    """Solutions for a step; solutions on events outside a span of time (ms) do not count."""
    return _SPAN.pack(*span) + SolutionCodec(columns).encode(rows)


def _unpacked(data: bytes, plan: QueryPlan, judged: JudgedEvents | None) -> SolutionBatch:
    """The inverse of `packed`, for events that have been judged."""
    since, until = _SPAN.unpack_from(data)
    rows = SolutionCodec(plan.patterns.columns).decode(data[_SPAN.size :])
    if judged is not None:
        rows = _judged(rows, judged, plan.inputs.streams)
    if (since, until) == _ALWAYS:
        return rows
    return rows.take(np.flatnonzero((rows.time >= since) & (rows.time < until)))


@dataclass(slots=True)
class _WarmUnit:
    """A stage that a worker keeps: its definition, and the number of its steps so far."""

    definition: int
    version: int
    sequence: UnitSequence


@dataclass(slots=True)
class Workshop:
    """The state of a run in a worker."""

    run: tuple[str, int]
    knowledge: KnowledgeBase
    options: StageOptions
    last: int = -1
    changes: int = 0  # of graphs
    pickled: dict[int, bytes] = field(default_factory=dict)
    _definitions: dict[int, Definition] = field(default_factory=dict)
    _patterns: dict[int, list[tuple[int, UnitPatterns]]] = field(default_factory=dict)
    _versions: KnowledgeVersions = field(init=False)
    _outdated: set[int] = field(default_factory=set)  # each stage 1 of changed graphs
    _joint: JointPatterns = field(default_factory=JointPatterns)
    _kept: dict[PartKey, _WarmUnit] = field(default_factory=dict)
    _bad: list[BadInput] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._versions = KnowledgeVersions(self.knowledge)

    def take_changes(
        self, old: Sequence[TimedChange], first: int, last: Sequence[TimedChange]
    ) -> None:
        """Apply changes of graphs: those from number `first` on; `old` is the effect of earlier
        ones.

        A worker that has some of the old changes may apply them again, together with the others.
        """
        if self.changes < first:
            for change in old:
                self._versions.add(change)
            self.changes = first
        for change in last[self.changes - first :]:
            self._versions.add(change)
        self.changes, self._outdated = first + len(last), {*self._patterns}

    def settle(self, before: int) -> None:
        """Drop values that no event after a time (ms) needs."""
        if self._versions.changed and self._versions.drop(before):
            self._outdated = {*self._patterns}

    def definition(self, number: int) -> Definition:
        """A definition."""
        definition = self._definitions.get(number)
        if definition is None:
            definition = self._definitions[number] = pickle.loads(self.pickled[number])
        return definition

    # --- stage 1 ----------------------------------------------------------------------------------

    def solved(self, block: TaskMessages) -> SolvedBlock:
        """Read and match a block."""
        began = time.perf_counter()
        how = block.source.options.messages
        events = StreamEvents(replace(how, dedup_ms=None))  # the driver drops graphs seen before
        matching = _Matching(self, block.readers, block.counted)
        pieces = []
        for messages in block.pieces:
            bad, outlines = list[BadInput](), list[BatchOutline]()
            for batch in events.read(block.source, messages, bad.append):
                outlines.append(_outline(batch))
                matching.add(batch)
            pieces.append(ReadPiece(len(messages), outlines, [*bad, *self._taken_bad()]))
        packs = [*matching.packs()]
        seconds = time.perf_counter() - began
        return SolvedBlock(pieces, packs, matching.failures, seconds)

    def matched(
        self, number: int, events: EventBatch, index: VerticalPartition
    ) -> Iterator[tuple[tuple[int, int], SolutionBatch]]:
        """The solutions of a definition's graph patterns with each value of the graphs.

        Each comes with the times between which it counts: some events get their times from the
        driver.
        """
        if number not in self._patterns or number in self._outdated:
            self._patterns[number] = self._new_patterns(number)
            self._outdated.discard(number)
        stages = self._patterns[number]
        ends = [*(since for since, _ in stages[1:]), _ALWAYS[1]]
        for (since, stage), until in zip(stages, ends, strict=True):
            yield (since, until), stage.match(events, index)

    def _new_patterns(self, number: int) -> list[tuple[int, UnitPatterns]]:
        unit, known = self._unit(number), dict(self._patterns.get(number, ()))
        stages = {id(stage.knowledge): stage for stage in known.values()}
        joint = JointPatterns() if unit.family is None else self._joint
        how = self._bad.append, self.options.limits, joint
        return [
            (since, stages.get(id(value)) or patterns_of(unit, value, *how))
            for since, value in self._versions.of(unit.plan.inputs.kbs)
        ]

    def _unit(self, number: int) -> UnitPlan:
        """The plans of a definition."""
        definition = self.definition(number)
        if isinstance(definition, QueryDefinition):
            return UnitPlan({0: definition.plan})
        return UnitPlan(MemberPlans(self, definition.plans), definition.family)

    def _taken_bad(self) -> list[BadInput]:
        bad_inputs = [*self._bad]
        self._bad.clear()
        return bad_inputs

    # --- stage 2 ----------------------------------------------------------------------------------

    def stepped(
        self, step: StageStep, judged: Mapping[int, JudgedEvents], states: Mapping[PartKey, Any]
    ) -> StepResult:
        """Do a step; `judged` has the events of each block, `states` broadcasts of large states."""
        began, stats = time.perf_counter(), Stats()
        try:
            stage = self._stage(step, states)
            sequence = stage.sequence
            by_member = self._advanced(stage, step.logged(judged), stats)
            answers = [
                (number, first, block)
                for number, pieces in by_member.items()
                for piece in pieces
                for first, block in blocks(piece)
            ]
            state = sequence.snapshot() if step.wants_state else None
            partials = sequence.partials()
        except Exception as error:
            return StepResult(step.part, bad=self._taken_bad(), failure=_sent(error))
        self._kept[step.part] = stage
        title = self.definition(step.definition).plan.identity.title
        stats.add_work("sequence", title, time.perf_counter() - began)
        return StepResult(
            step.part,
            state,
            answers,
            partials,
            sequence.suppressed,
            sequence.muted,
            sequence.live_runs(),
            sequence.exceeded(),
            sequence.waits(),
            self._taken_bad(),
            stats,
        )

    def _stage(self, step: StageStep, states: Mapping[PartKey, Any]) -> _WarmUnit:
        """The stage before a step."""
        # A stage that fails half-way must not be used again, so it is removed meanwhile.
        stage, first = self._kept.pop(step.part, None), step.version - len(step.log)
        if stage is None or not first <= stage.version <= step.version:
            state = states[step.part].value if step.part in states else step.state
            later = step.log[step.kept - first :]
            definition = later[0].definition if later else step.definition
            stage = self._new_stage(definition, step.kept, state)
        for entry in step.log[stage.version - first :]:
            self._advanced(stage, entry)
            stage.sequence.partials()
            self._bad.clear()  # the batch of the step has reported them, and given the rest
        self._use(stage, step.definition)
        return stage

    def _new_stage(self, number: int, version: int, state: bytes | None) -> _WarmUnit:
        unit = self._unit(number)
        values = self._versions.of(unit.plan.inputs.kbs)
        sequence = UnitSequence(unit, self.options, values[0][1], self._bad.append)
        sequence.use_values(values)
        if state is not None:
            sequence.restore(state)
        return _WarmUnit(number, version, sequence)

    def _use(self, stage: _WarmUnit, number: int) -> None:
        """Give a definition, and the present values of graphs, to a stage."""
        if stage.definition != number:
            state = stage.sequence.snapshot()
            stage.definition = number
            stage.sequence = self._new_stage(number, stage.version, state).sequence
        stage.sequence.use_values(self._versions.of(self._unit(number).plan.inputs.kbs))

    def _advanced(
        self, stage: _WarmUnit, step: LoggedStep, stats: Stats | None = None
    ) -> FoundAnswers:
        """Do a step; `stats` counts its solutions."""
        self._use(stage, step.definition)
        plan = self.definition(step.definition).plan
        for data, judged in step.packs:
            rows = _unpacked(data, plan, judged)
            if stats is not None:
                stats.count_unit(self._unit(step.definition), rows)
            stage.sequence.push(rows)
        stage.version += 1
        return stage.sequence.advance(step.watermark)


_present: Workshop | None = None
"""The workshop of this process."""


class MemberPlans(Mapping[int, QueryPlan]):
    """The plans of a family's members; each is unpickled at its first use."""

    def __init__(self, workshop: Workshop, numbers: Mapping[int, int]) -> None:
        self._workshop, self._numbers = workshop, numbers

    def __getitem__(self, member: int) -> QueryPlan:
        return self._workshop.definition(self._numbers[member]).plan

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class _Matching:
    """Matches the events of a block, and holds the solutions."""

    def __init__(
        self, workshop: Workshop, readers: Sequence[StreamReader], counted: Bools | None
    ) -> None:
        self._workshop, self._readers = workshop, {reader.unit: reader for reader in readers}
        self._counted = counted
        self._held: dict[int, dict[tuple[int, tuple[int, int]], list[SolutionBatch]]] = {}
        self._events = 0
        self.failures: dict[int, Exception] = {}

    def add(self, batch: EventBatch) -> None:
        """Match the next events; their provisional numbers are their numbers in the block."""
        first, self._events = self._events, self._events + len(batch)
        batch = batch.with_k(-1 - np.arange(first, self._events, dtype=np.int32))
        if self._counted is not None:
            batch = batch.take(np.flatnonzero(self._counted[first : self._events]))
        index = VerticalPartition(batch)  # shared by all units
        for unit, reader in self._readers.items():
            try:
                for table in reader.tables if unit not in self.failures else ():
                    for span, rows in self._workshop.matched(table, batch, index):
                        if len(rows):
                            unit_rows = self._held.setdefault(unit, {})
                            unit_rows.setdefault((table, span), []).append(rows.compact())
            except Exception as error:
                self.failures[unit] = _sent(error)

    def packs(self) -> Iterator[tuple[int, int, bytes]]:
        """(unit, bucket, packed solutions)."""
        for unit, tables in self._held.items():
            reader = self._readers[unit]
            for (table, span), batches in tables.items() if unit not in self.failures else ():
                columns = self._workshop.definition(table).plan.patterns.columns
                rows = SolutionBatch.concat(batches, columns)
                for number, bucket_rows in by_bucket(rows, reader.key, reader.buckets):
                    yield unit, number, packed(bucket_rows, columns, span)


def _outline(batch: EventBatch) -> BatchOutline:
    names = batch.names(np.arange(len(batch)))
    return BatchOutline(batch.time, names, batch.triples, batch.filtered)


def _judged(rows: SolutionBatch, events: JudgedEvents, streams: Sequence[str]) -> SolutionBatch:
    """The solutions on events that count, numbered, at their events' times."""
    event = -1 - rows.k
    if events.time is not None:
        rows = replace(rows, time=events.time[event])
    k = events.k[event]
    if not (k >= 0).all():
        kept = np.flatnonzero(k >= 0)
        rows, k = rows.take(kept), k[kept]
    return numbered(rows, k, streams)


def _sent(error: Exception) -> Exception:
    """An error that can travel to the driver."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RunError(f"{type(error).__name__}: {error}")
    return error
