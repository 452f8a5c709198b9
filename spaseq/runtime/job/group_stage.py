"""Stage 2 of queries that read each other's streams, as one: for runs that do not end.

What a query registers is an event stream whose time stands where the query's own time stands: once
the watermark of all that it reads has passed a time, its answers up to that time are final, and no
other event at or before that time will follow. Its readers' watermark is the least over their
streams, registered or not.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaseq.algebra.answers import Answer
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.runtime.job.chaining import RegisteredStream, sources
from spaseq.stages.sequence import PatternStage, SequenceStage


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Queries, in reading order, that have to do with each other's streams; a query that reads and
    registers nothing of the kind is a group by itself. `streams` are those that none registers."""

    numbers: tuple[int, ...]
    streams: tuple[str, ...]

    def key(self, plans: Sequence[QueryPlan]) -> tuple[str, ...] | None:
        """What the group's work may be split by: a query's own key, if it is alone."""
        if len(self.numbers) > 1:
            return None
        return plans[self.numbers[0]].sequence.key.variables

    def title(self, plans: Sequence[QueryPlan]) -> str:
        """What messages call the group."""
        return ", ".join(plans[n].identity.name for n in self.numbers)


def groups(plans: Sequence[QueryPlan]) -> list[QueryGroup]:
    """The groups of a run's queries, by their first query; `plans` are in reading order."""
    home = list(range(len(plans)))
    for number, reads in enumerate(sources(plans)):
        joined = {home[n] for n in (*reads, number)}
        home = [min(joined) if h in joined else h for h in home]
    found = []
    for first in sorted(set(home)):
        numbers = tuple(n for n, h in enumerate(home) if h == first)
        made = {plans[n].identity.register for n in numbers}
        read = dict.fromkeys(iri for n in numbers for iri in plans[n].inputs.streams)
        found.append(QueryGroup(numbers, tuple(iri for iri in read if iri not in made)))
    return found


def group_of(plans: Sequence[QueryPlan], query: int) -> QueryGroup:
    """The group that a query belongs to."""
    return next(group for group in groups(plans) if query in group.numbers)


class GroupStage:
    """The sequence stages of a group's queries, the answers of one feeding the next.

    Rows are those of events of the group's `streams`; those of registered ones are made here.
    `on_bad` is called for each event that an endpoint was asked for in vain.
    """

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        group: QueryGroup,
        knowledge: KnowledgeBase,
        options: StageOptions = StageOptions(),
        on_bad: OnBad = warn,
    ) -> None:
        self.group = group
        self.plans = {n: plans[n] for n in group.numbers}
        self._stages = {
            n: SequenceStage(plan, options, knowledge, on_bad) for n, plan in self.plans.items()
        }
        readers: dict[str, list[int]] = {}
        for number, plan in self.plans.items():
            for iri in plan.inputs.streams:
                readers.setdefault(iri, []).append(number)
        self._readers = {
            n: readers[plan.identity.register]
            for n, plan in self.plans.items()
            if plan.identity.register is not None and plan.identity.register in readers
        }
        fed = {reader for numbers in self._readers.values() for reader in numbers}
        self._fed, self._on_bad = tuple(fed), on_bad
        self._matchers = self._matchers_with(knowledge)

    def _matchers_with(self, knowledge: KnowledgeBase) -> dict[int, PatternStage]:
        return {n: PatternStage(self.plans[n], knowledge, self._on_bad) for n in self._fed}

    @property
    def reads_knowledge(self) -> bool:
        """Whether a graph of the knowledge base is read here, not in stage 1 alone."""
        correlated = (
            n for n, plan in self.plans.items() if any(g.correlation for g in plan.patterns.gpms)
        )
        return any(self.plans[n].inputs.kbs for n in (*correlated, *self._fed))

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on evaluate with this knowledge base; what has been found so far stays."""
        for stage in self._stages.values():
            stage.use(knowledge)
        self._matchers = self._matchers_with(knowledge)

    def push(self, query: int, rows: SolutionBatch) -> None:
        """Take rows of a query."""
        self._stages[query].push(rows)

    def advance(self, marks: Mapping[str, int]) -> list[tuple[int, list[Answer]]]:
        """Each query's answers that are certain once no event at or before its stream's mark (ms,
        by stream IRI) follows."""
        marks = dict(marks)
        found = []
        for number, plan in self.plans.items():
            watermark = min(marks[iri] for iri in plan.inputs.streams)
            answers = self._stages[number].advance(watermark)
            found.append((number, answers))
            if plan.identity.register is not None:
                marks[plan.identity.register] = watermark
            if answers and number in self._readers:
                self._feed(number, plan.identity.register or "", answers)
        return found

    def _feed(self, number: int, iri: str, answers: Sequence[Answer]) -> None:
        # All answers of one time come together, so that their numbering starts afresh.
        events = RegisteredStream(iri).events(answers)
        for reader in self._readers[number]:
            self._stages[reader].push(self._matchers[reader].match(events))

    @property
    def suppressed(self) -> int:
        """How many answers the limit has kept back so far."""
        return sum(stage.suppressed for stage in self._stages.values())

    def live_runs(self) -> dict[int, int]:
        """How many partial matches wait, by query."""
        return {number: stage.live_runs() for number, stage in self._stages.items()}

    def snapshot(self) -> bytes:
        """The state; `restore` on a stage of the same queries takes it up again. That of a query
        that is alone is its stage's own."""
        if len(self._stages) == 1:
            return next(iter(self._stages.values())).snapshot()
        parts = [stage.snapshot() for stage in self._stages.values()]
        return pickle.dumps(parts, pickle.HIGHEST_PROTOCOL)

    def restore(self, snapshot: bytes) -> None:
        """Take up a snapshot; RunError as from `SequenceStage.restore`."""
        parts = [snapshot] if len(self._stages) == 1 else pickle.loads(snapshot)
        for stage, part in zip(self._stages.values(), parts, strict=True):
            stage.restore(part)
