"""From matches to answers: selection, AFTER MATCH, DISTINCT and the limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Protocol, TypeAlias

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answers import Answer, Instant
from spaseq.algebra.construct import constructed
from spaseq.automaton.program.selection import Position, select
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.after_match import AfterMatchFilter, MutingFilter
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch, partition_of
from spaseq.errors import RunError
from spaseq.plan.evaluators import selects, skips_nothing
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.columnar_answers import Projection, order_of
from spaseq.stateful import Stateful

MatchedAnswer: TypeAlias = tuple[SequenceMatch, Answer]
"""An answer with its match."""


class Answering(Protocol):
    """Makes answers of the matches that a sequence stage finds."""

    @property
    def name(self) -> str:
        """The name of the query."""

    @property
    def suppressed(self) -> int:
        """Number of answers beyond the limit so far."""

    @property
    def muted(self) -> Mapping[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""

    def answers(self, matches: Iterable[SequenceMatch]) -> list[Answer]:
        """The answers for the matches of one watermark step."""

    def of_columns(self, answers: AnswerBatch) -> Sequence[Answer]:
        """The answers of such a step, in columns, if each of its matches is an answer."""

    @property
    def too_many(self) -> Callable[[int], RunError]:
        """Makes the error for too many answers, given the events of the last answer."""


class AnswerFilters(Stateful):
    """Turns the matches of one watermark step into the answers of a query.

    `limit` bounds the answers of one end instant and partition; None if the evaluator applies the
    limit. `suppressed` counts the answers beyond it. `skips` has a filter for
    each partition in which AFTER MATCH has seen an answer.
    """

    STATE = ("skips", "suppressed", "_muted")

    def __init__(self, plan: QueryPlan, limit: int | None) -> None:
        self._plan, self._limit = plan, limit
        self.name, self._projection = plan.identity.name, Projection(plan)
        self.too_many = self._projection.too_many
        self.skips: dict[PartitionKey, AfterMatchFilter] = {}
        self._least_skips = 0  # number of partitions that the last sweep has left
        self.suppressed = self._muted = 0
        answers = plan.answers
        self._skips = not skips_nothing(plan)
        self._keeps_all = (
            (plan.keeps_all_matches or selects(plan))
            and not self._skips
            and not answers.distinct
            and answers.template is None
            and limit is None
        )

    def answers(self, matches: Iterable[SequenceMatch]) -> list[Answer]:
        """The answers of some matches, in their order (docs/meaning.md#order-of-answers)."""
        plan, answered = self._plan.answers, self._projection.answers(matches)
        if self._keeps_all:
            answers = [answer for _, answer in answered]
            return [answers[i] for i in order_of(answers)] if len(answers) > 1 else answers
        items = [*answered]
        if not items:
            return []
        items = [items[i] for i in order_of([answer for _, answer in items])]
        if not self._plan.keeps_all_matches and not selects(self._plan):
            items = self._selected(items)
        if self._skips:
            last = items[-1][1].end[0] if items else None
            items = [item for item in items if self._keeps(*item)]
            if last is not None:
                self._forget_idle(last)
        if plan.distinct:
            items = _distinct(items)
        if self._limit is not None:
            items = self._limited(items, self._limit)
        return self.graphs([answer for _, answer in items])

    def of_columns(self, answers: AnswerBatch) -> Sequence[Answer]:
        """The answers themselves, their graph events, or the changes that they make."""
        template = self._plan.answers.template
        if template is None:
            return answers
        if template.graph is None:
            from spaseq.algebra.graph_batch import graphs_of, makes_columns

            if makes_columns(template, answers):
                return graphs_of(answers, template, self._plan.identity.name)
            return self.graphs(answers)
        from spaseq.algebra.change_batch import ChangeBatch

        return ChangeBatch(answers, template, self.name)

    @property
    def muted(self) -> Mapping[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""
        return {self._plan.identity.title: self._muted} if self._muted else {}

    def graphs(self, answers: Iterable[Answer]) -> list[Answer]:
        """The answers, with their graph events if the query is CONSTRUCT."""
        template, name = self._plan.answers.template, self._plan.identity.name
        if template is None:
            return [*answers]
        events = (constructed(template, name, answer) for answer in answers)
        return [event for event in events if event is not None]

    def _partition_of(self, match: SequenceMatch) -> PartitionKey:
        return partition_of(match.solutions[0], self._plan.sequence.partition)

    def _selected(self, items: list[MatchedAnswer]) -> list[MatchedAnswer]:
        """The answers that the selection strategy keeps; it selects per end and partition."""

        def group_of(number: int) -> tuple[Instant, PartitionKey]:
            match, answer = items[number]
            return answer.end, self._partition_of(match)

        kept: list[int] = []
        places = sorted(range(len(items)), key=group_of)
        strategy = self._plan.answers.strategy
        for _, group in groupby(places, key=group_of):
            kept += select(list(group), strategy, lambda number: _positions(items[number][1]))
        return [items[number] for number in sorted(kept)]

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

    def _keeps(self, match: SequenceMatch, answer: Answer) -> bool:
        """Whether AFTER MATCH keeps the next answer."""
        skip = self._skip(self._partition_of(match))
        if skip.forbids(answer):
            return False
        if skip.mutes(answer):
            self._muted += 1
            return False
        skip.keep(match, answer)
        return True

    def _forget_idle(self, last: int) -> None:
        """Forget the partitions whose filters can leave out no further answer.

        Answers end at `last` (ms) or later. They begin at most two windows before, as a match may
        wait for its close. In a window of n EVENTS the next event may come at any time.
        """
        window, skip = self._plan.sequence.window, self._plan.answers.after_match
        is_counted = isinstance(window, Counted)
        if is_counted and not skip.mute_ms:
            return
        if len(self.skips) - self._least_skips > thresholds.current.forgotten_keys:
            since = None if is_counted else last - 2 * window.horizon
            skips = self.skips.items()
            self.skips = {key: own for key, own in skips if not own.may_be_forgotten(since, last)}
            self._least_skips = len(self.skips)

    def _skip(self, key: PartitionKey) -> AfterMatchFilter:
        """The AFTER MATCH filter of a partition."""
        known = self.skips.get(key)
        if known is None:
            skip, gpms = self._plan.answers.after_match, self._plan.patterns.gpms
            names = [gpm.name for gpm in gpms]
            gpm = names.index(skip.gpm) if skip.gpm is not None else None
            horizon = self._plan.sequence.window.horizon
            if skip.mute_ms:
                known = MutingFilter(skip.kind, horizon, gpm, mute=skip.mute_ms)
            else:
                known = AfterMatchFilter(skip.kind, horizon, gpm)
            self.skips[key] = known
        return known


def _positions(answer: Answer) -> frozenset[Position]:
    return frozenset(((t.time, t.k), t.stream) for t in answer.trace)


def _distinct(items: list[MatchedAnswer]) -> list[MatchedAnswer]:
    """The first of the answers with the same end and equal bindings."""
    kept = []
    for _, group in groupby(items, key=lambda item: item[1].end):
        seen: set[tuple[tuple[str, str], ...]] = set()
        for item in group:
            bindings = item[1].bindings
            if bindings not in seen:
                seen.add(bindings)
                kept.append(item)
    return kept
