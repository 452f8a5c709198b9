"""The log of a run's answers: each is written once, also if the engine gives it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from spaseq.algebra.answers import Answer
from spaseq.logs.segment_log import LogNotWritten, LogReader, SegmentLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Stats
from spaseq.runtime.live.answer_index import AnswerIndex
from spaseq.runtime.live.answer_records import LoggedAnswer


class AnswerLog:
    """The answers of all queries on disk, in a directory that must not be open twice.

    `answered` counts the answers so far, by title. An answer that cannot be written waits for the
    next `commit`. While it `is_silent`, answers are dropped: all that come are logged, or were.
    `past` has the time (ms), by title, before which all events were logged when a query was put
    that began in the past.
    """

    def __init__(self, directory: Path, stats: Stats) -> None:
        """`stats` count the answers of this run, but not those that the log has already."""
        self.log = SegmentLog(directory)
        self.index = AnswerIndex(self.log)
        self.answered: Counter[str] = Counter()
        self.is_silent = False
        self._stats = stats
        self._waiting: list[LoggedAnswer] = []
        self._behind: Counter[str] = Counter()  # ids of logged answers that come again
        self.past: dict[str, int] = {}

    def expect_again(self, place: int) -> None:
        """The engine will give the answers from a place in the log on again."""
        reader = LogReader(self.log, max(place, self.log.first))
        while some := reader.read():
            self._behind.update(LoggedAnswer.of_bytes(record).id for _, record in some)
        reader.close()

    @property
    def is_behind(self) -> bool:
        """Whether there are answers in the log that the engine must give again."""
        return bool(self._behind)

    def caught_up(self) -> None:
        """The engine has given again what it could."""
        self._behind.clear()

    def add(self, answers: Iterable[tuple[QueryPlan, Answer]]) -> None:
        """Take answers of the engine, without those that come again; `commit` writes them."""
        for plan, answer in answers:
            if self.is_silent:
                continue
            logged = LoggedAnswer.of(plan, answer, self._is_past(plan, answer))
            if self._behind and self._behind[logged.id]:
                self.answered[logged.title] += 1
                self._behind -= Counter((logged.id,))  # and without what is used up
            else:
                self._take(logged)

    def _is_past(self, plan: QueryPlan, answer: Answer) -> bool:
        """Whether all events of an answer were logged before its query was put."""
        until = self.past.get(plan.identity.title)
        return until is not None and answer.trace[-1].time <= until

    def add_past(self, plan: QueryPlan, answers: Sequence[Answer], are_past: bool) -> None:
        """Take answers of a query that catches up; `are_past` if it has read no further event yet.

        After a restart, or under a name that had another text, the log may have some already.
        """
        for answer in answers:
            logged = LoggedAnswer.of(plan, answer, are_past or self._is_past(plan, answer))
            if not self.is_silent and not self.index.has(logged.title, logged.id):
                self._take(logged)

    def _take(self, logged: LoggedAnswer) -> None:
        self.answered[logged.title] += 1
        self._stats.count_answers(logged.title, 1)
        self._waiting.append(logged)

    def commit(self) -> bool:
        """Write the answers that wait; whether there were any.

        Raises:
            LogNotWritten: the disk is full. The answers wait on.
        """
        if not self._waiting:
            return False
        first = self.log.append([answer.to_bytes() for answer in self._waiting])
        try:
            self.log.commit()
        except LogNotWritten:
            self.log.discard()
            raise
        self.index.add(first, self._waiting)
        self._waiting = []
        return True

    def drop(self, needed: int, before: float) -> None:
        """Drop the answers before a place that were written before a time (s since the epoch)."""
        self.log.drop_before(needed, before)
        self.index.forget_before(self.log.first)

    def close(self) -> None:
        """Close the file."""
        self.log.close()
