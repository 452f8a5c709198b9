"""Stages of units that run on Spark's workers instead of in this process.

The state of stage 2 is in this process between batches, with the later steps. So a batch that fails
has changed nothing, and any worker can continue with any unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from spaseq import thresholds
from spaseq.algebra.answer_blocks import answers_of
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import UsageError
from spaseq.kb.knowledge_versions import EARLIEST, Values
from spaseq.plan.families import Family, UnitPlan, split_key
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import asks_endpoints
from spaseq.runtime.pushed_units import PushedUnit
from spaseq.runtime.spark.rows.stage_rows import by_bucket, merged
from spaseq.runtime.spark.stages.standing_messages import (
    JUDGED,
    LoggedStep,
    PartKey,
    StageStep,
    StepResult,
    StreamReader,
)
from spaseq.runtime.spark.stages.standing_tasks import packed
from spaseq.runtime.spark.standing.stage_jobs import StageJobs
from spaseq.stages.sequence import EVER
from spaseq.stages.unit_sequence import EMPTY_STATE, FoundAnswers
from spaseq.stages.unit_stages import LazyPatterns, MatchingStage, Rows, StageFactory, UnitStage


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

    def begin(self, due: Callable[[], Mapping[PushedUnit, int]]) -> None:
        self.jobs.begin(due())


class RemotePatterns(LazyPatterns):
    """Stage 1 of a query, or of members of a family.

    Workers match the events of streams. This process matches the events of registered streams,
    which are answers.
    """

    def __init__(self, number: int, local: Callable[[], MatchingStage]) -> None:
        super().__init__(local)
        self.number = number


class _Part:
    """A part of a stage 2: a state, the later steps, and the solutions for the next step.

    Each step gives a new state of at most `log_bytes`. A larger state is replaced only when the log
    of steps is long, as sending a state takes longer than repeating a few steps.

    Attributes:
        state: the state after `kept` of all `version` steps; None before the first one.
        log: the last steps, at least all after the state: for workers with an older stage.
        since: no event of these steps is at or before this time (ms).
    """

    def __init__(self, state: bytes | None = None) -> None:
        self.state, self.waits = state, state is not None
        self.version = self.kept = self.suppressed = self.live = 0
        self.log: list[LoggedStep] = []
        self.since = self._mark = EARLIEST
        self._log_bytes = 0  # after the state
        self.packs: list[tuple[int, bytes]] = []
        self.exceeded: Mapping[int, Excess] = {}
        self.muted: Mapping[str, int] = {}

    def step(self, key: PartKey, definition: int, watermark: int | None) -> StageStep:
        """The next step; without a watermark it only requests the state."""
        mark = self._mark if watermark is None else watermark
        log, packs = tuple(self.log), tuple(self.packs)
        wants = watermark is None or self._log_is_long()
        return StageStep(
            key, definition, self.version, self.state, self.kept, log, packs, mark, wants
        )

    def _log_is_long(self) -> bool:
        sizes, size = thresholds.current, len(self.state or b"")
        steps = self.version - self.kept
        most = max(sizes.log_bytes, size // _STATE_TO_LOG)
        return size <= sizes.log_bytes or self._log_bytes > most or steps >= sizes.log_entries

    def take(self, step: LoggedStep, result: StepResult) -> None:
        """Apply the result of a step."""
        self.version, self.waits = self.version + 1, result.waits
        self.suppressed, self.live, self.packs = result.suppressed, result.live, []
        self.exceeded, self.muted = result.exceeded, result.muted
        self._mark = step.watermark
        self.log.append(step)
        self._log_bytes += step.nbytes
        if result.state is not None:
            is_short = len(result.state) <= thresholds.current.log_bytes
            left = 0 if is_short else _OVERLAP
            gone = self.log[: max(0, len(self.log) - left)]
            self.log = self.log[len(gone) :]
            self.since = gone[-1].watermark if gone else self.since
            self.state, self.kept, self._log_bytes = result.state, self.version, 0


_OVERLAP = 8
"""Number of steps before a new state that stay in the log: a worker may have missed some of them.
"""

_STATE_TO_LOG = 16
"""The log of a large state has at most a sixteenth of its bytes: each step sends the log."""


class RemoteSequence:
    """Stage 2 of a unit, in parts by the values of its key; `how` is the factory of the run."""

    def __init__(self, how: SparkStageFactory, unit: UnitPlan) -> None:
        self.number, self.definition = how.jobs.new_unit(), how.definition(unit)
        self._how, self._jobs, self._unit = how, how.jobs, unit
        self.on_wake: Callable[[], object] | None = None  # it does not sleep
        self._key = split_key(unit.plan, how.limited)
        self._parts = [_Part() for _ in range(1 if self._key is None else how.jobs.buckets)]
        self._partials: list[PartialAnswer] = []
        self._states: tuple[int, dict[int, LiveStates]] = -1, {}  # after a batch, by number

    def use(self, family: Family) -> None:
        """Continue with other members of the family."""
        self._unit = UnitPlan(self._unit.plans, family)
        self.definition = self._how.definition(self._unit)

    def use_values(self, values: Values) -> None:
        """Nothing: workers get the values with their tasks."""

    def forget(self, number: int) -> None:
        """Return no further answers of a member: `use` follows before the next batch."""

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
        for number, bucket_rows in by_bucket(rows, self._key, len(self._parts)):
            self.take(number, JUDGED, packed(bucket_rows, columns))

    def steps(self, watermark: int) -> list[StageStep]:
        """The steps for workers that give the answers at a watermark (ms)."""
        return [
            part.step((self.number, bucket), self.definition, watermark)
            for bucket, part in enumerate(self._parts)
            if part.packs or part.waits
        ]

    @property
    def definitions(self) -> set[int]:
        """The definitions that workers may need for steps."""
        logged = (step.definition for part in self._parts for step in part.log)
        return {self.definition, *logged}

    @property
    def since(self) -> int:
        """No event that workers need for steps is at or before this time (ms)."""
        return min((part.since for part in self._parts if part.log), default=EVER)

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        """The answers at the watermark of `StageJobs.begin`."""
        blocks: dict[int, list[tuple[int, bytes]]] = {}
        for step, result in self._jobs.results(self):
            self._jobs.report(result)
            if result.failure is not None:
                raise result.failure
            self._parts[result.part[1]].take(step, result)
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
        """The instants at which queries exceeded the limit on partial matches in some part, by
        number in the unit.
        """
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
        """The least time (ms): only workers know when an answer is due."""
        return EARLIEST

    @property
    def has_state(self) -> bool:
        """True: only workers know it."""
        return True

    @property
    def suppressed(self) -> int:
        """Number of answers beyond the limit so far."""
        return sum(part.suppressed for part in self._parts)

    @property
    def muted(self) -> Mapping[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""
        return sum((Counter(part.muted) for part in self._parts), Counter[str]())

    def live_runs(self) -> int:
        """Number of waiting partial matches after the last batch."""
        return sum(part.live for part in self._parts)

    def waits_after(self, watermark: int) -> bool:
        """Whether time alone may give answers, or let state leave."""
        return any(part.packs or part.waits for part in self._parts)

    def live_states(self, number: int) -> LiveStates:
        """The states of the partial matches of a query after the last batch."""
        if self._states[0] != self._jobs.batch:
            self._states = self._jobs.batch, {}
        known = self._states[1]
        if number not in known:
            known[number] = total([part.live_states(number) for part in self._local()])
        return known[number]

    def foreseen(self, number: int, until: int) -> Sequence[Answer]:
        """The answers of a query by a watermark (ms), if no rows follow."""
        by_part = [part.advance(until).get(number, ()) for part in self._local()]
        return [answer for pieces in by_part for piece in pieces for answer in piece]

    def _catch_up(self) -> None:
        """Get the states after the last batch from workers."""
        behind = [
            part.step((self.number, bucket), self.definition, None)
            for bucket, part in enumerate(self._parts)
            if part.kept < part.version
        ]
        for step, result in self._jobs.done(behind):
            if result.failure is not None:
                raise result.failure
            self._parts[result.part[1]].take(step, result)

    def _local(self) -> list[UnitStage]:
        """The stages of the parts in this process: of parts with a state, at least one."""
        self._catch_up()
        states = [part.state for part in self._parts if part.state is not None]
        stages = [self._how.local_sequence(self._unit) for _ in states or (None,)]
        for stage, state in zip(stages, states, strict=False):
            stage.restore(state)
        return stages

    def snapshot(self) -> bytes | list[Any]:
        """The state; if the stage is split, the variables of its key and the state of each part."""
        self._catch_up()
        states = [EMPTY_STATE if p.state is None else p.state for p in self._parts]
        return states[0] if len(states) == 1 else [[*(self._key or ())], *states]

    def restore(self, snapshot: bytes | list[Any]) -> None:
        """Restore from a state, with its parts.

        Raises:
            OtherStateError: as from the stages of these parts. Nothing has changed.
            RunError: the first part is damaged.
        """
        states: list[Any] = [snapshot] if isinstance(snapshot, bytes) else snapshot
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
    """The live states of all parts of a unit. No part has counted waiting solutions."""
    waiting = sum((Counter(part.waiting) for part in parts), Counter())
    return LiveStates(parts[0].program, waiting, None)
