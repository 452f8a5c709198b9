"""Answers as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from starlette.types import Receive, Scope, Send

from spaseq.errors import SpaseqError

PAUSE_S = 15.0
"""After so long without an answer a comment is sent, so that nobody thinks that all is over."""

SLOW_S = 60.0
"""A subscriber that takes nothing for so long is disconnected."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]


class Subscribable(Protocol):
    """What has answers for subscribers, as `AnswerFeed.subscribe` documents it."""

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
