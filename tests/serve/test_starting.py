"""A server that reads its state for long answers that it starts, and at its end that it stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
from starlette.types import Receive, Scope, Send

from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve import http_server, server
from spaseq.serve.assembly import parts_of
from spaseq.serve.configuration import read_configuration
from spaseq.serve.http_server import bound_socket, url_of
from tests.serve.servers import CONFIGURATION, NQUADS, event, wait


@contextmanager
def starting(directory: Path, read: threading.Event) -> Iterator[httpx.Client]:
    """A server that has read its state once an event is set."""
    real = StandingRun.start

    def start(run: StandingRun, **given: Any) -> None:
        read.wait(60)
        real(run, **given)

    path = directory / "spaseq.toml"
    path.write_text(CONFIGURATION.format(more=""))
    parts = parts_of(read_configuration(path, {}), directory)
    listening = bound_socket("127.0.0.1:0")
    thread = threading.Thread(target=server.serve, args=(parts, listening), daemon=True)
    with (
        mock.patch.object(StandingRun, "start", start),
        httpx.Client(base_url=url_of(listening, False), timeout=30) as http,
    ):
        thread.start()
        yield http
        parts.run.stop()
        thread.join(30)
        assert not thread.is_alive()


def post(http: httpx.Client) -> httpx.Response:
    return http.post("/streams/S", content=event(1), headers=NQUADS)


def test_requests_are_answered_while_the_state_is_read(tmp_path: Path) -> None:
    read = threading.Event()
    with mock.patch.object(server, "_BEGIN_S", 0.01), starting(tmp_path, read) as http:
        assert http.get("/live").status_code == 200
        health = http.get("/health")
        assert (health.status_code, health.json()) == (503, {"status": "starting"})
        refused = post(http)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json().keys() == {"error", "hint"}
        read.set()
        wait(lambda: http.get("/health").status_code == 200)
        assert post(http).json()["accepted"] == 1


def test_requests_wait_while_a_short_start_lasts(tmp_path: Path) -> None:
    read = threading.Event()
    with starting(tmp_path, read) as http:
        threading.Timer(0.3, read.set).start()
        assert post(http).json()["accepted"] == 1


def test_a_request_that_outlasts_the_server_is_answered() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.sleep(60)

    listening = bound_socket("127.0.0.1:0")
    with mock.patch.object(http_server, "_LAST_S", 0.1):
        stopped = http_server.server_of(endless, None, lambda: None, ended.set)
    serving = threading.Thread(
        target=lambda: asyncio.run(stopped.serve(sockets=[listening])), daemon=True
    )
    serving.start()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(httpx.get, url_of(listening, False), timeout=30)
        assert begun.wait(30)
        stopped.stop()
        answer = asked.result()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json()["error"] == "the server stops"
    assert ended.wait(30)
    serving.join(30)
