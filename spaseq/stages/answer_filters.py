"""The answers that a query gives of its matches: selection, AFTER MATCH, DISTINCT and the limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Protocol, TypeAlias

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answers import Answer, Instant
from spaseq.algebra.construct import constructed
from spaseq.automaton.program.selection import Position, select
from spaseq.automaton.run.after_match import AfterMatchFilter
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch, partition_of
from spaseq.errors import RunError
from spaseq.plan.evaluators import selects, skips_nothing
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sharing import keeps_all
from spaseq.stages.answers import Projection, order_of

MatchedAnswer: TypeAlias = tuple[SequenceMatch, Answer]
"""An answer with its match."""

Consecutive: TypeAlias = Callable[[PartitionKey, Iterable[Instant]], bool]
"""Whether some instants of a partition follow each other without another between them."""


class Answering(Protocol):
    """What makes answers of the matches that a sequence stage finds."""

    @property
    def name(self) -> str:
        """The name of the query whose answers are being made."""

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""

    def answers(self, matches: Iterable[SequenceMatch]) -> list[Answer]:
        """The answers of the matches of one step of the watermark."""

    def of_columns(self, answers: AnswerBatch) -> Sequence[Answer]:
        """The answers of such a step, if each of its matches is one."""

    @property
    def too_many(self) -> Callable[[int], RunError]:
        """Makes the error of too many answers, given the events of the last one."""

    def snapshot(self) -> tuple[Any, int]:
        """The filters of AFTER MATCH and a number of answers beyond the limit, for `restore`."""

    def restore(self, skips: Any, suppressed: int) -> None:
        """Go on from a snapshot."""


class AnswerFilters:
    """From the matches of one step of the watermark to the answers of a query.

    `limit` bounds the answers of one end instant and partition; None if the evaluator applies the
    limit. `suppressed` counts the answers beyond it. `skips` has a filter for
    each partition in which AFTER MATCH has seen an answer.
    """

    def __init__(self, plan: QueryPlan, limit: int | None, consecutive: Consecutive) -> None:
        self._plan, self._limit, self._consecutive = plan, limit, consecutive
        self.name, self._projection = plan.identity.name, Projection(plan)
        self.too_many = self._projection.too_many
        self.skips: dict[PartitionKey, AfterMatchFilter] = {}
        self.suppressed = 0
        answers = plan.answers
        self._skips = not skips_nothing(plan)
        self._keeps_all = (
            (keeps_all(plan) or selects(plan))
            and not self._skips
            and not answers.distinct
            and answers.template is None
            and limit is None
        )

    def answers(self, matches: Iterable[SequenceMatch]) -> list[Answer]:
        """The answers of some matches, in their order (docs/language.md#order-of-answers)."""
        plan, answered = self._plan.answers, self._projection.answers(matches)
        if self._keeps_all:
            answers = [answer for _, answer in answered]
            return [answers[i] for i in order_of(answers)] if len(answers) > 1 else answers
        items = [*answered]
        if not items:
            return []
        items = [items[i] for i in order_of([answer for _, answer in items])]
        if not keeps_all(self._plan) and not selects(self._plan):
            items = self._selected(items)
        if self._skips:
            items = [i for i in items if self._skip(self._partition_of(i[0])).keeps(*i)]
        if plan.distinct:
            items = _distinct(items)
        if self._limit is not None:
            items = self._limited(items, self._limit)
        return self._graphs([answer for _, answer in items])

    def of_columns(self, answers: AnswerBatch) -> Sequence[Answer]:
        """The answers themselves."""
        return answers

    def snapshot(self) -> tuple[dict[PartitionKey, AfterMatchFilter], int]:
        """The filters of AFTER MATCH and the number of answers beyond the limit."""
        return self.skips, self.suppressed

    def restore(self, skips: dict[PartitionKey, AfterMatchFilter], suppressed: int) -> None:
        """Go on from a snapshot."""
        self.skips, self.suppressed = skips, suppressed

    def _graphs(self, answers: list[Answer]) -> list[Answer]:
        """The answers, with their graph events if the query is CONSTRUCT."""
        template, name = self._plan.answers.template, self._plan.identity.name
        if template is None:
            return answers
        events = (constructed(template, name, answer) for answer in answers)
        return [event for event in events if event is not None]

    def _partition_of(self, match: SequenceMatch) -> PartitionKey:
        return partition_of(match.solutions[0], self._plan.sequence.partition)

    def _selected(self, items: list[MatchedAnswer]) -> list[MatchedAnswer]:
        """The answers that the selection strategy keeps; it selects per end and partition."""

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
                partial(self._consecutive, key),
            )
        return [items[place] for place in sorted(kept)]

    def _limited(self, items: list[MatchedAnswer], limit: int) -> list[MatchedAnswer]:
        """The first answers of each end and partition."""
        counts: Counter[tuple[Instant, PartitionKey]] = Counter()
        kept = []
        for match, answer in items:
            group = answer.end, self._partition_of(match)
            counts[group] += 1
            if counts[group] <= limit:
                kept.append((match, answer))
        self.suppressed += len(items) - len(kept)
        return kept

    def _skip(self, key: PartitionKey) -> AfterMatchFilter:
        """The filter of AFTER MATCH for a partition."""
        known = self.skips.get(key)
        if known is None:
            skip, gpms = self._plan.answers.after_match, self._plan.patterns.gpms
            names = [gpm.name for gpm in gpms]
            gpm = names.index(skip.gpm) if skip.gpm is not None else None
            known = AfterMatchFilter(skip.kind, self._plan.sequence.window.horizon, gpm)
            self.skips[key] = known
        return known


def _positions(answer: Answer) -> frozenset[Position]:
    return frozenset(((t.time, t.k), t.stream) for t in answer.trace)


def _distinct(items: list[MatchedAnswer]) -> list[MatchedAnswer]:
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
