"""The answers of a family's members, each by the member's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch, SharedAnswers, SharedPart
from spaseq.algebra.answers import Answer
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch
from spaseq.errors import RunError
from spaseq.lang.shapes import QUERY
from spaseq.lang.variables import is_made
from spaseq.plan.families import Family, row_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.answer_filters import AnswerFilters
from spaseq.stages.columnar_answers import Projection
from spaseq.stateful import Parts, Stateful


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
