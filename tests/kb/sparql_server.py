"""A SPARQL endpoint on loopback: a store behind a real HTTP server that can misbehave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pyoxigraph as ox

from spaseq.kb.endpoint import shared_cache

JSON = "application/sparql-results+json"

Reply = Callable[["Handler", bytes], None]
"""Sends the correct answer, or a broken form of it."""


def good(handler: Handler, answer: bytes) -> None:
    handler.reply(200, JSON, answer)


def status(code: int) -> Reply:
    return lambda handler, _: handler.reply(code, "text/plain", b"no luck today\nmore")


def page(handler: Handler, answer: bytes) -> None:
    """A web page from a server that is not an endpoint."""
    handler.reply(200, "text/html", b"<html>Welcome</html>")


def broken_off(handler: Handler, answer: bytes) -> None:
    """Fewer bytes than announced."""
    handler.reply(200, JSON, answer[: len(answer) // 2], len(answer))


def cut_short(handler: Handler, answer: bytes) -> None:
    """All announced bytes, but an incomplete answer."""
    handler.reply(200, JSON, answer[: len(answer) // 2])


def other_rows(handler: Handler, answer: bytes) -> None:
    """An answer to another question."""
    handler.reply(200, JSON, b'{"head":{"vars":[]},"results":{"bindings":[{}]}}')


def slow(seconds: float) -> Reply:
    def reply(handler: Handler, answer: bytes) -> None:
        time.sleep(seconds)
        handler.reply(200, JSON, answer)

    return reply


def dripping(handler: Handler, answer: bytes) -> None:
    """A byte now and then, so that no single read times out."""
    handler.head(200, JSON, len(answer))
    for i in range(len(answer)):
        handler.wfile.write(answer[i : i + 1])
        handler.wfile.flush()
        time.sleep(0.05)


def moved(handler: Handler, answer: bytes) -> None:
    handler.send_response(307)
    handler.send_header("Location", f"{handler.path}/there")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@dataclass
class SparqlServer:
    """The first requests get `replies`; later requests get correct answers."""

    url: str
    store: ox.Store
    replies: list[Reply] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    always: Reply = good

    def as_new(self) -> SparqlServer:
        """The server after a reset: no recorded requests, and no cached answers."""
        self.queries, self.replies, self.always = [], [], good
        shared_cache.cache_clear()
        return self


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: SparqlServer = self.server.endpoint  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        (query,) = parse_qs(body)["query"]
        server.queries.append(query)
        reply = server.replies.pop(0) if server.replies else server.always
        try:
            results: Any = server.store.query(query)
            answer = results.serialize(format=ox.QueryResultsFormat.JSON)
        except SyntaxError as error:
            self.reply(400, "text/plain", str(error).encode())
            return
        try:
            reply(self, answer)
        except (BrokenPipeError, ConnectionResetError):  # the client has given up
            self.close_connection = True

    def reply(self, code: int, kind: str, data: bytes, announced: int | None = None) -> None:
        self.head(code, kind, len(data) if announced is None else announced)
        self.wfile.write(data)

    def head(self, code: int, kind: str, size: int) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(turtle: str) -> Iterator[SparqlServer]:
    """An endpoint whose default graph is the given Turtle."""
    store = ox.Store()
    store.load(turtle.encode(), format=ox.RdfFormat.TURTLE)
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.endpoint = server = SparqlServer(  # type: ignore[attr-defined]
        f"http://127.0.0.1:{http.server_port}/sparql", store
    )
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
