"""Answers on their way to subscribers, and as server-sent events.

A subscriber keeps the id of the last answer that it got, and nothing waits for it: the newest
answers of a query are kept here for all its subscribers, and one that is slower reads the log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from anyio import to_thread
from starlette.types import Receive, Scope, Send

from spaseq.errors import SpaseqError
from spaseq.runtime.live.answer_records import LoggedAnswer, json_with_id
from spaseq.runtime.live.standing_run import StandingRun

_RECENT = 2000
"""Answers of a query that are kept for its subscribers."""

_AT_ONCE = 1000

PAUSE_S = 15.0
"""Seconds without an answer after which a comment is sent, as a sign of life."""

SLOW_S = 60.0
"""A subscriber that takes nothing for so long is disconnected."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]


class _RecentAnswers:
    """The newest answers of a query that has subscribers.

    `last` is the id of the newest one, and `before` the id of the last one dropped; None if there
    is none.
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

        After each pause without any, it yields none. It ends when the server stops, and with a None
        when the query is removed, or does not exist.

        Raises:
            AnswerGone: the subscriber is so slow that answers were dropped before it got them.
        """
        recent = self._queries.get(name)
        if recent is None:
            recent = _RecentAnswers(await self.last(name))
            recent = self._queries.setdefault(name, recent)
        recent.subscribers += 1
        self._told.set()  # answers may have come since the last request
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


class Subscribable(Protocol):
    """An object with answers for subscribers, as `AnswerFeed.subscribe` documents it."""

    def subscribe(
        self, name: str, after: str | None, pause_s: float, is_there: bool
    ) -> AsyncGenerator[Sequence[tuple[str, str]] | None]: ...


class AnswerStream:
    """The response to one subscriber, an ASGI application.

    Args:
        feed: has the answers.
        name: of the query.
        after: the id of the last answer that the subscriber has; None if it has none.
        is_there: whether the query is there; otherwise the stream ends with the last answer.
    """

    def __init__(self, feed: Subscribable, name: str, after: str | None, is_there: bool) -> None:
        self._feed, self._name, self._after, self._is_there = feed, name, after, is_there

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            with suppress(asyncio.CancelledError, TimeoutError, OSError):
                await sending

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": _HEADERS}
        await send(start)
        await _part(send, ": answers\n\n")
        async with aclosing(self._texts()) as texts:
            async for text in texts:
                await _part(send, text)
        await send({"type": "http.response.body", "body": b""})

    async def _texts(self) -> AsyncGenerator[str]:
        answers = self._feed.subscribe(self._name, self._after, PAUSE_S, self._is_there)
        try:
            async with aclosing(answers):
                async for some in answers:
                    yield _events(some)
        except SpaseqError as error:  # answers that it has not got have been dropped
            yield f"event: gone\ndata: {error}\n\n"


def _events(answers: Sequence[tuple[str, str]] | None) -> str:
    if answers is None:
        return "event: end\ndata: the query has gone\n\n"
    if not answers:
        return ": \n\n"
    return "".join(f"id: {name}\ndata: {line}\n\n" for name, line in answers)


async def _part(send: Send, text: str) -> None:
    body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
    async with asyncio.timeout(SLOW_S):
        await send(body)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
