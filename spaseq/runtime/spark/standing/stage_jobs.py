"""Runs both stages of the batches of a standing run as Spark jobs."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from spaseq import thresholds
from spaseq.algebra.graph_changes import together
from spaseq.compiled import mode
from spaseq.kb.knowledge_versions import EARLIEST, TimedChange
from spaseq.options import StageOptions
from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.runtime.live.live_engine import EngineLost
from spaseq.runtime.pushed_units import PushedUnit
from spaseq.runtime.spark.session.failures import spark_errors
from spaseq.runtime.spark.session.worker_python import (
    LIKE_DATAFRAMES,
    worker_python,
    worker_variables,
)
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.runtime.spark.stages.standing_messages import (
    JUDGED,
    Definition,
    FamilyDefinition,
    JudgedEvents,
    LoggedStep,
    PartKey,
    QueryDefinition,
    SolvedBlock,
    StageStep,
    StepResult,
    TaskMessages,
)
from spaseq.runtime.spark.stages.standing_tasks import StandingTasks

MOST = 32
"""Number of broadcasts beyond which they become one, without unused definitions."""


class DefinitionShelf:
    """Numbers definitions, and broadcasts those that are new before a batch.

    `edition` changes whenever definitions have been dropped.
    """

    def __init__(self, context: Any) -> None:
        self._context, self.edition = context, 0
        self._next = 0
        self._pickled: dict[int, bytes] = {}  # all of them
        self._members: dict[int, frozenset[int]] = {}  # of a family: its members' definitions
        self._new: dict[int, bytes] = {}  # those that no broadcast has
        self._plans: dict[tuple[str, str, str], int] = {}
        self._shelves: list[tuple[int, Any]] = []

    def query(self, plan: QueryPlan) -> int:
        """The number of a query's definition; equal queries share one."""
        signature = plan.signature
        key = plan.identity.title, signature.fingerprint, signature.canonical
        if key not in self._plans:
            self._plans[key] = self._add(QueryDefinition(replace(plan, shaped=None)))
        return self._plans[key]

    def family(self, family: Family, plans: Callable[[int], QueryPlan]) -> int:
        """The number of a family's definition, given the plan of each member."""
        numbers = {member: self.query(plans(member)) for member in family.members}
        first = replace(family.first, shaped=None)
        definition = self._add(FamilyDefinition(replace(family, first=first), numbers))
        self._members[definition] = frozenset(numbers.values())
        return definition

    def _add(self, definition: Definition) -> int:
        number, self._next = self._next, self._next + 1
        self._pickled[number] = self._new[number] = pickle.dumps(definition, 5)
        return number

    def shelves(self, used: Callable[[], Collection[int]]) -> tuple[tuple[int, Any], ...]:
        """All broadcasts; `used` gives the numbers of the definitions that units have."""
        if self._new:
            if len(self._shelves) >= MOST:
                self._tidy(used())
            last, shelf = max(self._new), self._context.broadcast(self._new)
            self._shelves.append((last, shelf))
            self._new = {}
        return tuple(self._shelves)

    def _tidy(self, used: Collection[int]) -> None:
        """Make one broadcast of the definitions that are used."""
        kept = {*used}
        for number in used:
            kept |= self._members.get(number, frozenset())
        self._pickled = {n: data for n, data in self._pickled.items() if n in kept}
        self._members = {n: some for n, some in self._members.items() if n in kept}
        self._plans = {key: n for key, n in self._plans.items() if n in kept}
        for _, shelf in self._shelves:
            shelf.destroy()
        self._shelves, self._new = [], self._pickled
        self.edition += 1


