"""Answers of several queries as one batch, of which each query has a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answers import Answer
from spaseq.collection_pause import collection_paused

Made = TypeVar("Made")


class SharedAnswers:
    """A batch of answers; what a consumer makes of it is made once, for all queries."""

    def __init__(self, batch: AnswerBatch) -> None:
        self.batch = batch
        self._made: dict[Callable[[AnswerBatch], Any], Any] = {}

    def once(self, make: Callable[[AnswerBatch], Made]) -> Made:
        """What a function makes of the batch."""
        if make not in self._made:
            self._made[make] = make(self.batch)
        made: Made = self._made[make]
        return made

    @cached_property
    def answers(self) -> list[Answer]:
        """The answers one by one."""
        with collection_paused():
            return [*self.batch]


class SharedPart(Sequence[Answer]):
    """The answers of one query: `begin` to `end` of a batch, as a slice."""

    def __init__(self, whole: SharedAnswers, begin: int, end: int) -> None:
        self.whole, self.begin, self.end = whole, begin, end

    def __len__(self) -> int:
        return self.end - self.begin

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        return self._own()[index]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._own())

    def _own(self) -> list[Answer]:
        return self.whole.answers[self.begin : self.end]
