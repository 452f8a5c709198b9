"""The messages between the driver of a standing run and its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from spaseq.algebra.answers import PartialAnswer
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.logs.messages import MessageColumns
from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.records import record
from spaseq.runtime.job.job import Stats
from spaseq.sources.broker_stream import BrokerStream

JUDGED = -1
"""The block of solutions whose events are judged and numbered already."""


@record
class QueryDefinition:
    """A single query. Its answers have the number 0."""

    plan: QueryPlan


@record
class FamilyDefinition:
    """A family with its present members; `plans` has the definition of each, by its number."""

    family: Family
    plans: Mapping[int, int]

    @property
    def plan(self) -> QueryPlan:
        """The family's plan."""
        return self.family.plan


Definition: TypeAlias = "QueryDefinition | FamilyDefinition"


class StreamReader(NamedTuple):
    """A unit that reads a stream.

    Attributes:
        unit: its number.
        tables: the definitions of its stage 1.
        key: the variables by which its stage 2 is split.
        buckets: the number of these parts.
    """

    unit: int
    tables: tuple[int, ...]
    key: tuple[str, ...] | None
    buckets: int


@record
class TaskMessages:
    """Messages of one stream for one task, in order. The messages of a piece arrived together.

    `counted` says which events are matched (bool[n]); all of them if it is not given.
    """

    source: BrokerStream
    pieces: tuple[MessageColumns, ...]
    readers: tuple[StreamReader, ...]
    counted: Bools | None = None


class JudgedEvents(NamedTuple):
    """The driver's decisions about the events of a block.

    Attributes:
        k: int32[n], -1 for events that do not count.
        time: int64[n], ms; None: the times of the input.
    """

    k: Int32s
    time: Int64s | None


class BatchOutline(NamedTuple):
    """The parts of a batch of events that the driver needs to judge and count them.

    Attributes:
        time: int64[n], ms.
        names: their graphs' IRIs [n].
        triples: their number of triples.
        filtered: number of rows read with them that gave no event.
    """

    time: Int64s
    names: EventNames
    triples: int
    filtered: int


class ReadPiece(NamedTuple):
    """The result for a piece of a block."""

    messages: int
    batches: list[BatchOutline]
    bad: list[BadInput]


class SolvedBlock(NamedTuple):
    """The result for a block.

    Attributes:
        pieces: in order.
        packs: (unit, bucket, packed solutions); their k is the number of the event in the block.
        failures: the reasons of failed units, by number.
        seconds: of work.
    """

    pieces: list[ReadPiece]
    packs: list[tuple[int, int, bytes]]
    failures: dict[int, Exception]
    seconds: float


class LoggedStep(NamedTuple):
    """A step of a part of a unit's stage 2 in an earlier batch, to be repeated.

    Attributes:
        definition: of the unit at that time.
        packs: packed solutions, with the decisions about the events of their block; None if the
            events were judged before.
        watermark: ms.
    """

    definition: int
    packs: tuple[tuple[bytes, JudgedEvents | None], ...]
    watermark: int

    @property
    def nbytes(self) -> int:
        """Its size."""
        arrays = [a for _, judged in self.packs for a in judged or () if a is not None]
        return sum(len(data) for data, _ in self.packs) + sum(a.nbytes for a in arrays)


PartKey: TypeAlias = tuple[int, int]
"""(unit, bucket): identifies a part of a unit's stage 2."""


@record
class StageStep:
    """A step of a part of a unit's stage 2 in a batch.

    Attributes:
        part: the part.
        definition: of the unit now.
        version: number of earlier steps.
        state: after `kept` steps; None at the beginning, or if it is in a broadcast.
        kept: number of steps that the state includes.
        log: the last steps before this one, at least all after the state.
        packs: (block, packed solutions).
        watermark: ms; no solution at or before it follows.
        wants_state: whether the result has the new state.
    """

    part: PartKey
    definition: int
    version: int
    state: bytes | None
    kept: int
    log: tuple[LoggedStep, ...]
    packs: tuple[tuple[int, bytes], ...]
    watermark: int
    wants_state: bool

    def logged(self, judged: Mapping[int, JudgedEvents]) -> LoggedStep:
        """This step for the log; `judged` has the events of each block."""
        packs = ((data, None if n == JUDGED else judged[n]) for n, data in self.packs)
        return LoggedStep(self.definition, tuple(packs), self.watermark)


class StepResult(NamedTuple):
    """The result of a step.

    Attributes:
        part: the part.
        state: after the step; None if it failed, or was not requested.
        answers: (number of the query in the unit, time of the first answer, block of answers).
        partials: partial matches whose windows have closed.
        suppressed: number of answers beyond the limit since the unit began.
        muted: number of answers that MUTE has left out since then, by the title of a query.
        live: number of waiting partial matches.
        exceeded: by number of the query in the unit, the instant at which it exceeded their limit.
        waits: whether answers may come without further solutions.
        bad: events that exceed a limit.
        stats: counts of solutions, and seconds of work.
        failure: the reason of the unit's failure.
    """

    part: PartKey
    state: bytes | None = None
    answers: Sequence[tuple[int, int, bytes]] = ()
    partials: Sequence[PartialAnswer] = ()
    suppressed: int = 0
    muted: Mapping[str, int] = {}
    live: int = 0
    exceeded: Mapping[int, Excess] = {}
    waits: bool = False
    bad: Sequence[BadInput] = ()
    stats: Stats | None = None
    failure: Exception | None = None
