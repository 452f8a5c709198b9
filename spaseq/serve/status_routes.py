"""Requests about the server: whether it lives and is well, its counts, the login, the page."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from spaseq.rdf.terms.times import format_time
from spaseq.serve.bodies import text_of
from spaseq.serve.metrics_text import metrics_text
from spaseq.serve.refusals import Refused
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
    found = {"status": status, "problems": problems, "waiting": waiting}
    return JSONResponse(found, 503 if problems else 200)


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
