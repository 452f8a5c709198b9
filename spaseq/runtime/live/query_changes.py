"""Requests of other threads to the thread of a live run; and the log of changes of its queries.

A change counts once it is in the log. Each has its position in the streams' logs. Between two runs
the log says which queries there are, and a run that continues from an earlier state meets each
change at the position where it first took effect.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from spaseq.errors import RunError
from spaseq.logs.segment_log import SegmentLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.live.log_points import PastPoint

T = TypeVar("T")

_Waiting = deque[tuple[Callable[[], Any], Future[Any]]]

Planner = Callable[[str, str, Collection[str]], QueryPlan]
"""Plans a query's text under a name, beside queries that maintain some graphs.

It raises a QueryError, or what `check_kbs` raises.
"""


class LoopRequests:
    """Functions that the run's thread will call.

    `call` and `look` may be called from any other thread, the rest from the run's only.

    Args:
        wake: wakes the run.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changes: _Waiting = deque()
        self._looks: _Waiting = deque()
        self._door, self._ended = threading.Lock(), False

    def __bool__(self) -> bool:
        return bool(self._changes or self._looks)

    def call(self, do: Callable[[], T]) -> T:
        """Run a function that may change something in the run's thread; return its result.

        Raises:
            RunError: the run has ended.
        """
        return self._hand_in(self._changes, do)

    def look(self, do: Callable[[], T]) -> T:
        """Run a read-only function, even while an earlier run's log is read."""
        return self._hand_in(self._looks, do)

    def _hand_in(self, queue: _Waiting, do: Callable[[], T]) -> T:
        done: Future[T] = Future()
        with self._door:
            if self._ended:
                raise RunError("the run has ended")
            queue.append((do, done))
        self._wake()
        return done.result()

    def serve(self) -> None:
        """Run the requests."""
        self._serve(self._changes)
        self.serve_looks()

    def serve_looks(self) -> None:
        """Run the read-only requests."""
        self._serve(self._looks)

    @staticmethod
    def _serve(queue: _Waiting) -> None:
        while queue:
            do, done = queue.popleft()
            try:
                done.set_result(do())
            except BaseException as error:
                done.set_exception(error)

    def close(self) -> None:
        """Refuse waiting and later requests."""
        with self._door:
            self._ended = True
        for queue in (self._changes, self._looks):
            while queue:
                queue.popleft()[1].set_exception(RunError("the run has ended"))


class ChangeKind(Enum):
    """The kind of a change of a query."""

    ADDED = "added"
    REMOVED = "removed"
    FAILED = "failed"  # a limit of its state was exceeded
    RESTARTED = "restarted"
    PAUSED = "paused"
    TOLD = "told"  # its comments have another text, or the text of a paused query has changed
    JOINED = "joined"  # it began in the past, and has caught up


class StandingQuery(NamedTuple):
    """A query as its user gave it.

    Attributes:
        name: its name.
        text: its text; "" if the run was given a plan.
        since: when it was added, ms since the epoch, or the time of its first events.
        is_paused: whether it waits to be enabled.
        past: if it began in the past, the result of `LoggedBefore.as_json` then.
        graphs: the graphs that it reads and that removed queries have maintained.
    """

    name: str
    text: str
    since: int = 0
    is_paused: bool = False
    past: list[Any] | None = None
    graphs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A change of a query, and the next record of each stream's log at that moment.

    A query that is added for events of the past has the point from which it reads as its `start`.
    """

    kind: ChangeKind
    query: StandingQuery
    places: Mapping[str, int]
    reason: str = ""
    start: PastPoint | None = None
    index: int = field(default=0, compare=False)

    def to_bytes(self) -> bytes:
        """The change as a record; `of_bytes` is the inverse."""
        value = [self.kind.value, *self.query[:3], dict(self.places), self.reason, self.start]
        return json.dumps(value).encode("ascii")

    @classmethod
    def of_bytes(cls, record: bytes, index: int = 0) -> QueryChange:
        """The inverse of `to_bytes`.

        Raises:
            RunError: a later version wrote it.
        """
        try:
            kind, name, text, since, places, reason, start = json.loads(record)
            change, point = ChangeKind(kind), start and PastPoint(*start)
            query = StandingQuery(name, text, since, change is ChangeKind.PAUSED)
            return cls(change, query, places, reason, point, index)
        except (ValueError, TypeError) as error:
            raise RunError(f"the log of queries cannot be read: {error}") from error


def changes_after(log: SegmentLog, index: int = 0) -> list[QueryChange]:
    """The changes in a log, from an index on."""
    return [QueryChange.of_bytes(record, number) for number, record in log.records(index)]


def as_values(queries: Mapping[str, StandingQuery]) -> list[Any]:
    """Queries as values for a state; `of_values` is the inverse."""
    return [tuple(query) for query in queries.values()]


def of_values(values: list[Any]) -> dict[str, StandingQuery]:
    """The inverse of `as_values`."""
    return {name: StandingQuery(name, *rest) for name, *rest in values}
