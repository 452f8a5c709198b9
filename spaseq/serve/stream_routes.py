"""Requests about streams."""

from __future__ import annotations

from dataclasses import replace

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spaseq.message_text import visible
from spaseq.serve.bodies import body_of
from spaseq.serve.kept_replies import LONGEST_KEY, digest_of
from spaseq.serve.posted_events import PostedStream
from spaseq.serve.query_details import stream_json
from spaseq.serve.refusals import Refused
from spaseq.serve.server_state import ServerState, state_of


async def list_streams(request: Request) -> Response:
    """`GET /streams`."""
    views = await to_thread.run_sync(state_of(request).run.streams)
    return JSONResponse([stream_json(view) for view in views])


async def post_events(request: Request) -> Response:
    """`POST /streams/NAME`."""
    state, name = state_of(request), str(request.path_params["name"])
    stream = state.posted.get(name)
    if stream is None:
        raise Refused(
            404, f"there is no stream {visible(name[:200])}", "GET /streams lists the names"
        )
    media_type = stream.media_type(request.headers.get("content-type", ""))
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        raise Refused(
            400, "the Idempotency-Key is empty or too long", f"at most {LONGEST_KEY} characters"
        )
    body = await body_of(request, state.max_body)
    if key is None:
        return JSONResponse(await _accepted(state, stream, media_type, body))
    digest = digest_of(media_type, body)
    try:
        async with state.replies.lock(name, key):
            reply = state.replies.reply(name, key, digest)
            if reply is None:
                reply = await _accepted(state, stream, media_type, body, (key, digest))
    finally:
        state.replies.unlocked(name, key)
    return JSONResponse(reply)


async def _accepted(
    state: ServerState,
    stream: PostedStream,
    media_type: str,
    body: bytes,
    identity: tuple[str, str] | None = None,
) -> dict[str, object]:
    """The reply to events, which are in the log when this returns."""

    def accept() -> dict[str, object]:
        messages, reply = stream.read(media_type, body)
        if not messages:
            return reply
        marks: tuple[tuple[str, str], ...] = ()
        if identity is not None:
            marks = state.replies.marks(stream.name, *identity, reply)
            messages[-1] = replace(messages[-1], marks=marks)
        state.run.accept(stream.name, messages)
        state.replies.keep(stream.name, marks)
        return reply

    return await to_thread.run_sync(accept, limiter=state.threads)
