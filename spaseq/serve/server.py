"""A server: the run, its queries' directory, and the requests about both, from start to end; and
which request goes where.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from spaseq.errors import SpaseqError
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve import feed_routes as feed
from spaseq.serve import graph_routes as graphs
from spaseq.serve import query_routes as queries
from spaseq.serve import stream_routes as status
from spaseq.serve import stream_routes as streams
from spaseq.serve.answer_feed import AnswerFeed
from spaseq.serve.guard import Guard
from spaseq.serve.history import BY_SERVER, Acknowledgements, Versions
from spaseq.serve.http_server import (
    HttpServer,
    answered_after,
    more_connections,
    server_of,
    url_of,
)
from spaseq.serve.query_files import QueryFiles
from spaseq.serve.requests import (
    Refused,
    check_parameters,
    on_error,
    on_fault,
    on_http,
    on_refused,
)
from spaseq.serve.server_state import ServerParts, ServerState

ROUTES = (
    ("GET", "/", status.page),
    ("GET", "/page/{file}", status.page),
    ("POST", "/login", status.login),
    ("GET", "/live", status.live),
    ("GET", "/health", status.health),
    ("GET", "/metrics", status.metrics),
    ("POST", "/check", queries.check_text),
    ("GET", "/queries", queries.list_queries),
    ("GET", "/queries/{name}", queries.show_query),
    ("PUT", "/queries/{name}", queries.put_query),
    ("PATCH", "/queries/{name}", queries.change_query),
    ("GET", "/queries/{name}/versions", queries.list_versions),
    ("POST", "/queries/{name}/rollback", queries.roll_back),
    ("DELETE", "/queries/{name}", queries.delete_query),
    ("POST", "/queries/{name}/restart", queries.restart_query),
    ("GET", "/queries/{name}/automaton.svg", queries.draw_query),
    ("GET", "/queries/{name}/answers", queries.get_answers),
    ("GET", "/queries/{name}/answers/{id}/knowledge", queries.used_knowledge),
    ("GET", "/queries/{name}/why", queries.why_query),
    ("GET", "/answers", feed.get_feed),
    ("POST", "/answers/{id}/acknowledge", feed.acknowledge),
    ("GET", "/kb", graphs.get_graphs),
    ("PUT", "/kb", graphs.put_graph),
    ("POST", "/kb", graphs.post_graph),
    ("DELETE", "/kb", graphs.delete_graph),
    ("PATCH", "/kb", graphs.update_graph),
    ("GET", "/streams", streams.list_streams),
    ("POST", "/streams/{name}", streams.post_events),
    ("POST", "/streams/{name}/heartbeat", streams.post_heartbeat),
)

Called = Callable[[Request], Awaitable[ASGIApp]]
"""Answers a request."""

PARAMETERS: Mapping[Called, tuple[str, ...]] = {
    queries.put_query: ("from", "dry-run", "limit"),
    queries.get_answers: ("after", "limit", "last"),
    queries.why_query: ("event",),
    feed.get_feed: ("after", "limit", "query", "severity", "said"),
    graphs.get_graphs: ("graph", "default", "at"),
    graphs.put_graph: ("graph", "default", "from"),
    graphs.post_graph: ("graph", "default", "from"),
    graphs.delete_graph: ("graph", "default", "from"),
    graphs.update_graph: ("graph", "default", "from"),
}
"""The parameters in the URLs of requests. A GET that is not here may have any, and so may a POST of
events: services that send events add their own.
"""

PAGE = Path(__file__).parent / "page"
"""The files of the page."""

_BEGIN_S = 5.0
_LOOK_S = 0.5
_LOG = logging.getLogger("spaseq")


def application(state: ServerState) -> ASGIApp:
    """The server as an ASGI application."""
    app = Starlette(
        routes=[
            Route(path, _checked(method, called), methods=[method])
            for method, path, called in ROUTES
        ],
        exception_handlers={
            Refused: on_refused,
            SpaseqError: on_error,
            HTTPException: on_http,
            Exception: on_fault,
        },
    )
    app.state.server = state
    return Guard(app, state.access)


def _checked(method: str, called: Called) -> Called:
    """Answers requests of which all parameters are known."""
    known = PARAMETERS.get(called, ())
    if called is streams.post_events or (method == "GET" and not known):
        return called

    async def checked(request: Request) -> ASGIApp:
        check_parameters(request, known)
        return await called(request)

    return checked


def serve(parts: ServerParts, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; then accepted events are on disk, and the state is saved."""
    more_connections()
    with ExitStack() as stack:
        stack.callback(listening.close)
        stack.enter_context(suppress(KeyboardInterrupt))  # a signal before anybody is served
        _LOG.info("starting: reads the logs and the state in %s", parts.run.directory)
        with answered_after(_BEGIN_S, _starting, listening, parts.tls):
            parts.run.start(sources=False)
        stack.callback(parts.run.stop)
        for name in parts.posted:
            parts.replies.recall(name, parts.run.marks(name))
        asyncio.run(_served(parts, listening))
        _LOG.info("stopping")
    _LOG.info("stopped")


async def _starting(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request while the state is read: the process lives, and is not ready."""
    match scope["path"]:
        case "/live":
            status, answer = 200, {"status": "live"}
        case "/health":
            status, answer = 503, {"status": "starting"}
        case _:
            status, answer = 503, {"error": "the server reads its state", "hint": "try again later"}
    headers = {} if status == 200 else {"Retry-After": "1"}
    await JSONResponse(answer, status, headers)(scope, receive, send)


async def _served(parts: ServerParts, listening: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    feed = AnswerFeed(parts.run)

    def ended(query: str) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(feed.end, query)

    data = parts.run.directory
    audit, versions = parts.audit, Versions(data)
    audit.note(BY_SERVER, "start", "server", None, None)
    files = QueryFiles(parts.queries, parts.run, parts.plan, ended, (audit, versions))
    state = ServerState(
        *(getattr(parts, part.name) for part in fields(parts)),
        files=files,
        feed=feed,
        page=PAGE,
        versions=versions,
        acknowledgements=Acknowledgements(data),
    )
    server = server_of(application(state), parts.tls, feed.close, parts.run.begin_stop)
    begun = asyncio.Event()
    beginning = threading.Thread(
        target=_begin, args=(parts.run, files, loop, begun), name="queries", daemon=True
    )
    try:
        with server.capture_signals():
            beginning.start()
            await _some_time(begun)
            _LOG.info("listening on %s", url_of(listening, parts.tls is not None))
            ending = asyncio.create_task(_stopped_with(parts.run, server))
            await server.serve(sockets=[listening])
            ending.cancel()
    finally:
        feed.close()
        await asyncio.to_thread(files.close)


def _begin(
    run: StandingRun, files: QueryFiles, loop: asyncio.AbstractEventLoop, begun: asyncio.Event
) -> None:
    """Let the queries of the directory run, then let the sources bring events."""
    try:
        files.begin()
        run.start_sources()
    except SpaseqError as error:
        if not run.stopping:
            _LOG.error("%s", error)
    else:
        files.watch(_LOOK_S)
    if not loop.is_closed():
        loop.call_soon_threadsafe(begun.set)


async def _stopped_with(run: StandingRun, server: HttpServer) -> None:
    """Stop the server once the run has ended: `stop` of the run raises its error."""
    while not run.wait(0):
        await asyncio.sleep(_LOOK_S)
    server.stop()


async def _some_time(event: asyncio.Event) -> None:
    """Wait for an event, but not for long: an earlier run may have left much to read."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_BEGIN_S):
            await event.wait()
