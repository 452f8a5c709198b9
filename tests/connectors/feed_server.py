"""A server of pages on loopback: ETags, closed pages, redirects, and errors on demand."""

from __future__ import annotations

import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TREE = """PREFIX ldes: <https://w3id.org/ldes#> PREFIX tree: <https://w3id.org/tree#>
PREFIX dct: <http://purl.org/dc/terms/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX : <http://e/>
"""


class FeedServer:
    """Serves `pages` by path: (media type, text); those in `closed` never change.

    `moved` has the address that a path redirects to, `statuses` what a path answers instead, each
    once. `asked` has the (path, status) of each request.
    """

    def __init__(self, port: int = 0) -> None:
        self.pages: dict[str, tuple[str, str]] = {}
        self.closed, self.moved = set[str](), dict[str, str]()
        self.statuses: dict[str, list[int]] = {}
        self.asked: list[tuple[str, int]] = []
        self.port = port
        self.start()

    def start(self) -> None:
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                feed._answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, path: str, text: str, media: str = "text/turtle", closed: bool = False) -> None:
        self.pages[path] = media, TREE + text if media != "application/ld+json" else text
        if closed:
            self.closed.add(path)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path
        media, text = self.pages.get(path, ("text/plain", ""))
        tag = '"' + sha256(text.encode()).hexdigest()[:16] + '"'
        waiting = self.statuses.get(path)
        if waiting:
            status = waiting.pop(0)
        elif path in self.moved:
            status = 302
        elif path not in self.pages:
            status = 404
        else:
            status = 304 if request.headers.get("If-None-Match") == tag else 200
        self.asked.append((path, status))
        request.send_response(status)
        if status == 302:
            request.send_header("Location", self.moved[path])
        elif status in (200, 304):
            request.send_header("ETag", tag)
            closed = path in self.closed
            request.send_header("Cache-Control", "public, immutable" if closed else "max-age=60")
            request.send_header("Content-Type", media)
        body = text.encode() if status == 200 else b""
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def member(number: int, second: int | None = None, more: str = "") -> str:
    """A member with a number, made so many seconds after 1970."""
    second = number if second is None else second
    minute, second = divmod(second, 60)
    time = f'"1970-01-01T00:{minute:02}:{second:02}Z"^^xsd:dateTime'
    return f":m{number} dct:created {time} ; :n {number} {more}."


def members(*numbers: int) -> str:
    """Members of the feed :f, with their links."""
    return "".join(f":f tree:member :m{n} . {member(n)}\n" for n in numbers)


def root(view: str, relations: str = "", more: str = "") -> str:
    """The root of the feed :f."""
    return (
        f":f a ldes:EventStream ; tree:view <{view}> ; ldes:timestampPath dct:created {more}.\n"
        + (f"<{view}> tree:relation {relations} .\n" if relations else "")
    )


def since(node: str, second: int | None = None) -> str:
    """A relation to a page; with a second, no member behind it is earlier."""
    if second is None:
        return f"[ a tree:Relation ; tree:node <{node}> ]"
    minute, second = divmod(second, 60)
    return (
        f"[ a tree:GreaterThanOrEqualToRelation ; tree:node <{node}> ; tree:path dct:created ;"
        f' tree:value "1970-01-01T00:{minute:02}:{second:02}Z"^^xsd:dateTime ]'
    )
