"""The application: which request goes where."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from spaseq.errors import SpaseqError
from spaseq.serve import feed_routes as feed
from spaseq.serve import graph_routes as graphs
from spaseq.serve import query_routes as queries
from spaseq.serve import status_routes as status
from spaseq.serve import stream_routes as streams
from spaseq.serve.guard import Guard
from spaseq.serve.refusals import Refused, on_error, on_fault, on_http, on_refused
from spaseq.serve.server_state import ServerState

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


def application(state: ServerState) -> ASGIApp:
    """The server as an ASGI application."""
    app = Starlette(
        routes=[Route(path, called, methods=[method]) for method, path, called in ROUTES],
        exception_handlers={
            Refused: on_refused,
            SpaseqError: on_error,
            HTTPException: on_http,
            Exception: on_fault,
        },
    )
    app.state.server = state
    return Guard(app, state.access)
