"""From matches to answers: selection, AFTER MATCH, DISTINCT and the limit; in a family by the rules
of each member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch, SharedAnswers, SharedPart
from spaseq.algebra.answers import Answer, Instant
from spaseq.algebra.construct import constructed
from spaseq.automaton.program.selection import Position, select
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.after_match import AfterMatchFilter, MutingFilter
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch, partition_of
from spaseq.errors import RunError
from spaseq.lang.shapes import QUERY
from spaseq.lang.variables import is_made
from spaseq.plan.evaluators import selects, skips_nothing
from spaseq.plan.families import Family, row_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.columnar_answers import Projection, order_of
from spaseq.stateful import Parts, Stateful

MatchedAnswer: TypeAlias = tuple[SequenceMatch, Answer]
"""An answer with its match."""

Answering: TypeAlias = "AnswerFilters | MemberAnswers"
"""Makes answers of the matches that a sequence stage finds."""


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


class MemberAnswers(Stateful):
    """The `AnswerFilters` of a family: one filter for each member that has had a match."""

    STATE = ("_filters", "_suppressed")

    def __init__(self, family: Family, plans: Mapping[int, QueryPlan]) -> None:
        self.family, self._plans, self.name = family, plans, family.plan.identity.name
        self._filters = Parts(self._made)
        self._suppressed = 0  # of members that have gone
        self._gone: set[int] = set()  # members that still have a row
        self._found: dict[int, list[Sequence[Answer]]] = {}

    def with_limit(self, limit: int | None) -> MemberAnswers:
        """The same object, with the arguments of `AnswerFilters`."""
        self._limit = limit
        return self

    def answers(self, matches: Iterable[SequenceMatch]) -> list[Answer]:
        """No answers: `take` gives them."""
        of_row: dict[str, list[SequenceMatch]] = {}
        for match in matches:
            of_row.setdefault(_row_term_of(match), []).append(match)
        for term, member_matches in of_row.items():
            for number in self.owners(term):
                self.name = self._plans[number].identity.name
                answers = self._filters[number].answers(member_matches)
                if answers:
                    self._found.setdefault(number, []).append(answers)
        self.name = self.family.plan.identity.name
        return []

    def of_columns(self, answers: AnswerBatch) -> Sequence[Answer]:
        """No answers: `take` gives them."""
        column = answers.column(QUERY)  # each member's answers stand together
        names = answers.names
        own_names = replace(names, projected=_own(names.projected), singles=_own(names.singles))
        answers = replace(answers, names=own_names)
        starts = np.flatnonzero(np.diff(column.codes, prepend=-1))
        terms = column.texts(starts)
        # A batch of columns has a fixed cost, so members with few answers share one.
        each = len(answers) // max(1, len(starts))
        shared = SharedAnswers(answers) if each < thresholds.current.member_answers else None
        ends = [*starts[1:].tolist(), len(answers)]
        for term, begin, end in zip(terms, starts.tolist(), ends, strict=True):
            assert term is not None
            part = SharedPart(shared, begin, end) if shared else answers.part(begin, end)
            for number in self.owners(term):
                self._found.setdefault(number, []).append(self._of_member(number, part))
        return []

    def _of_member(self, number: int, answers: AnswerBatch | SharedPart) -> Sequence[Answer]:
        """The answers themselves, or their graph events, whose IRIs have the member's name."""
        if self.family.first.answers.template is None:
            return answers
        filters = self._filters[number]
        if isinstance(answers, AnswerBatch):
            return filters.of_columns(answers)
        return filters.graphs(answers)

    @property
    def too_many(self) -> Callable[[int], RunError]:
        """Makes the error for too many answers, in the name of the family."""
        return Projection(self.family.plan).too_many

    def take(self) -> dict[int, list[Sequence[Answer]]]:
        """The answers since the last call, by the number of the query."""
        answers, self._found = self._found, {}
        return answers

    def forget(self, number: int) -> None:
        """Drop the state of a member."""
        filters = self._filters.pop(number, None)
        self._suppressed += 0 if filters is None else filters.suppressed
        self._found.pop(number, None)
        self._gone.add(number)

    def use(self, family: Family) -> None:
        """Continue with other members of the family."""
        self.family = family
        self._gone.clear()

    def is_of(self, number: int, key: PartitionKey) -> bool:
        """Whether a partition, or the first value of a match, belongs to a member."""
        term = key[-1]
        return term is not None and number in self.owners(term)

    def owners(self, term: str) -> list[int]:
        """The members of a row of the table."""
        return [n for n in self.family.owners[row_of(term)] if n not in self._gone]

    @property
    def suppressed(self) -> int:
        """Number of answers beyond the limit so far."""
        return self._suppressed + sum(f.suppressed for f in self._filters.values())

    @property
    def muted(self) -> Mapping[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the member."""
        return {title: n for f in self._filters.values() for title, n in f.muted.items()}

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restore from a state; some of its members may be gone."""
        filters, suppressed = state
        here = {number for owners in self.family.owners for number in owners}
        gone = [filters.pop(number) for number in filters.keys() - here]
        super().restore((filters, suppressed + sum(counted for _, counted, _ in gone)))

    def _made(self, number: int) -> AnswerFilters:
        return AnswerFilters(self._answer_plan(self._plans[number]), self._limit)

    def _answer_plan(self, plan: QueryPlan) -> QueryPlan:
        """The member's plan for answers, with the evaluator of the family."""
        first, evaluator = self.family.first, self.family.plan.sequence.evaluator
        return replace(
            first,
            identity=plan.identity,
            answers=plan.answers,
            expressions=plan.expressions,
            sequence=replace(first.sequence, evaluator=evaluator),
        )


def _row_term_of(match: SequenceMatch) -> str:
    """The term of the family's table row that a match belongs to."""
    return next(text for name, text in match.solutions[0].singles if name == QUERY)


def _own(names: Iterable[str]) -> tuple[str, ...]:
    """The names without those made by the family."""
    return tuple(name for name in names if not is_made(name))
