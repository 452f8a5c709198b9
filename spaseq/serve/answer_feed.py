"""Answers on their way to subscribers.

A subscriber keeps the id of the last answer that it got, and nothing waits for it: the newest
answers of a query are kept here for all its subscribers, and one that is slower reads the log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from anyio import to_thread

from spaseq.runtime.live.answer_records import LoggedAnswer, json_with_id
from spaseq.runtime.live.standing_run import StandingRun

_RECENT = 2000
"""Answers of a query that are kept for its subscribers."""

_AT_ONCE = 1000


class _RecentAnswers:
    """The newest answers of a query that has subscribers.

    `last` is the id of the newest one, and `before` that of the one before those that are kept;
    None stands for none at all.
    """

    def __init__(self, last: str | None) -> None:
        self.last = self.before = last
        self.subscribers = 0
        self.ended = False
        self.changed = asyncio.Event()
        self._places: dict[str | None, int] = {last: 0}
        self._lines: deque[tuple[str, str]] = deque()
        self._first = 0  # the place of the first one that is kept

    def add(self, answers: Sequence[LoggedAnswer]) -> None:
        """Take the next answers."""
        for answer in answers:
            self._lines.append((answer.id, json_with_id(answer)))
            self.last = answer.id
            self._places[answer.id] = self._first + len(self._lines)
        while len(self._lines) > _RECENT:
            del self._places[self.before]
            self.before = self._lines.popleft()[0]
            self._first += 1
        self.tell()

    def end(self) -> None:
        """Note that no further answers come."""
        self.ended = True
        self.tell()

    def tell(self) -> None:
        """Wake all subscribers."""
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, answer: str | None) -> list[tuple[str, str]] | None:
        """(id, line) of the answers after one; None if the log must be read."""
        place = self._places.get(answer)
        if place is None:
            return None
        begin = place - self._first
        return [self._lines[n] for n in range(begin, min(len(self._lines), begin + _AT_ONCE))]


class AnswerFeed:
    """The subscribers of all queries; use it in one event loop."""

    def __init__(self, run: StandingRun) -> None:
        self._run = run
        self._queries: dict[str, _RecentAnswers] = {}
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        self.closed = False
        self.grown = asyncio.Event()  # set, and replaced, when the log has grown
        self._task = self._loop.create_task(self._follow())
        self._forget = run.answers.on_growth(self._grown)

    def _grown(self) -> None:
        """The log has grown; called in the run's thread."""
        if not self.closed:
            self._loop.call_soon_threadsafe(self._told.set)

    async def _follow(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            self._tell_growth()
            for name, recent in list(self._queries.items()):
                await self._read(name, recent)

    def _tell_growth(self) -> None:
        grown, self.grown = self.grown, asyncio.Event()
        grown.set()

    async def _read(self, name: str, recent: _RecentAnswers) -> None:
        while recent.subscribers:
            answers = await to_thread.run_sync(self._run.answers.read, name, recent.last, _AT_ONCE)
            if not answers:
                return
            recent.add(answers)

    def end(self, name: str) -> None:
        """End the streams of a query that has gone."""
        recent = self._queries.pop(name, None)
        if recent is not None:
            recent.end()

    def close(self) -> None:
        """End all streams, because the server stops."""
        if self.closed:
            return
        self.closed = True
        self._tell_growth()
        self._forget()
        self._task.cancel()
        for recent in self._queries.values():
            recent.tell()

    async def last(self, name: str) -> str | None:
        """The id of the newest answer of a query."""
        return await to_thread.run_sync(self._run.answers.last, name)

    async def subscribe(
        self, name: str, after: str | None, pause_s: float, is_there: bool
    ) -> AsyncGenerator[Sequence[tuple[str, str]] | None]:
        """(id, line) of the answers of a query after one, as they come.

        After each pause without any, it gives none. It ends when the server stops, and with a None
        when the query goes, or if it is not there.

        Raises:
            AnswerGone: the subscriber is so slow that answers which it has not got have gone.
        """
        recent = self._queries.get(name)
        if recent is None:
            recent = _RecentAnswers(await self.last(name))
            recent = self._queries.setdefault(name, recent)
        recent.subscribers += 1
        self._told.set()  # answers may have come since the last one was asked for
        try:
            while not self.closed:
                changed, ended = recent.changed, recent.ended
                lines = recent.after(after)
                if lines is None:
                    lines = await self._from_log(name, after)
                if lines:
                    after = lines[-1][0]
                    yield lines
                elif ended or not is_there:
                    yield None
                    return
                elif not await _is_set(changed, pause_s):
                    yield ()
        finally:
            recent.subscribers -= 1
            if not recent.subscribers and self._queries.get(name) is recent:
                del self._queries[name]

    async def _from_log(self, name: str, after: str | None) -> list[tuple[str, str]]:
        answers = await to_thread.run_sync(self._run.answers.read, name, after, _AT_ONCE)
        return [(answer.id, json_with_id(answer)) for answer in answers]


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
