"""A run in memory, for tests of requests; the tests give it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.logs.stream_log import Message
from spaseq.runtime.job.job import Stats
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.serve.service import HistoryGone, UnknownQuery


@dataclass
class Query:
    name: str
    text: str
    state: Literal["running", "catching up", "failed"] = "running"
    since: int | None = 0
    streams: Sequence[str] = ("http://e/s",)
    answers: int = 0
    live: int | None = None
    reason: str | None = None


@dataclass
class Stream:
    name: str
    iri: str
    accepted: int = 0
    bad: int = 0
    late: int = 0
    watermark: int | None = None
    source: str | None = None
    lag: int = 0


@dataclass
class Answers:
    of: dict[str, list[LoggedAnswer]] = field(default_factory=dict)
    listeners: list[Callable[[], None]] = field(default_factory=list)
    dropped: int = 0

    def read(self, name: str, after: str | None, limit: int) -> list[LoggedAnswer]:
        if name not in self.of:
            raise UnknownQuery(f"there is no query {name}")
        found = self.of[name]
        begin = 0
        if after is not None:
            ids = [answer.id for answer in found]
            if after not in ids[self.dropped :]:
                raise HistoryGone(f"the answer {after} is gone")
            begin = ids.index(after) + 1
        return found[begin : begin + limit]

    def newest(self, name: str, most: int) -> list[LoggedAnswer]:
        return self.read(name, None, len(self.of.get(name, ())))[-most:]

    def last(self, name: str) -> str | None:
        if name not in self.of:
            raise UnknownQuery(f"there is no query {name}")
        return self.of[name][-1].id if self.of[name] else None

    def add_listener(self, told: Callable[[], None]) -> None:
        self.listeners.append(told)

    def give(self, name: str, *values: str) -> None:
        for value in values:
            answer = Answer((0, 0), (1, 0), (), (("x", f'"{value}"'),))
            self.of[name].append(LoggedAnswer(name, value, answer, 0))
        for told in self.listeners:
            told()


class StandIn:
    """Takes events and queries, and finds nothing."""

    def __init__(self) -> None:
        self.answers, self.stats = Answers(), Stats()
        self.accepted: list[tuple[str, list[Message], bytes | None]] = []
        self.trouble: list[str] = []
        self.full: Exception | None = None
        self._queries: dict[str, Query] = {}
        self._lock = threading.Lock()
        self.ended = 0

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.ended += 1

    def put(
        self, name: str, text: str, since_ms: int | None = None
    ) -> Literal["added", "replaced", "unchanged"]:
        with self._lock:
            before = self._queries.get(name)
            if before is not None and before.text.split() == text.split():
                return "unchanged"
            self._queries[name] = Query(name, text, since=since_ms or 0)
            self.answers.of.setdefault(name, [])
            return "added" if before is None else "replaced"

    def remove(self, name: str) -> None:
        if self._queries.pop(name, None) is None:
            raise UnknownQuery(f"there is no query {name}")

    def restart(self, name: str) -> None:
        if name not in self._queries:
            raise UnknownQuery(f"there is no query {name}")
        if self._queries[name].state != "failed":
            raise UsageError(f"query {name} runs")
        self._queries[name].state = "running"

    def accept(self, stream: str, messages: Sequence[Message], note: bytes | None = None) -> None:
        if self.full is not None:
            raise self.full
        self.accepted.append((stream, list(messages), note))

    def queries(self) -> list[Query]:
        return list(self._queries.values())

    def live_states(self, name: str) -> None:
        return None

    def streams(self) -> list[Stream]:
        return [Stream("S", "http://e/s", accepted=len(self.accepted))]

    def problems(self) -> list[str]:
        return self.trouble

    def fail(self, name: str) -> None:
        self._queries[name].state, self._queries[name].reason = "failed", "it is tired"
