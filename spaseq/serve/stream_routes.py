"""Requests about streams."""

from __future__ import annotations

import json
from dataclasses import replace

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spaseq.connectors.base import time_of
from spaseq.message_text import visible
from spaseq.rdf.inputs.message_formats import with_headers
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.live.heartbeats import HeartbeatTooFar
from spaseq.runtime.live.partition_clocks import Marks
from spaseq.serve.posted_events import LONGEST_KEY, PostedStream, digest_of
from spaseq.serve.query_details import stream_json
from spaseq.serve.requests import Refused, body_of, text_of
from spaseq.serve.server_state import ServerState, state_of

_HEARTBEAT = 1000
"""Most bytes of the body of a heartbeat."""


async def list_streams(request: Request) -> Response:
    """`GET /streams`."""
    views = await to_thread.run_sync(state_of(request).run.streams)
    return JSONResponse([stream_json(view) for view in views])


async def post_events(request: Request) -> Response:
    """`POST /streams/NAME`."""
    state, name = state_of(request), _known(request)
    stream = state.posted[name]
    given = request.headers
    media_type = given.get("content-type", "")
    if "ce-specversion" not in given:
        media_type = stream.media_type(media_type)
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        raise Refused(
            400, "the Idempotency-Key is empty or too long", f"at most {LONGEST_KEY} characters"
        )
    body = await body_of(request, state.max_body)
    media_type, body = with_headers(dict(given), media_type, body)
    # The run's thread would hold the reply up, if it began to evaluate before that.
    wake = BackgroundTask(_wake, state)
    if key is None:
        return JSONResponse(await _accepted(state, stream, media_type, body), background=wake)
    digest = digest_of(media_type, body)
    try:
        async with state.replies.lock(name, key):
            reply = state.replies.reply(name, key, digest)
            if reply is None:
                reply = await _accepted(state, stream, media_type, body, (key, digest))
    finally:
        state.replies.unlocked(name, key)
    return JSONResponse(reply, background=wake)


async def _wake(state: ServerState) -> None:
    state.run.wake()


async def post_heartbeat(request: Request) -> Response:
    """`POST /streams/NAME/heartbeat`."""
    state, name = state_of(request), _known(request)
    text = await text_of(request, _HEARTBEAT)
    time = _time_in(text)
    if time is None:
        hint = 'send {"time": "2026-01-31T08:00:00Z"}, or the milliseconds since 1970'
        raise Refused(400, "the body has no time", hint)
    try:
        await to_thread.run_sync(state.run.heartbeat, name, time, limiter=state.threads)
    except HeartbeatTooFar as error:
        raise Refused(400, str(error), "max_ahead of the stream bounds it") from None
    return JSONResponse({"watermark": format_time(time + 1)})


def _time_in(text: str) -> int | None:
    """The time (ms) that the body of a heartbeat says."""
    try:
        given = json.loads(text)
    except ValueError:
        return None
    given_time = given.get("time") if isinstance(given, dict) and given.keys() == {"time"} else None
    return time_of(str(given_time)) if isinstance(given_time, str | int) else None


def _known(request: Request) -> str:
    """The name of the stream that a path names; Refused if there is none."""
    name = str(request.path_params["name"])
    if name not in state_of(request).posted:
        what = f"there is no stream {visible(name[:200])}"
        raise Refused(404, what, "GET /streams lists the names")
    return name


async def _accepted(
    state: ServerState,
    stream: PostedStream,
    media_type: str,
    body: bytes,
    identity: tuple[str, str] | None = None,
) -> dict[str, object]:
    """The reply to events, which are in the log when this returns."""

    def accept() -> dict[str, object]:
        posted, kept = stream.read(media_type, body), Marks()
        if not posted.messages:
            return posted.reply(0)

        def marks(late: int) -> Marks:
            nonlocal kept
            if identity is not None:
                kept = state.replies.marks(stream.name, *identity, posted.reply(late))
            return kept

        events = replace(posted.events, marks=marks)
        late = state.run.accept(stream.name, posted.messages, events, wakes=False)
        state.replies.keep(stream.name, kept)
        return posted.reply(late)

    return await to_thread.run_sync(accept, limiter=state.threads)
