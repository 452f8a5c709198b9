"""Finds the answers of one query in the answer log, by their ids and in their order."""

from __future__ import annotations

import re
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from spaseq.errors import UsageError
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.runtime.live.answer_records import LoggedAnswer

_ID = re.compile("[0-9a-f]{32}")

MOST = 1000
"""How many answers `read` gives unless it is told."""


class AnswerGone(UsageError):
    """The answer log has no answer with this id any more, or never had."""


@dataclass(slots=True)
class _Answers:
    """The answers of a query: their places in the log, and the beginnings of their ids.

    `known` has the beginnings as a set, once somebody has asked whether there is an answer.
    """

    places: array[int] = field(default_factory=lambda: array("q"))
    beginnings: array[int] = field(default_factory=lambda: array("Q"))
    known: set[int] | None = None


class AnswerIndex:
    """The answers that the log has, by query. It takes 16 bytes of memory for each.

    One thread adds; any thread may read.
    """

    def __init__(self, log: SegmentLog) -> None:
        """Read the log once."""
        self._log, self._lock = log, threading.Lock()
        self._of: dict[str, _Answers] = {}
        self._listeners: list[Callable[[], None]] = []
        reader = LogReader(log, log.first)
        while some := reader.read():
            for place, record in some:
                self._note(place, LoggedAnswer.of_bytes(record))
        reader.close()

    def _note(self, place: int, answer: LoggedAnswer) -> None:
        own = self._of.setdefault(answer.title, _Answers())
        own.places.append(place)
        own.beginnings.append(_beginning(answer.id))
        if own.known is not None:
            own.known.add(own.beginnings[-1])

    def add(self, first: int, answers: list[LoggedAnswer]) -> None:
        """Take note of committed answers, the first of which has this place; tell the listeners."""
        with self._lock:
            for place, answer in enumerate(answers, first):
                self._note(place, answer)
        for tell in [*self._listeners]:
            tell()

    def forget_before(self, place: int) -> None:
        """Forget the answers that the log has dropped."""
        with self._lock:
            for own in self._of.values():
                cut = bisect_left(own.places, place)
                if cut:
                    del own.places[:cut], own.beginnings[:cut]
                    own.known = None

    def has(self, title: str, name: str) -> bool:
        """Whether the log has an answer of a query with this id."""
        with self._lock:
            own = self._of.get(title)
            if own is None:
                return False
            if own.known is None:
                own.known = {*own.beginnings}
            return _beginning(name) in own.known and self._place(title, name) is not None

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
        """The oldest answers of a query, or those after the one with an id.

        Raises:
            AnswerGone: there is no answer with that id.
        """
        with self._lock:
            own, begin = self._of.get(title, _Answers()), 0
            if after is not None:
                place = self._place(title, after)
                if place is None:
                    raise AnswerGone(f"query {title} has no answer {after} any more")
                begin = bisect_right(own.places, place)
            places = own.places[begin : begin + most].tolist()
        return self._at(places)

    def newest(self, title: str, most: int) -> list[LoggedAnswer]:
        """The newest answers of a query, the oldest of them first."""
        with self._lock:
            own = self._of.get(title)
            places = own.places[-most:].tolist() if own else []
        return self._at(places)

    def title_of(self, name: str) -> str | None:
        """The title of the query that has an answer with this id."""
        with self._lock:
            found = (title for title in self._of if self._place(title, name) is not None)
            return next(found, None)

    def read_all(
        self, want: Callable[[str], bool], after: str | None, most: int
    ) -> list[LoggedAnswer]:
        """Answers of all queries, in the order in which they were logged.

        Args:
            want: whether the answers of a query, given by its title, are read.
            after: the id of the answer behind which to begin; None: the newest are given.
            most: how many are given.

        Raises:
            AnswerGone: there is no answer with that id.
        """
        with self._lock:
            places: list[int] = []
            if after is None:
                for title, own in self._of.items():
                    places += own.places[-most:] if want(title) else []
                places = sorted(places)[-most:]
            else:
                found = (self._place(title, after) for title in self._of)
                place = next((place for place in found if place is not None), None)
                if place is None:
                    raise AnswerGone(f"there is no answer {after[:100]} any more")
                for title, own in self._of.items():
                    if want(title):
                        begin = bisect_right(own.places, place)
                        places += own.places[begin : begin + most]
                places = sorted(places)[:most]
        return self._at(places)

    def last(self, title: str) -> str | None:
        """The id of a query's last answer."""
        with self._lock:
            own = self._of.get(title)
            places = own.places[-1:].tolist() if own else []
        return self._at(places)[0].id if places else None

    def on_growth(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Let a function be called whenever there are more answers; returns what ends that."""
        self._listeners.append(tell)
        return lambda: self._listeners.remove(tell)

    def _place(self, title: str, name: str) -> int | None:
        own = self._of.get(title)
        if own is None or not _ID.fullmatch(name):
            return None
        wanted = _beginning(name)
        begin = 0
        while True:
            try:
                number = own.beginnings.index(wanted, begin)
            except ValueError:
                return None
            place = own.places[number]
            if self._at([place])[0].id == name:
                return place
            begin = number + 1

    def _at(self, places: list[int]) -> list[LoggedAnswer]:
        """The answers at ascending places of the log."""
        found: list[LoggedAnswer] = []
        reader = LogReader(self._log)
        ahead: dict[int, bytes] = {}
        for place in places:
            if place not in ahead:
                reader.seek(place)
                ahead = dict(reader.read(1))
            found.append(LoggedAnswer.of_bytes(ahead[place]))
        reader.close()
        return found


def _beginning(name: str) -> int:
    """The first 8 bytes of an id, as a number."""
    return int(name[:16], 16)
