"""Stage 2 of followed queries that read each other's streams: they advance together, in one group.

The watermark of a registered stream is that of the query that registers it: once the watermarks of
all streams that the query reads have passed a time, its answers up to that time are final, and no
further event at or before that time comes. The watermark of a reader is the least one of its
streams, registered or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.errors import RunError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.runtime.job.chaining import RegisteredStream, queries_read
from spaseq.stages.sequence import PatternStage, SequenceStage
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Queries that are connected by registered streams; any other query is a group by itself.

    Attributes:
        numbers: the queries, in reading order.
        streams: the IRIs of the streams that come from outside the group.
    """

    numbers: tuple[int, ...]
    streams: tuple[str, ...]

    def key(self, plans: Sequence[QueryPlan]) -> tuple[str, ...] | None:
        """The variables by which stage 2 is split: the key of a query that is alone, else None."""
        if len(self.numbers) > 1:
            return None
        return plans[self.numbers[0]].sequence.key.variables

    def title(self, plans: Sequence[QueryPlan]) -> str:
        """The group's name in messages."""
        return ", ".join(plans[n].identity.name for n in self.numbers)


def groups(plans: Sequence[QueryPlan]) -> list[QueryGroup]:
    """The groups of a run's queries, in order of their first queries.

    `plans` are in reading order.
    """
    home = list(range(len(plans)))
    for number, reads in enumerate(queries_read(plans)):
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
    """The sequence stages of a group's queries; the answers of one are events for the next.

    `push` takes solutions over the group's `streams`. Solutions over registered streams are made
    here.

    Args:
        plans: of all queries of the run.
        group: the group.
        knowledge: the knowledge base for graph patterns over registered streams.
        options: of each stage.
        on_bad: called for each event that lacks an endpoint's answer or exceeds a limit.
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
        self._fed, self._on_bad, self._limits = tuple(fed), on_bad, options.limits
        self._matchers = self._matchers_with(knowledge)

    def _matchers_with(self, knowledge: KnowledgeBase) -> dict[int, PatternStage]:
        return {
            n: PatternStage(self.plans[n], knowledge, self._on_bad, self._limits) for n in self._fed
        }

    @property
    def reads_knowledge(self) -> bool:
        """Whether this stage, and not only stage 1, reads graphs of the knowledge base."""
        correlated = (
            n for n, plan in self.plans.items() if any(g.correlation for g in plan.patterns.gpms)
        )
        return any(self.plans[n].inputs.kbs for n in (*correlated, *self._fed))

    def use(self, knowledge: KnowledgeBase) -> None:
        """Evaluate with this knowledge base from now on; partial matches stay."""
        for stage in self._stages.values():
            stage.use(knowledge)
        self._matchers = self._matchers_with(knowledge)

    def push(self, query: int, rows: SolutionBatch) -> None:
        """Take solutions of a query, in any order."""
        self._stages[query].push(rows)

    def advance(self, marks: Mapping[str, int]) -> list[tuple[int, Sequence[Answer]]]:
        """Each query's answers that the watermarks make final.

        Args:
            marks: by stream IRI the time (ms) at or before which no event follows.
        """
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

    def partials(self) -> list[tuple[int, list[PartialAnswer]]]:
        """Each query's partial matches whose windows have closed since the last call."""
        return [(number, stage.partials()) for number, stage in self._stages.items()]

    def _feed(self, number: int, iri: str, answers: Sequence[Answer]) -> None:
        # Answers of one time come together, so a new counter numbers them rightly.
        events = RegisteredStream(iri).events(answers)
        for reader in self._readers[number]:
            self._stages[reader].push(self._matchers[reader].match(events))

    @property
    def suppressed(self) -> int:
        """How many answers the limit has left out so far."""
        return sum(stage.suppressed for stage in self._stages.values())

    def live_runs(self) -> dict[int, int]:
        """The number of waiting partial matches, by query."""
        return {number: stage.live_runs() for number, stage in self._stages.items()}

    def snapshot(self) -> bytes:
        """The state as bytes; a query that is alone has its stage's snapshot."""
        if len(self._stages) == 1:
            return next(iter(self._stages.values())).snapshot()
        parts = [stage.snapshot() for stage in self._stages.values()]
        return dump_plain(parts)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same queries; RunError as from `SequenceStage.restore`."""
        try:
            parts = [snapshot] if len(self._stages) == 1 else load_plain(snapshot)
            pairs = [*zip(self._stages.values(), parts, strict=True)]
        except BROKEN as error:
            names = ", ".join(plan.identity.name for plan in self.plans.values())
            raise RunError(f"the state of {names} is damaged: {error}") from error
        for stage, part in pairs:
            stage.restore(part)
