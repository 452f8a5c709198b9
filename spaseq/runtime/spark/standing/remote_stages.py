"""Stages of units that run on Spark's workers: in the place of those of this process.

The state of stage 2 is here between batches. So a batch that fails has changed nothing, and any
worker can go on with any unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess, Member
from spaseq.errors import UsageError
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.job.binding import asks_endpoints
from spaseq.runtime.pushed_units import Unit
from spaseq.runtime.spark.rows.answer_blocks import answers_of, merged
from spaseq.runtime.spark.rows.stage_rows import buckets, pack
from spaseq.runtime.spark.stages.standing_tasks import JUDGED, StageStep, StepResult, StreamReader
from spaseq.runtime.unit_stages import (
    Evaluation,
    MatchingStage,
    MemberStage,
    OrderedStage,
    Rows,
)
from spaseq.stages.late_sequence import NOTHING_CAME
from spaseq.stages.query_units import split_key
from spaseq.stages.unit_sequence import FoundAnswers

if TYPE_CHECKING:
    from spaseq.runtime.spark.standing.stage_jobs import StageJobs


@dataclass(frozen=True, slots=True)
class SparkEvaluation(Evaluation):
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

    def patterns(self, plan: QueryPlan) -> RemotePatterns:
        return RemotePatterns(self.jobs.shelf.query(plan), lambda: Evaluation.patterns(self, plan))

    def family_patterns(self, family: Family, plans: Mapping[int, QueryPlan]) -> RemotePatterns:
        number = self.jobs.shelf.family(family, plans.__getitem__)
        return RemotePatterns(number, lambda: Evaluation.family_patterns(self, family, plans))

    def sequence(self, plan: QueryPlan) -> RemoteSequence:
        def local() -> OrderedStage:
            return Evaluation.sequence(self, plan)

        return RemoteSequence(self.jobs, plan, self.limited, self.jobs.shelf.query(plan), local)

    def family_sequence(
        self, family: Family, plans: Mapping[int, QueryPlan]
    ) -> RemoteFamilySequence:
        return RemoteFamilySequence(self, family, plans)

    def local_family(self, family: Family, plans: Mapping[int, QueryPlan]) -> MemberStage:
        """Stage 2 of a family in this process."""
        return Evaluation.family_sequence(self, family, plans)

    def begin(self, due: Mapping[Unit, int]) -> None:
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

    def take(self, result: StepResult) -> None:
        """Go on from the result of a step."""
        self.version, self.state, self.waits = self.version + 1, result.state, result.waits
        self.suppressed, self.live, self.packs = result.suppressed, result.live, []
        self.exceeded = result.exceeded


class RemoteSequence:
    """Stage 2 of a unit, in parts by the values of its key.

    Args:
        jobs: runs it.
        plan: of the query or the family.
        limited: whether a limit counts answers, so that no partition is split.
        definition: its number for workers.
        local: makes the stage in this process, for those who want to look into the state.
    """

    def __init__(
        self,
        jobs: StageJobs,
        plan: QueryPlan,
        limited: bool,
        definition: int,
        local: Callable[[], OrderedStage],
    ) -> None:
        self.number, self.definition = jobs.new_unit(), definition
        self._jobs, self._plan, self._local = jobs, plan, local
        self._key = split_key(plan, limited)
        self._parts = [_Part() for _ in range(1 if self._key is None else jobs.buckets)]
        self._partials: list[PartialAnswer] = []
        self._states: tuple[int, LiveStates] | None = None  # and the batch after which they are so

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
        columns = self._plan.patterns.columns
        bucket = buckets(rows, self._key, len(self._parts))
        for number in np.unique(bucket).tolist():
            own = rows.take(np.flatnonzero(bucket == number))
            self.take(number, JUDGED, pack(own, columns))

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

    def found(self) -> dict[int, list[Sequence[Answer]]]:
        """The answers by the watermark that `StageJobs.begin` was told, by number."""
        blocks: dict[int, list[tuple[int, bytes]]] = {}
        for result in self._jobs.results(self):
            self._jobs.report(result)
            if result.failure is not None:
                raise result.failure
            self._parts[result.bucket].take(result)
            self._partials += result.partials
            for number, first, block in result.answers:
                blocks.setdefault(number, []).append((first, block))
        found: dict[int, list[Sequence[Answer]]] = {
            number: [*merged((first, answers_of(block)) for first, block in sorted(own))]
            for number, own in blocks.items()
        }
        for number, excess in self.exceeded_by_number().items():
            pieces = found.pop(number, [])
            found[number] = [[a for a in own if a.end < excess.instant] for own in pieces]
        return found

    def exceeded_by_number(self) -> dict[int, Excess]:
        """When queries had too many partial matches in some part, by number in the unit."""
        found: dict[int, Excess] = {}
        for number, excess in chain.from_iterable(part.exceeded.items() for part in self._parts):
            first = found.setdefault(number, excess)
            if excess.instant < first.instant:
                found[number] = excess
        return found

    @property
    def exceeded(self) -> Mapping[Member, Excess]:
        """When the query by itself had too many partial matches."""
        excess = self.exceeded_by_number().get(0)
        return {} if excess is None else {None: excess}

    def advance(self, watermark: int, ahead: bool = False) -> Sequence[Answer]:
        """The answers of a query by itself."""
        return [*chain.from_iterable(self.found().get(0, ()))]

    def close(self) -> Sequence[Answer]:
        """No answers: a standing run has no end."""
        return ()

    def partials(self) -> Sequence[PartialAnswer]:
        """The partial matches whose windows have closed since the last call."""
        found, self._partials = self._partials, []
        return sorted(found, key=PartialAnswer.order_key)

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return sum(part.suppressed for part in self._parts)

    def live_runs(self) -> int:
        """The number of partial matches that waited after the last batch."""
        return sum(part.live for part in self._parts)

    def live_states(self) -> LiveStates:
        """Where the partial matches were after the last batch."""
        if self._states is None or self._states[0] != self._jobs.batch:
            stages = self._restored(self._local)
            self._states = self._jobs.batch, total([stage.live_states() for stage in stages])
        return self._states[1]

    def of_parts(self, make: Callable[[], MemberStage]) -> list[MemberStage]:
        """The stages of a family's parts in this process."""
        return [*self._restored(make, lambda made: made.stage)]

    def _restored(
        self, make: Callable[[], Any], stage: Callable[[Any], OrderedStage] = lambda made: made
    ) -> list[Any]:
        found = list[Any]()
        for part in self._parts:
            if part.state is not None or not found:
                found.append(make())
                if part.state is not None:
                    stage(found[-1]).restore(part.state)
        return found

    def snapshot(self) -> bytes | list[Any]:
        """The state; if the stage is split, the variables of its key and the state of each part."""
        states = [NOTHING_CAME if p.state is None else p.state for p in self._parts]
        return states[0] if len(states) == 1 else [[*(self._key or ())], *states]

    def restore(self, snapshot: bytes | list[Any]) -> None:
        """Go on from a state, in the parts that it has."""
        states: list[Any] = [snapshot] if isinstance(snapshot, bytes) else snapshot
        if len(states) > 1:
            self._key = split_key(self._plan, False)  # older states do not name it
            if isinstance(states[0], list):
                key, *states = states
                self._key = tuple(key)
        self._parts = [_Part(None if own == NOTHING_CAME else own) for own in states]


