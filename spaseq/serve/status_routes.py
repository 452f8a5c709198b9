"""Requests about the server: whether it lives and is well, its counts, the login, the page."""

from __future__ import annotations

from urllib.parse import parse_qs

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

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
    problems = list(await to_thread.run_sync(state_of(request).run.problems))
    if problems:
        return JSONResponse({"status": "degraded", "problems": problems}, 503)
    return JSONResponse({"status": "healthy", "problems": []})


async def metrics(request: Request) -> Response:
    """`GET /metrics`."""
    text = await to_thread.run_sync(metrics_text, state_of(request).run)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def login(request: Request) -> Response:
    """`POST /login`."""
    access = state_of(request).access
    form = parse_qs(await text_of(request, _FORM), keep_blank_values=True)
    if not access.admits(form.get("token", [""])[0]):
        raise Refused(401, "that is not the token", "it is in the file that token_file names")
    headers = {"Location": "/"}
    if access.token is not None:
        headers["Set-Cookie"] = access.cookie()
    return Response(status_code=303, headers=headers)


async def page(request: Request) -> Response:
    """`GET /` and the page's files."""
    name = str(request.path_params.get("file", "index.html"))
    path = state_of(request).page / name
    kind = _TYPES.get(path.suffix)
    if "/" in name or name.startswith(".") or kind is None or not path.is_file():
        raise Refused(404, "there is no such file", "GET / is the page")
    return FileResponse(path, headers={"Content-Type": kind})
