"""Servers of this process, on loopback, and what their subscribers get."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve import http_server, server
from spaseq.serve.assembly import parts_of
from spaseq.serve.configuration import read_configuration
from spaseq.serve.http_server import bound_socket, url_of

NQUADS = {"Content-Type": "application/n-quads"}

CONFIGURATION = """
[server]
data = "state"
sync = "1 MILLISECONDS"
max_body = "100 KB"
{more}
[queries]
directory = "queries"
[streams.S]
iri = "http://e/s"
"""


def event(number: int, value: str | None = None) -> str:
    """An event with one value, `number` seconds after the beginning of 2026."""
    name = f"<http://e/g{number}>"
    minute, second = divmod(number, 60)
    hour, minute = divmod(minute, 60)
    return (
        f'<http://e/x> <http://e/p> "{number if value is None else value}" {name} .\n'
        f"{name} <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"2026-01-01T{hour:02}:{minute:02}:{second:02}Z"'
        "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
    )


@dataclass
class Served:
    url: str
    run: StandingRun
    queries: Path
    http: httpx.Client

    def post(self, text: str | bytes, **headers: str) -> httpx.Response:
        """Post N-Quads to the stream S."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post("/streams/S", content=text, headers={**NQUADS, **named})

    def feed(self, first: int, end: int) -> None:
        """Post the events with these numbers."""
        for some in range(first, end, 400):
            text = "".join(map(event, range(some, min(end, some + 400))))
            assert self.post(text).json()["accepted"] == min(end, some + 400) - some

    def connect(self) -> socket.socket:
        """A connection without a request."""
        host, port = self.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), timeout=20)


@contextmanager
def served(directory: Path, more: str = "", stream: str = "") -> Iterator[Served]:
    """A server with the stream S; `more` goes into `[server]`, `stream` behind the stream's IRI."""
    path = directory / "spaseq.toml"
    path.write_text(CONFIGURATION.format(more=more) + stream)
    parts = parts_of(read_configuration(path, {}), directory)
    listening = bound_socket("127.0.0.1:0")
    url = url_of(listening, False)
    made: list[tuple[http_server.HttpServer, asyncio.AbstractEventLoop]] = []
    real = server.server_of

    def kept(*given: Any) -> http_server.HttpServer:
        own = real(*given)
        made.append((own, asyncio.get_running_loop()))
        return own

    with (
        mock.patch.object(server, "server_of", kept),
        httpx.Client(base_url=url, timeout=30) as http,
    ):
        thread = threading.Thread(target=server.serve, args=(parts, listening), daemon=True)
        thread.start()
        try:
            http.get("/live", timeout=30)  # the socket waits until somebody is served
            yield Served(url, parts.run, parts.queries, http)
        finally:
            wait(lambda: made)
            stopped, loop = made[0]
            loop.call_soon_threadsafe(stopped.stop)
            thread.join(30)
            assert not thread.is_alive()


SLOW_S = 0.05


@contextmanager
def no_slow_callbacks() -> Iterator[None]:
    """Servers whose event loops, in debug mode, run no callback longer than `SLOW_S`.

    It is the CPU time of the loop's thread that counts: others may keep the machine busy. The
    collection of garbage does not count: most of what it visits belongs to other tests.
    """
    slow, run = list[str](), asyncio.Handle._run  # type: ignore[attr-defined]
    collecting = dict[int, float]()

    def collected(phase: str, _: dict[str, int]) -> None:
        thread, now = threading.get_ident(), time.thread_time()
        collecting[thread] = collecting.get(thread, 0.0) + (-now if phase == "start" else now)

    def timed(handle: asyncio.Handle) -> None:
        thread = threading.get_ident()
        before = collecting.get(thread, 0.0)
        began = time.thread_time()
        run(handle)
        took = time.thread_time() - began - (collecting.get(thread, 0.0) - before)
        if took > SLOW_S:
            slow.append(f"{took:.3f} s: {handle!r}")

    gc.callbacks.append(collected)
    try:
        with (
            mock.patch.dict("os.environ", PYTHONASYNCIODEBUG="1"),
            mock.patch.object(asyncio.Handle, "_run", timed),
        ):
            yield
    finally:
        gc.callbacks.remove(collected)
    assert not slow, slow


def wait(true: Callable[[], Any], seconds: float = 20) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.05)


@contextmanager
def subscribed(url: str, query: str, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    """The server-sent events of a query's answers, as dicts."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with (
        httpx.Client(base_url=url, timeout=20) as client,
        client.stream(
            "GET", f"/queries/{query}/answers", headers={"Accept": "text/event-stream", **named}
        ) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        assert next(lines).startswith(":")  # from here on it is subscribed
        yield _events(lines)


def _events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(": ")
        if not line:
            if found:
                yield found
            found = {}
        elif name and colon:
            found[name] = value
