"""The stages of one query in a row: solutions of graph patterns, then sequences of them.

Both are plain objects over column batches; they know neither Spark nor threads nor clocks. Time
comes in with the watermark.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import TypeAlias

import numpy as np

from spaseq.algebra.answers import Answer, Instant
from spaseq.algebra.construct import constructed
from spaseq.algebra.correlation import EVENT
from spaseq.automaton.program.gpm_columns import CorrelatedColumns, GpmColumns
from spaseq.automaton.program.selection import Position, select
from spaseq.automaton.run.after_match import AfterMatchFilter
from spaseq.automaton.run.event_rows import EventRows, batch_of
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch, partition_of
from spaseq.automaton.run.work_counts import WorkCounts
from spaseq.automaton.sequencer import sequencer
from spaseq.errors import RunError
from spaseq.gpm.correlated import CorrelatedEvaluator
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.evaluators import limits, selects
from spaseq.plan.query_plan import GpmPlan, QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.stages.answers import Projection, order_of

__all__ = ["PatternStage", "SequenceStage"]

STATE_VERSION = 3
"""Version of what `SequenceStage.snapshot` writes."""

_EVER = 2**63 - 1
_FEW = 64
"""So many events that came one by one are sooner worked off without columns."""

_Item: TypeAlias = tuple[SequenceMatch, Answer]
"""An answer and the match it is of."""


class SequenceStage:
    """Stage 2 of a query: buffers rows, orders them, and turns them into answers.

    Rows may be pushed in any order; `advance` works off those at or before the watermark. The
    answers of one call are in the order of LANGUAGE section 3, and all end before those of the
    next call.

    `options.limit_per_event` bounds the answers of one end instant and one partition (PARTITION
    BY's, or one value of the inferred key); `suppressed` counts the others. Answers are the matches
    that HAVING, the selection strategy, AFTER MATCH and DISTINCT leave. GPMs that depend on
    bindings of earlier steps are evaluated here: they read `knowledge`, and `on_bad` is called for
    each event that an endpoint gave no answer for.
    """

    def __init__(
        self,
        plan: QueryPlan,
        options: StageOptions = StageOptions(),
        knowledge: KnowledgeBase | None = None,
        on_bad: OnBad = warn,
    ) -> None:
        self._plan = plan
        early = limits(plan)
        limit = options.limit_per_event
        self._limit = None if early else limit
        self._withheld = 0
        columns = [_columns(g) for g in plan.patterns.gpms]
        known = KnowledgeBase.empty() if knowledge is None else knowledge
        self._correlated = CorrelatedEvaluator(plan, known, on_bad)
        names = [g.name for g in plan.patterns.gpms]
        self._machine = Machine(
            plan.sequence.program,
            plan.sequence.window,
            columns,
            names,
            plan.answers.strategy == "STRICT",
            plan.expressions,
            evaluator=plan.sequence.evaluator.name,
            partition=plan.sequence.partition,
            key=plan.sequence.evaluator.key,
            order=plan.sequence.evaluator.order,
            strategy=plan.answers.strategy if selects(plan) else "ALL",
            streams=plan.inputs.streams,
            limit=limit if early else None,
            limit_key=tuple(
                v for v in plan.sequence.key.variables or () if v not in plan.sequence.partition
            ),
            solve=self._correlated.solve,
        )
        self._sequencer = sequencer(self._machine)
        self._buffer: list[SolutionBatch] = []
        self._events: list[EventRows] = []  # those that came one by one
        self._filters: dict[PartitionKey, AfterMatchFilter] = {}
        self._as_found = (  # all of them, each by itself
            (plan.answers.strategy == "ALL" or selects(plan))
            and plan.answers.after_match.kind == "NO SKIP"
            and not plan.answers.distinct
            and self._limit is None
            and plan.answers.template is None
        )
        self._projection = Projection(plan)

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on evaluate with this knowledge base; what has been found so far stays."""
        self._correlated.use(knowledge)

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        if isinstance(rows, EventRows):
            self._events.append(rows)
        elif len(rows):
            self._buffer.append(rows)

    def advance(self, watermark: int, ahead: bool = False) -> list[Answer]:
        """Answers that are certain once nothing at or before `watermark` (ms) follows.

        With `ahead`, nothing follows at or before the instants of all that has been pushed, either:
        it is worked off, and the answers that end there are among those returned.
        """
        until = _EVER if ahead else watermark
        events = [e for e in self._events if e.time <= until]
        if len(events) == len(self._events):
            self._events.clear()
        elif events:
            self._events = [e for e in self._events if e.time > until]
        if not self._buffer and len(events) <= _FEW:
            return self._answers(self._sequencer.run_events(events, watermark))
        if events:
            self._buffer.append(self._columns_of(events))
        return self._answers(self._sequencer.run(self._due(until), watermark))

    def _columns_of(self, events: list[EventRows]) -> SolutionBatch:
        taken = [row for event in events for row in event.rows()]
        return batch_of(
            taken, [g.variables for g in self._plan.patterns.gpms], self._plan.patterns.columns
        )

    def _due(self, until: int) -> SolutionBatch:
        due: list[SolutionBatch] = []
        later: list[SolutionBatch] = []
        for batch in self._buffer:
            mask = batch.time <= until
            if mask.all():
                due.append(batch)
            elif not mask.any():
                later.append(batch)
            else:
                due.append(batch.take(np.flatnonzero(mask)))
                later.append(batch.take(np.flatnonzero(~mask)))
        self._buffer = later
        return SolutionBatch.concat(due, self._plan.patterns.columns)

    def close(self) -> list[Answer]:
        """The remaining answers; all streams have ended."""
        answers = []
        if self._buffer or self._events:
            times = [int(b.time.max()) for b in self._buffer] + [e.time for e in self._events]
            answers = self.advance(max(times))
        return answers + self._answers(self._sequencer.close())

    @property
    def suppressed(self) -> int:
        """How many answers the limit has kept back so far."""
        return self._withheld + self._sequencer.suppressed

    @property
    def work(self) -> WorkCounts:
        """What the evaluator has looked at, if it is registers or lazy."""
        return self._machine.work

    def live_runs(self) -> int:
        """How many partial matches wait."""
        return self._sequencer.live_runs()

    # --- matches to answers -----------------------------------------------------------------------

    def _answers(self, found: Iterable[SequenceMatch]) -> list[Answer]:
        """Order, HAVING, selection, after-match, projection: LANGUAGE sections 3 and 5."""
        plan, projection = self._plan, self._projection
        if self._as_found:
            answers = [answer for _, answer in projection.answers(found)]
            return [answers[i] for i in order_of(answers)] if len(answers) > 1 else answers
        items = [*projection.answers(found)]
        if not items:
            return []
        items = [items[i] for i in order_of([answer for _, answer in items])]
        if plan.answers.strategy != "ALL" and not selects(plan):
            items = self._selected(items)
        if plan.answers.after_match.kind != "NO SKIP":
            items = [i for i in items if self._filter(self._partition_of(i[0])).keeps(*i)]
        if plan.answers.distinct:
            items = _distinct(items)
        if self._limit is not None:
            items = self._limited(items, self._limit)
        answers = [answer for _, answer in items]
        if plan.answers.template is not None:
            events = (
                constructed(plan.answers.template, plan.identity.name, answer) for answer in answers
            )
            return [event for event in events if event is not None]
        return answers

    def _partition_of(self, match: SequenceMatch) -> PartitionKey:
        return partition_of(match.solutions[0], self._plan.sequence.partition)

    def _selected(self, items: list[_Item]) -> list[_Item]:
        def group_of(place: int) -> tuple[Instant, PartitionKey]:
            match, answer = items[place]
            return answer.end, self._partition_of(match)

        kept: list[int] = []
        places = sorted(range(len(items)), key=group_of)
        for (_, key), group in groupby(places, key=group_of):
            kept += select(
                list(group),
                self._plan.answers.strategy,
                lambda place: _positions(items[place][1]),
                partial(self._sequencer.consecutive, key),
            )
        return [items[place] for place in sorted(kept)]

    def _limited(self, items: list[_Item], limit: int) -> list[_Item]:
        """The first answers of each end and partition."""
        given: Counter[tuple[Instant, PartitionKey, PartitionKey]] = Counter()
        kept = []
        for item in items:
            match, answer = item
            singles = dict(answer.singles)
            key = tuple([singles.get(v) for v in self._plan.sequence.key.variables or ()])
            group = answer.end, self._partition_of(match), key
            given[group] += 1
            if given[group] <= limit:
                kept.append(item)
        self._withheld += len(items) - len(kept)
        return kept

    def _filter(self, key: PartitionKey) -> AfterMatchFilter:
        found = self._filters.get(key)
        if found is None:
            skip = self._plan.answers.after_match
            names = list(self._machine.names)
            gpm = names.index(skip.gpm) if skip.gpm is not None else None
            found = AfterMatchFilter(skip.kind, self._plan.sequence.window.horizon, gpm)
            self._filters[key] = found
        return found

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The stage's state; `restore` on a stage of the same plan takes it up again."""
        out = io.BytesIO()
        pickler = _StatePickler(out, self._machine)
        if self._events:
            self._buffer.append(self._columns_of(self._events))
            self._events.clear()
        buffer = [rows.compact() for rows in self._buffer]
        state = (self._sequencer.snapshot(), buffer, self._filters, self._withheld)
        pickler.dump((STATE_VERSION, self._plan.identity.fingerprint, state))
        return out.getvalue()

    def restore(self, snapshot: bytes) -> None:
        """Take up a snapshot.

        Raises:
            RunError: it is of another query, or of a state format this version cannot read.
        """
        unpickler = _StateUnpickler(io.BytesIO(snapshot), self._machine)
        version, fingerprint, state = unpickler.load()
        if version != STATE_VERSION:
            raise RunError(
                f"state format {version} cannot be read; this version reads {STATE_VERSION}"
            )
        if fingerprint != self._plan.identity.fingerprint:
            raise RunError(f"the state is of another query than {self._plan.identity.name}")
        sequencer, self._buffer, self._filters, self._withheld = state
        self._sequencer.restore(sequencer)


def _columns(gpm: GpmPlan) -> GpmColumns:
    correlation = None
    if gpm.correlation is not None:
        event = gpm.variables.index(EVENT)
        correlation = CorrelatedColumns(event, gpm.correlation.reads, gpm.correlation.parameters)
    return GpmColumns(gpm.variables, gpm.conditions, gpm.certain, correlation)


def _positions(answer: Answer) -> frozenset[Position]:
    return frozenset(((t.time, t.k), t.stream) for t in answer.trace)


def _distinct(items: list[_Item]) -> list[_Item]:
    """The first of the answers of one end with equal bindings."""
    kept = []
    for _, group in groupby(items, key=lambda item: item[1].end):
        seen: set[tuple[tuple[str, str], ...]] = set()
        for item in group:
            bindings = item[1].bindings
            if bindings not in seen:
                seen.add(bindings)
                kept.append(item)
    return kept


class _StatePickler(pickle.Pickler):
    """Writes the parts of the static automaton as numbers."""

    def __init__(self, out: io.BytesIO, machine: Machine) -> None:
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self._machine = machine

    def persistent_id(self, obj: object) -> int | None:
        if obj is self._machine:
            return -1
        return self._machine.numbers.get(id(obj))


class _StateUnpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, machine: Machine) -> None:
        super().__init__(data)
        self._machine = machine

    def persistent_load(self, pid: int) -> object:
        return self._machine if pid == -1 else self._machine.statics[pid]
