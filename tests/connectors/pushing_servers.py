"""A WebSocket server and a server of server-sent events, on loopback."""

from __future__ import annotations

import base64
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.connectors.certificates import Certificates
from tests.connectors.nats_server import free_port

LOGIN = "Basic " + base64.b64encode(b"me:se:cr@t").decode()


class WebSocketServer:
    """Sends what is in `messages` to each client, from `begin` on; with a login if it is locked."""

    def __init__(self, locked: bool = False, certificates: Certificates | None = None) -> None:
        pytest.importorskip("websockets", reason="websockets is missing: pip install '.[ws]'")
        self.messages: list[str | bytes] = []
        self.port, self.begin, self._locked, self._tls = free_port(), 0, locked, certificates
        self.start()

    def start(self) -> None:
        from websockets.sync.server import serve

        context = None
        if self._tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._tls.chain, self._tls.key)
        self._ends = threading.Event()
        self._server = serve(
            self._answer, "127.0.0.1", self.port, ssl=context, process_request=self._admit
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _admit(self, connection: Any, request: Any) -> Any:
        if self._locked and request.headers.get("Authorization") != LOGIN:
            return connection.respond(401, "")
        return None

    def _answer(self, connection: Any) -> None:
        ends, at = self._ends, self.begin
        while not ends.is_set():
            while at < len(self.messages):
                connection.send(self.messages[at])
                at += 1
            time.sleep(0.005)

    def stop(self) -> None:
        """End all connections; what is sent later begins behind the messages so far."""
        self._ends.set()
        self._server.shutdown()
        self.begin = len(self.messages)


class EventServer:
    """Sends the text of `chunks` to each client, from the one behind its Last-Event-ID on.

    The id of a chunk is its number, from 1, whether it says so or not.
    """

    def __init__(self, locked: bool = False, certificates: Certificates | None = None) -> None:
        self.chunks: list[bytes] = []
        self.asked: list[str | None] = []
        self.status, self.media_type = 200, "text/event-stream; charset=utf-8"
        self.port, self._locked, self._tls = free_port(), locked, certificates
        self.start()

    def start(self) -> None:
        server, ends = self, threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if server._locked and self.headers.get("Authorization") != LOGIN:
                    self.send_error(401)
                    return
                last = self.headers.get("Last-Event-ID")
                server.asked.append(last)
                self.send_response(server.status)
                self.send_header("Content-Type", server.media_type)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                at = int(last or 0)
                while not ends.is_set():
                    while at < len(server.chunks):
                        data = server.chunks[at]
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                        at += 1
                    self.wfile.flush()
                    time.sleep(0.005)
                self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self._ends = ends
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        if self._tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._tls.chain, self._tls.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._ends.set()
        self._server.shutdown()
        self._server.server_close()
