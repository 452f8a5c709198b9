"""The HTTP server: its socket, its protocol, its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from spaseq.errors import InputError, UsageError
from spaseq.serve.configuration import address_of

HEAD_S = 10.0
"""Maximum time of a client for the head of a request."""

_BACKLOG = 2048
"""Most connections that are taken at once, before they are counted; fewer if files are few."""

_TELL_S = 60.0
_LOG = logging.getLogger("spaseq")
_LAST_S = 5  # for requests that are under way when the server stops


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections on which the head of a request does not come to its end."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head; one connection too many is closed at once."""
        super().connection_made(transport)
        most = most_connections()
        if len(self.connections) > most:
            _refusals.tell(f"{most} connections are open; further ones are closed at once")
            transport.abort()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take data; wait on if it ends within a head."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait()
        elif self.cycle is not None:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_S, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class HttpServer(uvicorn.Server):
    """Serves one application until SIGINT or SIGTERM.

    `on_stop` is called at that moment, and `on_drained` when no request is under way any more, or
    none should be.
    """

    def __init__(
        self, config: uvicorn.Config, on_stop: Callable[[], None], on_drained: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_stop, self._on_drained = on_stop, on_drained

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal; further ones do not disturb the end, which is an ordinary one."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread gets signals
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the connections."""
        await super().shutdown(sockets)
        self._on_drained()

    def stop(self) -> None:
        """Begin to stop."""
        self.should_exit = True
        self._on_stop()


def bound_socket(listen: str) -> socket.socket:
    """A socket that listens on HOST:PORT; no request is served yet.

    Raises:
        UsageError: the address is invalid, or is not free.
    """
    host, port = address_of(listen)
    try:
        found_addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found_addresses[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the host is no name"
        raise UsageError(f"cannot listen on {listen}: {reason}") from error
    return listening


def url_of(listening: socket.socket, tls: bool) -> str:
    """The address of a server, for people."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http{'s' * tls}://{shown}:{port}"


def check_tls(cert: Path, key: Path) -> None:
    """InputError if a certificate and its key cannot be used."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"tls: cannot use {cert} with {key}: {error}") from None


def server_of(
    app: ASGIApp,
    tls: tuple[Path, Path] | None,
    on_stop: Callable[[], None],
    on_drained: Callable[[], None],
) -> HttpServer:
    """A server for an application."""
    cert, key = tls or (None, None)
    config = uvicorn.Config(
        _answering_the_last(app),
        http=ImpatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=min(_BACKLOG, max(1, _most_files() // 8)),
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_LAST_S,
        ssl_certfile=None if cert is None else str(cert),
        ssl_keyfile=None if key is None else str(key),
    )
    return HttpServer(config, on_stop, on_drained)


def _answering_the_last(app: ASGIApp) -> ASGIApp:
    """An application that answers 503 to requests that the end of the server cancels."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await app(scope, receive, noted)
        except asyncio.CancelledError:
            if has_begun:
                raise
            answer = {"error": "the server stops", "hint": "try again later"}
            await JSONResponse(answer, 503, {"Retry-After": "1"})(scope, receive, send)

    return answered


@contextlib.contextmanager
def answered_after(
    wait_s: float, app: ASGIApp, listening: socket.socket, tls: tuple[Path, Path] | None
) -> Iterator[None]:
    """Let an application answer on a socket, if this context lasts longer than a time.

    The socket stays open; requests that come earlier wait for who serves it next.
    """
    ended, server = threading.Event(), server_of(app, tls, lambda: None, lambda: None)

    def answer() -> None:
        if not ended.wait(wait_s):
            asyncio.run(server.serve(sockets=[listening.dup()]))

    answering = threading.Thread(target=answer, name="starting", daemon=True)
    answering.start()
    try:
        yield
    finally:
        ended.set()
        server.stop()
        answering.join()


def more_connections() -> None:
    """Let the process have as many connections as it may."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections() -> int:
    """Maximum number of open connections: three quarters of the process's limit on files."""
    return _most_files() - _most_files() // 4


def _most_files() -> int:
    """The limit on open files of the process, or a million if there is none."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft != resource.RLIM_INFINITY:
            return soft
    return 2**20


class _Refusals:
    """Reports refused requests, at most once a minute."""

    def __init__(self) -> None:
        self._told = -_TELL_S

    def tell(self, text: str) -> None:
        if time.monotonic() - self._told >= _TELL_S:
            self._told = time.monotonic()
            _LOG.warning("%s", text)


_refusals = _Refusals()
