"""What the driver of a standing run sends to its tasks, and what they send back."""

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
    """A query by itself. Its answers have the number 0."""

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
        buckets: into how many parts.
    """

    unit: int
    tables: tuple[int, ...]
    key: tuple[str, ...] | None
    buckets: int


@record
class TaskMessages:
    """Messages of one stream for one task, in order; those of a piece arrived together.

    `counted` says which events are matched (bool[n]); all of them if it is not given.
    """

    source: BrokerStream
    pieces: tuple[MessageColumns, ...]
    readers: tuple[StreamReader, ...]
    counted: Bools | None = None


class JudgedEvents(NamedTuple):
    """What the driver has decided of the events of a block.

    Attributes:
        k: int32[n], -1 for events that do not count.
        time: int64[n], ms; None if the times are as they were read.
    """

    k: Int32s
    time: Int64s | None


class BatchOutline(NamedTuple):
    """What the driver needs of a batch of events to judge them, and to count them.

    Attributes:
        time: int64[n], ms.
        names: their graphs' IRIs [n].
        triples: how many triples they have.
        filtered: rows that were read with them, and are none.
    """

    time: Int64s
    names: EventNames
    triples: int
    filtered: int


class ReadPiece(NamedTuple):
    """What became of a piece of a block."""

    messages: int
    batches: list[BatchOutline]
    bad: list[BadInput]


class SolvedBlock(NamedTuple):
    """What became of a block.

    Attributes:
        pieces: in order.
        packs: (unit, bucket, packed solutions); their k is the number of the event in the block.
        failures: why units cannot go on, by number.
        seconds: of work.
    """

    pieces: list[ReadPiece]
    packs: list[tuple[int, int, bytes]]
    failures: dict[int, Exception]
    seconds: float


class LoggedStep(NamedTuple):
    """What a part of a unit's stage 2 did in an earlier batch, so that it can be done again.

    Attributes:
        definition: of the unit, as it was.
        packs: packed solutions, with what was decided of the events of their block; None if the
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
"""(unit, bucket): which part of which unit's stage 2."""


@record
class StageStep:
    """What a part of a unit's stage 2 does in a batch.

    Attributes:
        part: which part.
        definition: of the unit, as it is now.
        version: how many steps led here.
        state: after `kept` steps; None if nothing came so far, or if it is in a broadcast.
        kept: how many steps led to the state.
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
    """What a step has made.

    Attributes:
        part: whose it is.
        state: after the step; None if it failed, or nobody wants it.
        answers: (number of the query in the unit, time of the first answer, block of answers).
        partials: partial matches whose windows have closed.
        suppressed: answers beyond the limit since the unit began.
        muted: by the title of a query, answers that MUTE has left out since then.
        live: partial matches that wait.
        exceeded: by number of the query in the unit, when there were too many of them.
        waits: whether answers may come without further solutions.
        bad: events that exceed a limit.
        stats: counts of solutions, and seconds of work.
        failure: why the unit cannot go on.
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
