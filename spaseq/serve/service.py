"""What the server asks of the run behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from spaseq.automaton.run.live_states import LiveStates
from spaseq.errors import UsageError
from spaseq.logs.stream_log import Message
from spaseq.runtime.job.job import Stats
from spaseq.runtime.live.answer_records import LoggedAnswer


class UnknownQuery(UsageError):
    """There is no query of that name."""


class HistoryGone(UsageError):
    """What is asked for may have been dropped from a log."""


class QueryView(Protocol):
    """A query as it stands."""

    name: str
    text: str
    state: Literal["running", "catching up", "failed"]
    since: int | None  # ms
    streams: Sequence[str]
    answers: int
    live: int | None
    reason: str | None


class StreamView(Protocol):
    """A stream as it stands; nothing in it is secret."""

    name: str
    iri: str
    accepted: int
    bad: int
    late: int
    watermark: int | None  # ms
    source: str | None
    lag: int


class AnswerIndex(Protocol):
    """The answers of each query, by id."""

    def read(self, name: str, after: str | None, limit: int) -> list[LoggedAnswer]: ...
    def newest(self, name: str, most: int) -> list[LoggedAnswer]: ...
    def last(self, name: str) -> str | None: ...
    def add_listener(self, told: Callable[[], None]) -> None: ...


class Standing(Protocol):
    """The run: streams in logs, queries that come and go, answers in a log."""

    @property
    def answers(self) -> AnswerIndex: ...
    @property
    def stats(self) -> Stats: ...

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def put(
        self, name: str, text: str, since_ms: int | None = None
    ) -> Literal["added", "replaced", "unchanged"]: ...
    def remove(self, name: str) -> None: ...
    def restart(self, name: str) -> None: ...
    def accept(
        self, stream: str, messages: Sequence[Message], note: bytes | None = None
    ) -> None: ...
    def queries(self) -> Sequence[QueryView]: ...
    def live_states(self, name: str) -> LiveStates | None: ...
    def streams(self) -> Sequence[StreamView]: ...
    def problems(self) -> Sequence[str]: ...