class RemoteFamilySequence:
    """Stage 2 of a family."""

    def __init__(
        self, how: SparkEvaluation, family: Family, plans: Mapping[int, QueryPlan]
    ) -> None:
        self._how, self._family, self._plans = how, family, plans
        self.stage = RemoteSequence(
            how.jobs, family.plan, how.limited, self._definition(), lambda: self._local().stage
        )

    def _definition(self) -> int:
        return self._how.jobs.shelf.family(self._family, self._plans.__getitem__)

    def _local(self) -> MemberStage:
        return self._how.local_family(self._family, self._plans)

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return self.stage.suppressed

    def exceeded(self) -> Mapping[int, Excess]:
        """When members had too many partial matches, by number."""
        return self.stage.exceeded_by_number()

    def use(self, family: Family) -> None:
        """Go on with other members of the family."""
        self._family = family
        self.stage.definition = self._definition()

    def forget(self, number: int) -> None:
        """Give no more answers of a member: `use` follows before the next batch."""

    def push(self, rows: Rows) -> None:
        """Take solutions on events that are numbered."""
        self.stage.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        """The answers of each member."""
        return self.stage.found()

    def close(self) -> FoundAnswers:
        """No answers: a standing run has no end."""
        return {}

    def live_states(self, number: int) -> LiveStates:
        """Where the partial matches of a member were after the last batch."""
        return total([own.live_states(number) for own in self.stage.of_parts(self._local)])


def total(parts: Sequence[LiveStates]) -> LiveStates:
    """The live states of all parts of a unit. No part has counted what was taken."""
    waiting = sum((Counter(part.waiting) for part in parts), Counter())
    return LiveStates(parts[0].program, waiting, None)
