"""Stages of units that run on Spark's workers: in the place of those of this process.

The state of stage 2 is here between batches. So a batch that fails has changed nothing, and any
worker can go on with any unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from spaseq.algebra.answer_blocks import answers_of
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import UsageError
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.knowledge_versions import EARLIEST, Values
from spaseq.plan.families import Family, UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.job.binding import asks_endpoints
from spaseq.runtime.pushed_units import PushedUnit
from spaseq.runtime.spark.rows.stage_rows import buckets, merged
from spaseq.runtime.spark.stages.standing_messages import (
    JUDGED,
    StageStep,
    StepResult,
    StreamReader,
)
from spaseq.runtime.spark.stages.standing_tasks import packed
from spaseq.runtime.spark.standing.stage_jobs import StageJobs
from spaseq.runtime.unit_stages import MatchingStage, Rows, StageFactory, UnitStage
from spaseq.stages.query_units import split_key
from spaseq.stages.unit_sequence import EMPTY_STATE, FoundAnswers


@dataclass(frozen=True, slots=True)
class SparkStageFactory(StageFactory):
    """Makes stages that run on Spark's workers, by `jobs`."""

    jobs: StageJobs

    @property
    def takes_parts(self) -> bool:
        return True

    @property
    def limited(self) -> bool:
        """Whether a limit counts the answers of an instant."""
        return self.options.limit_per_event is not None

    def check(self, plan: QueryPlan) -> None:
        if asks_endpoints(plan, self.knowledge):
            raise UsageError(
                f"query {plan.identity.title} asks a SPARQL endpoint: a standing run on Spark "
                "cannot, because what workers are told is not logged; run it with --runtime local"
            )

    def definition(self, unit: UnitPlan) -> int:
        """The number of a unit's definition for workers."""
        if unit.family is None:
            return self.jobs.shelf.query(unit.plan)
        return self.jobs.shelf.family(unit.family, unit.plans.__getitem__)

    def patterns(self, unit: UnitPlan, before: MatchingStage | None = None) -> RemotePatterns:
        number = before.number if isinstance(before, RemotePatterns) else self.definition(unit)
        return RemotePatterns(number, lambda: StageFactory.patterns(self, unit))

    def sequence(self, unit: UnitPlan) -> RemoteSequence:
        return RemoteSequence(self, unit)

    def local_sequence(self, unit: UnitPlan) -> UnitStage:
        """Stage 2 of a unit in this process."""
        return StageFactory.sequence(self, unit)

    def begin(self, due: Mapping[PushedUnit, int]) -> None:
        self.jobs.begin(due)


class RemotePatterns:
    """Stage 1 of a query, or of members of a family.

    Workers match the events of streams. The events of registered streams, which are answers, are
    matched here.
    """

    def __init__(self, number: int, local: Callable[[], MatchingStage]) -> None:
        self.number, self._make = number, local
        self._local: MatchingStage | None = None

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of a batch's events."""
        if self._local is None:
            self._local = self._make()
        return self._local.match(events, index)


class _Part:
    """A part of a stage 2: its state between batches, and what came for the next one."""

    def __init__(self, state: bytes | None = None) -> None:
        self.state, self.waits = state, state is not None
        self.version = self.suppressed = self.live = 0
        self.packs: list[tuple[int, bytes]] = []
        self.exceeded: Mapping[int, Excess] = {}
        self.muted: Mapping[str, int] = {}

    def take(self, result: StepResult) -> None:
        """Go on from the result of a step."""
        self.version, self.state, self.waits = self.version + 1, result.state, result.waits
        self.suppressed, self.live, self.packs = result.suppressed, result.live, []
        self.exceeded, self.muted = result.exceeded, result.muted