class ChangeShelf:
    """Broadcasts changes of graphs; many old changes are merged."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._old: list[TimedChange] = []  # the effect of the first changes
        self._first = 0  # how many these are
        self._changes: list[TimedChange] = []  # all others
        self._shelves: list[tuple[int, Any]] = []

    def add(self, change: TimedChange) -> None:
        """Add a change."""
        self._changes.append(change)

    def shelves(self, settled: int) -> tuple[tuple[int, Any], ...]:
        """All broadcasts, each with the total number of changes by then; few, as a worker may be
        new.

        Args:
            settled: no event at or before this time (ms) follows.
        """
        told = self._shelves[-1][0] if self._shelves else self._first
        count = self._first + len(self._changes)
        if told < count:
            old: list[TimedChange] = []
            if len(self._shelves) >= MOST:
                self._tidy(settled)
                told = self._first
            if not self._shelves:
                old = self._old
            value = old, told, self._changes[told - self._first :]
            self._shelves.append((count, self._context.broadcast(value)))
        return tuple(self._shelves)

    def _tidy(self, settled: int) -> None:
        """Restart with one broadcast, without values that no event needs."""
        for _, shelf in self._shelves:
            shelf.destroy()
        new = [*takewhile(lambda change: change.time <= settled + 1, self._changes)]
        by_graph: dict[str, list[TimedChange]] = {}
        for change in (*self._old, *new):
            by_graph.setdefault(change.graph, []).append(change)
        self._old = [
            TimedChange(changes[-1].time, graph, together(each.change for each in changes))
            for graph, changes in by_graph.items()
        ]
        self._first, self._shelves = self._first + len(new), []
        self._changes = self._changes[len(new) :]


class StateShelf:
    """Broadcasts each large state once; a worker reads a state if it has no stage."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._shelves: dict[PartKey, tuple[int, Any]] = {}

    def put(self, steps: Sequence[StageStep]) -> tuple[list[StageStep], dict[PartKey, Any]]:
        """The steps without large states, and the broadcasts of these states."""
        broadcasts = {}
        for step in steps:
            if step.state is not None and len(step.state) > thresholds.current.log_bytes:
                kept, shelf = self._shelves.get(step.part, (-1, None))
                if kept != step.kept:
                    if shelf is not None:
                        shelf.destroy()
                    shelf = self._context.broadcast(step.state)
                    self._shelves[step.part] = step.kept, shelf
                broadcasts[step.part] = shelf
        light = [replace(s, state=None) if s.part in broadcasts else s for s in steps]
        return light, broadcasts

    def tidy(self, units: Collection[int]) -> None:
        """Drop the states of other units."""
        for key in [key for key in self._shelves if key[0] not in units]:
            self._shelves.pop(key)[1].destroy()


T = TypeVar("T")
Done: TypeAlias = tuple[LoggedStep, StepResult]
"""A step, and its result."""


@runtime_checkable
class SteppedSequence(Protocol):
    """Stage 2 of a unit, whose steps run on workers."""

    number: int

    def steps(self, watermark: int) -> Iterable[StageStep]:
        """The steps for workers that advance it to a watermark (ms)."""


