"""Both stages of a family of queries (`spaseq.plan.families`), each in the place of a query's own.

Graph patterns and the sequence are evaluated once for all members. Answers are made member by
member, as SELECT, HAVING, AFTER MATCH and limits are each query's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answers import Answer, Instant
from spaseq.automaton.run.after_match import AfterMatchFilter
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import RunError
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.shapes import QUERY, is_made
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.options import StageOptions
from spaseq.plan.families import Family, row_of, row_term
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad, warn
from spaseq.stages.answer_filters import AnswerFilters, Consecutive
from spaseq.stages.answers import Projection
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.late_sequence import LateSequence
from spaseq.stages.unit_sequence import FoundAnswers, UnitSequence

MOST_ROWS = 200_000
"""About how many solutions of a batch are made at a time; more would need memory that is new."""

_GROWTH = 64
"""How many times as many events may be matched next."""

FEWEST_EVENTS = 64
"""The fewest events that are matched at a time."""

_FEW = 1024
"""Fewer answers of a member on average are made one by one."""

_MemberSkips: TypeAlias = dict[int, tuple[dict[PartitionKey, AfterMatchFilter], int]]
"""By a member's number: its filters of AFTER MATCH, and its answers beyond the limit."""


class FamilyPatterns:
    """Stage 1 of a family: the solutions of the GPMs of all members.

    An event on which all members together exceed a limit is matched for each member by itself.
    Families that share `joint` are matched together, as far as they have GPMs in common.
    """

    def __init__(
        self,
        family: Family,
        plans: Mapping[int, QueryPlan],
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
        joint: JointPatterns | None = None,
    ) -> None:
        self.family, self.knowledge, self.limits = family, knowledge, limits
        self._plans, self._on_bad = plans, on_bad
        self.stage = PatternStage(family.plan, knowledge, _unless_over_limit(on_bad), limits)
        # At a time: at first as many as if each member had a solution of each.
        self._events = max(FEWEST_EVENTS, MOST_ROWS // len(family.members))
        self._joint = joint
        if joint is not None:
            joint.add(self)

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of the batch's events; `index` is as for `PatternStage.match`."""
        if self._joint is not None and index is not None:
            joint = self._joint.solutions(self, index)
            if joint is not None:
                return joint
        found, first = list[SolutionBatch](), 0
        while first < len(events):
            part = events.part(first, min(first + self._events, len(events)))
            whole = len(part) == len(events)
            rows = self._matched(part, index if whole else None)
            found.append(rows)
            first += len(part)
            # As many events as may give about the most rows, judged from the last ones.
            likely = MOST_ROWS * len(part) // max(1, len(rows))
            self._events = max(FEWEST_EVENTS, min(likely, _GROWTH * len(part)))
            if not len(rows):
                self._events = MOST_ROWS
        return SolutionBatch.concat([f for f in found if len(f)], self.family.plan.patterns.columns)

    def _matched(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        rows = self.stage.match(events, index)
        if not self.stage.exceeding:
            return rows
        columns = self.family.plan.patterns.columns
        part = events.take(np.array(self.stage.exceeding, np.int64))
        return SolutionBatch.concat([rows, *self._one_by_one(part)], columns)

    def _one_by_one(self, events: EventBatch) -> Iterator[SolutionBatch]:
        """The solutions of some events, for the members of one row of the table at a time."""
        for row, owners in enumerate(self.family.owners):
            if not owners:
                continue
            names = [self._plans[number].identity.name for number in owners]
            plan = self.family.only(row)
            stage = PatternStage(plan, self.knowledge, self._naming(names), self.limits)
            yield stage.match(events)

    def _naming(self, names: Sequence[str]) -> OnBad:
        """Reports an event beyond a limit for each of some queries."""

        def take(bad: BadInput) -> None:
            for name in names if bad.over_limit else ():
                self._on_bad(replace(bad, file=name))

        return take


def _unless_over_limit(on_bad: OnBad) -> OnBad:
    """Reports what is bad for all members."""

    def take(bad: BadInput) -> None:
        if not bad.over_limit:
            on_bad(bad)

    return take


class FamilySequence(UnitSequence):
    """Stage 2 of a family."""

    def __init__(
        self,
        family: Family,
        plans: Mapping[int, QueryPlan],
        options: StageOptions = StageOptions(),
        knowledge: KnowledgeBase | None = None,
        on_bad: OnBad = warn,
    ) -> None:
        self._answers = _MemberAnswers(family, plans)
        limited = self._answers.with_limit
        self.stage = LateSequence(family.plan, options, knowledge, on_bad, limited)

    def use(self, family: Family) -> None:
        """Go on with other members of the family; `plans` has those that have come."""
        self._answers.use(family)

    def forget(self, number: int) -> None:
        """Give no more answers of a member."""
        self._answers.forget(number)

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        self.stage.advance(watermark, ahead)
        return self._taken()

    def exceeded(self) -> dict[int, Excess]:
        own = self.stage.exceeded
        return {n: own[term] for term in own if term for n in self._answers.owners(term)}

    def _taken(self) -> FoundAnswers:
        """The answers since the last call. A member that has failed gives none from then on."""
        found = self._answers.take()
        for number, excess in self.exceeded().items():
            pieces = found.pop(number, [])
            kept = [[answer for answer in own if answer.end < excess.instant] for own in pieces]
            if any(kept):
                found[number] = [*filter(None, kept)]
        return found

    def live_states(self, number: int) -> LiveStates:
        """Where the partial matches of a member are now."""
        return self.stage.live_states(lambda key: self._answers.is_of(number, key))

    def close(self) -> FoundAnswers:
        self.stage.close()
        return self._taken()


class _MemberAnswers:
    """In the place of a query's `AnswerFilters`: one for each member that has had a match."""

    def __init__(self, family: Family, plans: Mapping[int, QueryPlan]) -> None:
        self.family, self._plans, self.name = family, plans, family.plan.identity.name
        self._place = len(family.plan.sequence.partition) - 1  # of the member's number
        self._filters: dict[int, AnswerFilters] = {}
        self._suppressed = 0  # by members that have gone
        self._gone: set[int] = set()  # members that still have a row
        self._found: dict[int, list[Sequence[Answer]]] = {}

    def with_limit(self, limit: int | None, consecutive: Consecutive) -> _MemberAnswers:
        """The same object, told what `AnswerFilters` is told."""
        self._limit, self._consecutive = limit, consecutive
        return self

    def answers(self, matches: Iterable[SequenceMatch]) -> list[Answer]:
        """No answers: `take` gives them."""
        of_row: dict[str, list[SequenceMatch]] = {}
        for match in matches:
            of_row.setdefault(match.solutions[0].singles[self._place][1], []).append(match)
        for term, own in of_row.items():
            for number in self.owners(term):
                self.name = self._plans[number].identity.name
                answers = self._of(number, term).answers(own)
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
        # A batch of columns has a fixed cost, so a member with few answers gets them one by one.
        made = [*answers] if len(answers) < _FEW * len(starts) else answers
        ends = [*starts[1:].tolist(), len(answers)]
        for term, begin, end in zip(terms, starts.tolist(), ends, strict=True):
            assert term is not None
            own = made[begin:end] if isinstance(made, list) else made.part(begin, end)
            for number in self.owners(term):
                self._found.setdefault(number, []).append(own)
        return []

    @property
    def too_many(self) -> Callable[[int], RunError]:
        """Makes the error of too many answers, in the name of the family."""
        return Projection(self.family.plan).too_many

    def take(self) -> dict[int, list[Sequence[Answer]]]:
        """The answers since the last call, by the number of the query."""
        found, self._found = self._found, {}
        return found

    def forget(self, number: int) -> None:
        """Let go of what is known of a member."""
        filters = self._filters.pop(number, None)
        self._suppressed += 0 if filters is None else filters.suppressed
        self._found.pop(number, None)
        self._gone.add(number)

    def use(self, family: Family) -> None:
        """Go on with other members of the family."""
        self.family = family
        self._gone.clear()

    def is_of(self, number: int, key: PartitionKey) -> bool:
        """Whether a partition is one of a member."""
        term = key[self._place]
        return term is not None and number in self.owners(term)

    def owners(self, term: str) -> list[int]:
        """The members of a row of the table."""
        return [n for n in self.family.owners[row_of(term)] if n not in self._gone]

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return self._suppressed + sum(f.suppressed for f in self._filters.values())

    def snapshot(self) -> tuple[_MemberSkips, int]:
        """What the filters of each member keep, and the count of members that have gone."""
        return {n: own.snapshot() for n, own in self._filters.items()}, self._suppressed

    def restore(self, skips: _MemberSkips, suppressed: int) -> None:
        """Go on from a snapshot."""
        self._suppressed = suppressed
        rows = {n: row for row, owners in enumerate(self.family.owners) for n in owners}
        for number, own in skips.items():
            if number in rows:
                self._of(number, row_term(rows[number])).restore(*own)
            else:  # it has gone since
                self._suppressed += own[1]

    def _of(self, number: int, term: str) -> AnswerFilters:
        filters = self._filters.get(number)
        if filters is None:
            of_family = self._consecutive

            def consecutive(key: PartitionKey, instants: Iterable[Instant]) -> bool:
                return of_family((*key, term), instants)

            plan = self._answer_plan(self._plans[number])
            filters = self._filters[number] = AnswerFilters(plan, self._limit, consecutive)
        return filters

    def _answer_plan(self, plan: QueryPlan) -> QueryPlan:
        """What the answers of a member ask its plan for, with the evaluator of the family."""
        first, evaluator = self.family.first, self.family.plan.sequence.evaluator
        return replace(
            first,
            identity=plan.identity,
            answers=plan.answers,
            expressions=plan.expressions,
            sequence=replace(first.sequence, evaluator=evaluator),
        )


def _own(names: Iterable[str]) -> tuple[str, ...]:
    """The names without those that the family has made."""
    return tuple(name for name in names if not is_made(name))
