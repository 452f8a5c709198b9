"""Requests about streams, and about the server: whether it lives and is well, its counts, the
login, the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from spaseq.connectors.base import time_of
from spaseq.lang.spelling import suggested
from spaseq.message_text import visible
from spaseq.rdf.inputs.formats import with_headers
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.job.metrics import escaped, prometheus_text
from spaseq.runtime.live.heartbeats import HeartbeatTooFar
from spaseq.runtime.live.partition_clocks import Marks
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.posted_events import LONGEST_KEY, PostedStream, digest_of
from spaseq.serve.query_routes import stream_json
from spaseq.serve.requests import Refused, body_of, text_of
from spaseq.serve.server_state import ServerState, state_of

_HEARTBEAT = 1000
"""Most bytes of the body of a heartbeat."""

_FORM = 4096
"""Most bytes of the form with the token."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


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
        like = suggested(name, state_of(request).posted)
        hint = f"did you mean {like}?" if like else "GET /streams lists the names"
        raise Refused(404, f"there is no stream {visible(name[:200])}", hint)
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


async def live(request: Request) -> Response:
    """`GET /live`."""
    return JSONResponse({"status": "live"})


async def health(request: Request) -> Response:
    """`GET /health`."""
    run = state_of(request).run
    problems = list(await to_thread.run_sync(run.problems))
    if run.has_ended:
        return JSONResponse({"status": "degraded", "problems": problems}, 503)
    waiting = [
        {"query": query, "stream": stream, "since": format_time(since)}
        for query, stream, since in await to_thread.run_sync(run.waiting)
    ]
    status = "degraded" if problems else "healthy"
    report = {"status": status, "problems": problems, "waiting": waiting}
    return JSONResponse(report, 503 if problems else 200)


async def metrics(request: Request) -> Response:
    """`GET /metrics`."""
    text = await to_thread.run_sync(metrics_text, state_of(request).run)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def login(request: Request) -> Response:
    """`POST /login`."""
    access = state_of(request).access
    form = parse_qs(await text_of(request, _FORM), keep_blank_values=True)
    token = access.admitted(form.get("token", [""])[0])
    if token is None:
        raise Refused(401, "that is not the token", "it is in the file that token_file names")
    headers = {"Location": "/"}
    if access.tokens:
        headers["Set-Cookie"] = access.cookie(token)
    return Response(status_code=303, headers=headers)


async def page(request: Request) -> Response:
    """`GET /` and the page's files."""
    name = str(request.path_params.get("file", "index.html"))
    directory = state_of(request).page
    kind = _TYPES.get(Path(name).suffix)
    if kind is None or name not in (path.name for path in directory.iterdir()):
        raise Refused(404, "there is no such file", "GET / is the page")
    return FileResponse(directory / name, headers={"Content-Type": kind})


# --- The counts of a server in the text format of Prometheus --------------------------------------

STATES = ("running", "catching up", "failed", "paused")


def metrics_text(run: StandingRun) -> str:
    """The counts of a run, of its queries and of its streams."""
    queries, streams = run.queries(), run.streams()
    parts = [prometheus_text(run.stats)]

    def add(name: str, kind: str, about: str, values: Mapping[str, float | None], by: str) -> None:
        known = {key: value for key, value in values.items() if value is not None}
        if known:
            lines = [f'spaseq_{name}{{{by}="{escaped(k)}"}} {v}\n' for k, v in known.items()]
            head = f"# HELP spaseq_{name} {about}\n# TYPE spaseq_{name} {kind}\n"
            parts.append(head + "".join(lines))

    counts = {state: sum(query.state == state for query in queries) for state in STATES}
    add("queries", "gauge", "Queries, by their state.", counts, "state")
    answers = {query.name: query.answers for query in queries}
    add("query_answers_total", "counter", "Answers of a query.", answers, "query")
    withheld = {query.name: query.withheld for query in queries if query.withheld}
    about = "Answers of the past that sinks did not get."
    add("query_withheld_total", "counter", about, withheld, "query")
    live = {query.name: query.live for query in queries}
    add("query_partial_matches", "gauge", "Partial matches of a query.", live, "query")
    accepted = {stream.name: stream.accepted for stream in streams}
    add("stream_accepted_total", "counter", "Events accepted.", accepted, "stream")
    bad = {stream.name: stream.bad for stream in streams}
    add("stream_bad_total", "counter", "Malformed input of a stream.", bad, "stream")
    late = {stream.name: stream.late for stream in streams}
    add("stream_late_total", "counter", "Late events of a stream.", late, "stream")
    dropped = {stream.name: stream.duplicates for stream in streams}
    add("stream_duplicates_total", "counter", "Events dropped by dedup.", dropped, "stream")
    lag = {stream.name: stream.lag for stream in streams}
    add("stream_lag", "gauge", "Messages that wait to be evaluated.", lag, "stream")
    parts.append(
        "# HELP spaseq_problems Problems that /health lists.\n# TYPE spaseq_problems gauge\n"
        f"spaseq_problems {len(run.problems())}\n"
    )
    return "".join(parts)