class RemoteSequence:
    """Stage 2 of a unit, in parts by the values of its key; `how` is that of the run."""

    def __init__(self, how: SparkStageFactory, unit: UnitPlan) -> None:
        self.number, self.definition = how.jobs.new_unit(), how.definition(unit)
        self._how, self._jobs, self._unit = how, how.jobs, unit
        self._key = split_key(unit.plan, how.limited)
        self._parts = [_Part() for _ in range(1 if self._key is None else how.jobs.buckets)]
        self._partials: list[PartialAnswer] = []
        self._states: tuple[int, dict[int, LiveStates]] = -1, {}  # after a batch, by number

    def use(self, family: Family) -> None:
        """Go on with other members of the family."""
        self._unit = UnitPlan(self._unit.plans, family)
        self.definition = self._how.definition(self._unit)

    def use_values(self, values: Values) -> None:
        """Workers learn the values with their tasks."""

    def forget(self, number: int) -> None:
        """Give no more answers of a member: `use` follows before the next batch."""

    def reader(self, tables: Sequence[MatchingStage]) -> StreamReader:
        """This unit as a reader of a stream, with its stage 1."""
        numbers = tuple(t.number for t in tables if isinstance(t, RemotePatterns))
        return StreamReader(self.number, numbers, self._key, len(self._parts))

    def take(self, bucket: int, block: int, data: bytes) -> None:
        """Take packed solutions on the events of a block."""
        self._parts[bucket].packs.append((block, data))

    def push(self, rows: Rows) -> None:
        """Take solutions on events that are numbered."""
        assert not isinstance(rows, EventRows)  # single events are pushed in this process only
        columns = self._unit.plan.patterns.columns
        bucket = buckets(rows, self._key, len(self._parts))
        for number in np.unique(bucket).tolist():
            bucket_rows = rows.take(np.flatnonzero(bucket == number))
            self.take(number, JUDGED, packed(bucket_rows, columns))

    def steps(self, watermark: int) -> list[StageStep]:
        """What workers must do before the answers by a watermark (ms) are known."""
        return [
            StageStep(
                self.number,
                bucket,
                self.definition,
                part.version,
                part.state,
                tuple(part.packs),
                watermark,
            )
            for bucket, part in enumerate(self._parts)
            if part.packs or part.waits
        ]

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        """The answers by the watermark that `StageJobs.begin` was told."""
        blocks: dict[int, list[tuple[int, bytes]]] = {}
        for result in self._jobs.results(self):
            self._jobs.report(result)
            if result.failure is not None:
                raise result.failure
            self._parts[result.bucket].take(result)
            self._partials += result.partials
            for number, first, block in result.answers:
                blocks.setdefault(number, []).append((first, block))
        by_query: dict[int, list[Sequence[Answer]]] = {
            number: [*merged((first, answers_of(block)) for first, block in sorted(each))]
            for number, each in blocks.items()
        }
        for number, excess in self.exceeded().items():
            pieces = by_query.pop(number, [])
            by_query[number] = [[a for a in each if a.end < excess.instant] for each in pieces]
        return by_query

    def exceeded(self) -> dict[int, Excess]:
        """When queries had too many partial matches in some part, by number in the unit."""
        by_query: dict[int, Excess] = {}
        for number, excess in chain.from_iterable(part.exceeded.items() for part in self._parts):
            first = by_query.setdefault(number, excess)
            if excess.instant < first.instant:
                by_query[number] = excess
        return by_query

    def close(self, open_end: int | None = None) -> FoundAnswers:
        """No answers: a standing run has no end."""
        return {}

    def partials(self) -> Sequence[PartialAnswer]:
        """The partial matches whose windows have closed since the last call."""
        partials, self._partials = self._partials, []
        return sorted(partials, key=PartialAnswer.order_key)

    @property
    def next_due(self) -> int:
        """No time (ms) is before it: only workers could tell when something is due."""
        return EARLIEST

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return sum(part.suppressed for part in self._parts)

    @property
    def muted(self) -> Mapping[str, int]:
        """By the title of a query: the number of answers that MUTE has left out so far."""
        return sum((Counter(part.muted) for part in self._parts), Counter[str]())

    def live_runs(self) -> int:
        """The number of partial matches that waited after the last batch."""
        return sum(part.live for part in self._parts)

    def waits_after(self, watermark: int) -> bool:
        """Whether answers may come, or state may leave, as time passes."""
        return any(part.packs or part.waits for part in self._parts)

    def live_states(self, number: int) -> LiveStates:
        """Where the partial matches of a query were after the last batch."""
        if self._states[0] != self._jobs.batch:
            self._states = self._jobs.batch, {}
        known = self._states[1]
        if number not in known:
            known[number] = total([part.live_states(number) for part in self._local()])
        return known[number]

    def foreseen(self, number: int, until: int) -> Sequence[Answer]:
        """The answers of a query by a watermark (ms), if nothing further comes."""
        by_part = [part.advance(until).get(number, ()) for part in self._local()]
        return [answer for pieces in by_part for piece in pieces for answer in piece]

    def _local(self) -> list[UnitStage]:
        """The stages of the parts in this process: of those that have a state, at least one."""
        states = [part.state for part in self._parts if part.state is not None]
        stages = [self._how.local_sequence(self._unit) for _ in states or (None,)]
        for stage, state in zip(stages, states, strict=False):
            stage.restore(state)
        return stages

    def snapshot(self) -> bytes | list[Any]:
        """The state; if the stage is split, the variables of its key and the state of each part."""
        states = [EMPTY_STATE if p.state is None else p.state for p in self._parts]
        return states[0] if len(states) == 1 else [[*(self._key or ())], *states]

    def restore(self, snapshot: bytes | list[Any]) -> None:
        """Go on from a state, in the parts that it has.

        Raises:
            OtherStateError: as from the stages of these parts. Nothing has changed.
            RunError: the first part is damaged.
        """
        states: list[Any] = [snapshot] if isinstance(snapshot, bytes) else snapshot
        if len(states) > 1:
            self._key = split_key(self._unit.plan, False)  # older states do not name it
            if isinstance(states[0], list):
                key, *states = states
                self._key = tuple(key)
        kept = [state for state in states if state != EMPTY_STATE]
        if kept:
            self._how.local_sequence(self._unit).restore(kept[0])
        self._parts = [_Part(None if state == EMPTY_STATE else state) for state in states]
        if self._unit.plan.answers.after_match.mute_ms:
            parts = [part for part in self._parts if part.state is not None]
            for part, stage in zip(parts, self._local(), strict=False):
                part.muted = stage.muted


def total(parts: Sequence[LiveStates]) -> LiveStates:
    """The live states of all parts of a unit. No part has counted what was taken."""
    waiting = sum((Counter(part.waiting) for part in parts), Counter())
    return LiveStates(parts[0].program, waiting, None)
