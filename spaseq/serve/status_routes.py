"""Requests about the server: whether it lives and is well, its counts, the login, the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from spaseq.rdf.terms.times import format_time
from spaseq.runtime.job.metrics import escaped, prometheus_text
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.requests import Refused, text_of
from spaseq.serve.server_state import state_of

_FORM = 4096
"""Most bytes of the form with the token."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


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
