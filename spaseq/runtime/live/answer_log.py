"""The log of a run's answers: each is written once, even if the engine gives it again."""

from __future__ import annotations

import re
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Stats
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.partition_clocks import LoggedBefore

_ID = re.compile("[0-9a-f]{32}")

MOST = 1000
"""Default number of answers that `read` returns."""


class AnswerGone(UsageError):
    """The answer log has no answer with this id any more, or never had one."""


@dataclass(slots=True)
class _Answers:
    """The answers of a query: their positions in the log, and the prefixes of their ids.

    `known` has the prefixes as a set, after the first call of `has`.
    """

    places: array[int] = field(default_factory=lambda: array("q"))
    beginnings: array[int] = field(default_factory=lambda: array("Q"))
    known: set[int] | None = None


class AnswerIndex:
    """The logged answers, by query. It takes 16 bytes of memory for each.

    One thread adds; any thread may read.
    """

    def __init__(self, log: SegmentLog) -> None:
        """Read the log once."""
        self._log, self._lock = log, threading.Lock()
        self._of: dict[str, _Answers] = {}
        self._listeners: list[Callable[[], None]] = []
        for place, record in log.records():
            self._note(place, LoggedAnswer.of_bytes(record))

    def _note(self, place: int, answer: LoggedAnswer) -> None:
        answers = self._of.setdefault(answer.title, _Answers())
        answers.places.append(place)
        answers.beginnings.append(_beginning(answer.id))
        if answers.known is not None:
            answers.known.add(answers.beginnings[-1])

    def add(self, first: int, answers: list[LoggedAnswer]) -> None:
        """Record committed answers, the first of which has this position; call the listeners."""
        with self._lock:
            for place, answer in enumerate(answers, first):
                self._note(place, answer)
        for tell in [*self._listeners]:
            tell()

    def forget_before(self, place: int) -> None:
        """Forget the answers that the log has dropped."""
        with self._lock:
            for answers in self._of.values():
                cut = bisect_left(answers.places, place)
                if cut:
                    del answers.places[:cut], answers.beginnings[:cut]
                    answers.known = None

    def has(self, title: str, name: str) -> bool:
        """Whether the log has an answer of a query with this id."""
        with self._lock:
            answers = self._of.get(title)
            if answers is None:
                return False
            if answers.known is None:
                answers.known = {*answers.beginnings}
            return _beginning(name) in answers.known and self._place(title, name) is not None

    def find(self, title: str, name: str) -> LoggedAnswer:
        """The answer of a query with an id.

        Raises:
            AnswerGone: there is none.
        """
        with self._lock:
            place = self._place(title, name)
        if place is None:
            raise AnswerGone(f"query {title} has no answer {name[:100]} any more")
        return self._at([place])[0]

    def read(self, title: str, after: str | None = None, most: int = MOST) -> list[LoggedAnswer]:
        """The oldest answers of a query, or the answers after the one with an id.

        Raises:
            AnswerGone: there is no answer with that id.
        """
        with self._lock:
            answers, begin = self._of.get(title, _Answers()), 0
            if after is not None:
                place = self._place(title, after)
                if place is None:
                    raise AnswerGone(f"query {title} has no answer {after} any more")
                begin = bisect_right(answers.places, place)
            places = answers.places[begin : begin + most].tolist()
        return self._at(places)

    def newest(self, title: str, most: int) -> list[LoggedAnswer]:
        """The newest answers of a query, the oldest of them first."""
        with self._lock:
            answers = self._of.get(title)
            places = answers.places[-most:].tolist() if answers else []
        return self._at(places)

    def title_of(self, name: str) -> str | None:
        """The title of the query that has an answer with this id."""
        with self._lock:
            titles = (title for title in self._of if self._place(title, name) is not None)
            return next(titles, None)

    def read_all(
        self, want: Callable[[str], bool], after: str | None, most: int
    ) -> list[LoggedAnswer]:
        """Answers of all queries, in order of logging.

        Args:
            want: whether to read the answers of a query, given by its title.
            after: the id of the answer after which to begin; None: the newest answers.
            most: maximum number of answers.

        Raises:
            AnswerGone: there is no answer with that id.
        """
        with self._lock:
            places: list[int] = []
            if after is None:
                for title, answers in self._of.items():
                    places += answers.places[-most:] if want(title) else []
                places = sorted(places)[-most:]
            else:
                places_after = (self._place(title, after) for title in self._of)
                place = next((place for place in places_after if place is not None), None)
                if place is None:
                    raise AnswerGone(f"there is no answer {after[:100]} any more")
                for title, answers in self._of.items():
                    if want(title):
                        begin = bisect_right(answers.places, place)
                        places += answers.places[begin : begin + most]
                places = sorted(places)[:most]
        return self._at(places)

    def last(self, title: str) -> str | None:
        """The id of a query's last answer."""
        with self._lock:
            answers = self._of.get(title)
            places = answers.places[-1:].tolist() if answers else []
        return self._at(places)[0].id if places else None

    def on_growth(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call a function at each growth of the log; return a function that ends this."""
        self._listeners.append(tell)
        return lambda: self._listeners.remove(tell)

    def _place(self, title: str, name: str) -> int | None:
        answers = self._of.get(title)
        if answers is None or not _ID.fullmatch(name):
            return None
        wanted = _beginning(name)
        begin = 0
        while True:
            try:
                number = answers.beginnings.index(wanted, begin)
            except ValueError:
                return None
            place = answers.places[number]
            if self._at([place])[0].id == name:
                return place
            begin = number + 1

    def _at(self, places: list[int]) -> list[LoggedAnswer]:
        """The answers at ascending positions of the log."""
        answers: list[LoggedAnswer] = []
        reader = LogReader(self._log)
        ahead: dict[int, bytes] = {}
        for place in places:
            if place not in ahead:
                reader.seek(place)
                ahead = dict(reader.read(1))
            answers.append(LoggedAnswer.of_bytes(ahead[place]))
        reader.close()
        return answers


def _beginning(name: str) -> int:
    """The first 8 bytes of an id, as a number."""
    return int(name[:16], 16)


class AnswerLog:
    """The answers of all queries on disk, in a directory that must not be open twice.

    `answered` counts the answers so far, by title. An answer that cannot be written waits for the
    next `commit`. While it `is_silent`, answers are dropped: all of them have been logged before.
    `past` has, by title of a query that began in the past, the events logged before it was put.
    """

    def __init__(self, directory: Path, stats: Stats) -> None:
        """`stats` counts the answers of this run, without those already in the log."""
        self.log = SegmentLog(directory)
        self.index = AnswerIndex(self.log)
        self.answered: Counter[str] = Counter()
        self.is_silent = False
        self._stats = stats
        self._waiting: list[LoggedAnswer] = []
        self._behind: Counter[str] = Counter()  # ids of logged answers that come again
        self.past: dict[str, LoggedBefore] = {}

    def expect_again(self, place: int) -> None:
        """The engine will repeat the answers from a position in the log on."""
        records = self.log.records(place)
        self._behind.update(LoggedAnswer.of_bytes(record).id for _, record in records)

    @property
    def is_behind(self) -> bool:
        """Whether the log has answers that the engine must repeat."""
        return bool(self._behind)

    def caught_up(self) -> None:
        """The engine has repeated all it could."""
        self._behind.clear()

    def add(self, answers: Iterable[tuple[QueryPlan, Answer]]) -> None:
        """Add answers of the engine, except repeated ones; `commit` writes them."""
        for plan, answer in answers:
            if self.is_silent:
                continue
            logged = LoggedAnswer.of(plan, answer, self._is_past(plan, answer))
            if self._behind and self._behind[logged.id]:
                self.answered[logged.title] += 1
                self._behind -= Counter((logged.id,))  # and without the ones repeated
            else:
                self._take(logged)

    def _is_past(self, plan: QueryPlan, answer: Answer) -> bool:
        """Whether all events of an answer were logged before its query was put."""
        before = self.past.get(plan.identity.title)
        return before is not None and before.has(answer.trace)

    def add_past(self, plan: QueryPlan, answers: Sequence[Answer], are_past: bool) -> None:
        """Add answers of a query that catches up; `are_past` if it has read no further event yet.

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
        """Write the waiting answers; return whether there were any.

        Raises:
            LogNotWritten: the disk is full. The answers keep waiting.
        """
        if not self._waiting:
            return False
        first = self.log.write([answer.to_bytes() for answer in self._waiting])
        self.index.add(first, self._waiting)
        self._waiting = []
        return True

    def drop(self, needed: int, before: float) -> None:
        """Drop the answers before a position and before a time of writing (s since the epoch)."""
        self.log.drop_before(needed, before)
        self.index.forget_before(self.log.first)

    def close(self) -> None:
        """Close the file."""
        self.log.close()
