"""A server on loopback that answers every request with bytes that a test chooses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\n"

Talk = Callable[[socket.socket], None]
"""What the server does with a connection after it has read the head of the request."""


def saying(*pieces: bytes, pause_s: float = 0.0) -> Talk:
    """Sends the pieces, with a pause before each but the first."""

    def talk(sock: socket.socket) -> None:
        for number, piece in enumerate(pieces):
            if number:
                time.sleep(pause_s)
            sock.sendall(piece)

    return talk


def body(data: bytes, *headers: str) -> Talk:
    """A complete answer."""
    lines = "".join(f"{h}\r\n" for h in headers).encode()
    return saying(OK + lines + b"Content-Length: %d\r\n\r\n" % len(data) + data)


def redirect(place: str, status: int = 307) -> Talk:
    """A redirect to a place."""
    return saying(f"HTTP/1.1 {status} Moved\r\nLocation: {place}\r\n\r\n".encode())


@dataclass
class RawServer:
    """The connections get the `talks` in turn; the last one again and again."""

    port: int
    talks: Sequence[Talk]
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sparql"


@contextmanager
def talking(*talks: Talk) -> Iterator[RawServer]:
    """A server on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(listener.getsockname()[1], talks)

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_converse, args=(server, sock), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _converse(server: RawServer, sock: socket.socket) -> None:
    with sock:
        try:
            request = b""
            while b"\r\n\r\n" not in request or not _complete(request):
                piece = sock.recv(1 << 16)
                if not piece:
                    break
                request += piece
            talk = server.talks[min(len(server.requests), len(server.talks) - 1)]
            server.requests.append(request)
            talk(sock)
        except OSError:  # the client has given up
            pass


def _complete(request: bytes) -> bool:
    head, _, rest = request.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return len(rest) >= int(line.split(b":")[1])
    return True