class StageJobs:
    """The jobs of a run's batches.

    Args:
        spark: the session.
        knowledge: the knowledge base, for workers.
        options: of the stages.

    Attributes:
        shelf: the definitions of units.
        changes: the changes of graphs.
        settled: no event at or before this time (ms) follows, and none is in a log of steps.
        buckets: the number of parts of stage 2 of a unit with a key.
        batch: the number of the present batch.
        judged: by block of the batch, the driver's decisions about its events.
        used: returns the numbers of the definitions that units have.
        report: called with every result of stage 2 that a unit takes.
    """

    def __init__(self, spark: Any, knowledge: StoredKnowledge, options: StageOptions) -> None:
        self._spark, self._knowledge, self._options = spark, knowledge, options
        self._id, self._units = uuid.uuid4().hex, 0
        self.buckets: int = spark.sparkContext.defaultParallelism
        self.shelf = DefinitionShelf(spark.sparkContext)
        self.changes = ChangeShelf(spark.sparkContext)
        self.settled = EARLIEST
        self.batch = 0
        self.judged: dict[int, JudgedEvents] = {}
        self.used: Callable[[], Collection[int]] = list
        self.report: Callable[[StepResult], None] = ignore
        self._due: dict[int, tuple[PushedUnit, int]] = {}  # units without results, and watermarks
        self._silent: dict[int, PushedUnit] = {}  # units that have not told others their answers
        self._results: dict[int, list[Done]] = {}
        self._states = StateShelf(spark.sparkContext)
        self._lost: Exception | None = None

    def new_unit(self) -> int:
        """The number of a new unit."""
        self._units += 1
        return self._units

    def check(self) -> None:
        """EngineLost if a job has failed."""
        if self._lost is not None:
            raise EngineLost(f"{self._lost}. Start the run again: no event is lost") from self._lost

    # --- stage 1 ----------------------------------------------------------------------------------

    def solved(self, blocks: Sequence[TaskMessages]) -> list[SolvedBlock]:
        """Stage 1 of some blocks."""
        try:
            return self._each(lambda tasks: tasks.solved, blocks, {})
        except Exception as error:
            self._lost = error
            self.check()
            raise

    # --- stage 2 ----------------------------------------------------------------------------------

    def begin(self, due: Mapping[PushedUnit, int]) -> None:
        """Record to which watermark (ms) each unit advances in this batch, in reading order."""
        self.batch += 1
        self._due = {_number(unit): (unit, watermark) for unit, watermark in due.items()}
        self._silent = {_number(unit): unit for unit in due}
        self._states.tidy(self._due)

    def results(self, sequence: SteppedSequence) -> list[Done]:
        """The results of a unit; units call this in reading order, and pass their answers on before
        the next call.

        The first call runs all units whose streams are complete. So queries that read each other's
        streams take a job for each level.
        """
        if sequence.number in self._due and self._lost is None:
            try:
                self._run([*self._ready()])
            except Exception as error:  # of no single query
                self._lost = error
        self._silent.pop(sequence.number, None)
        return [] if self._lost else self._results.pop(sequence.number, [])

    def _ready(self) -> Iterable[tuple[PushedUnit, int]]:
        silent = {iri for unit in self._silent.values() for iri in _made(unit)}
        for number, (unit, watermark) in [*self._due.items()]:
            if silent.isdisjoint(unit.queries[0].plan.inputs.streams):
                del self._due[number]
                yield unit, watermark

    def _run(self, ready: Sequence[tuple[PushedUnit, int]]) -> None:
        steps = [step for unit, mark in ready for step in _sequence(unit).steps(mark)]
        for step, result in self._stepped(steps):
            self._results.setdefault(result.part[0], []).append((step, result))

    def done(self, steps: Sequence[StageStep]) -> list[Done]:
        """The results of steps between batches.

        Raises:
            EngineLost: the job has failed.
        """
        self.check()
        try:
            return self._stepped(steps)
        except Exception as error:
            self._lost = error
            self.check()
            raise

    def _stepped(self, steps: Sequence[StageStep]) -> list[Done]:
        light, states = self._states.put(steps)
        parts = [
            (share, {n: self.judged[n] for step in share for n, _ in step.packs if n != JUDGED})
            for share in _shares(light, self.buckets)
        ]
        done = self._each(lambda tasks: tasks.stepped, parts, states)
        logged = {step.part: step.logged(self.judged) for step in light}
        return [(logged[result.part], result) for results in done for result in results]

    def _each(
        self,
        task: Callable[[StandingTasks], Callable[[bytes], T]],
        items: Any,
        states: Mapping[PartKey, Any],
    ) -> list[T]:
        """The results of a task for each item, in parallel; `states` are broadcasts."""
        if not items:
            return []
        context = self._spark.sparkContext
        with spark_errors():
            shelves = self.shelf.shelves(self.used)
            run = self._id, self.shelf.edition
            graphs = self._knowledge, self.changes.shelves(self.settled), self.settled
            tasks = StandingTasks(run, shelves, *graphs, states, self._options, mode.current())
            do = task(tasks)
            with worker_python(self._spark), worker_variables(context, LIKE_DATAFRAMES):
                given = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
                results = context.parallelize(given, len(given)).map(lambda data: do(data))
                results.id()  # records the workers' Python and variables
            results_in_order: list[T] = results.collect()
        return results_in_order


def _sequence(unit: PushedUnit) -> SteppedSequence:
    assert isinstance(unit.sequence, SteppedSequence)
    return unit.sequence


def _number(unit: PushedUnit) -> int:
    return _sequence(unit).number


def _made(unit: PushedUnit) -> list[str]:
    """The streams that a unit's queries register."""
    made = (query.plan.identity.register for query in unit.queries)
    return [iri for iri in made if iri is not None]


def _shares(steps: Sequence[StageStep], count: int) -> list[list[StageStep]]:
    """The steps in at most this many shares of about equal size."""
    shares, sizes = [list[StageStep]() for _ in range(count)], [0] * count
    for step in sorted(steps, key=_size, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(step)
        sizes[least] += _size(step)
    return [share for share in shares if share]


_STEP_BYTES = 10_000
"""Minimum cost of a step, in bytes."""


def _size(step: StageStep) -> int:
    return _STEP_BYTES + len(step.state or b"") + sum(len(data) for _, data in step.packs)
