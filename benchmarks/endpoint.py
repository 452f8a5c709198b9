"""A SPARQL endpoint on loopback, for measurements."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pyoxigraph as ox


@contextmanager
def serving(turtle: str) -> Iterator[str]:
    """The URL of an endpoint whose default graph is the given Turtle."""
    store = ox.Store()
    store.load(turtle.encode(), format=ox.RdfFormat.TURTLE)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            results = store.query(parse_qs(body)["query"][0])
            answer = results.serialize(format=ox.QueryResultsFormat.JSON)
            self.send_response(200)
            self.send_header("Content-Type", "application/sparql-results+json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/sparql"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
