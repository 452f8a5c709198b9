"""WebSocket as a source, against a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.connectors import source_at
from spaseq.connectors.base import MessageSource
from spaseq.errors import InputError, UsageError
from tests.connectors.certificates import Certificates
from tests.connectors.hook import Hook
from tests.connectors.intake import ListIntake
from tests.connectors.nats_server import free_port
from tests.connectors.pushing_servers import WebSocketServer


@pytest.fixture
def server() -> Iterator[WebSocketServer]:
    made = WebSocketServer()
    yield made
    made.stop()


def source(server: WebSocketServer, login: str = "") -> MessageSource:
    return source_at(f"ws://{login}127.0.0.1:{server.port}/a/b?c=d%20e")


def test_text_and_bytes_come_in_order(server: WebSocketServer) -> None:
    server.messages = [f"{n} é" if n % 2 else b"%d" % n for n in range(3000)]
    intake = ListIntake(source(server))
    found = intake.wait(3000)
    intake.stop()
    assert [m.payload for m in found] == [
        f"{n} é".encode() if n % 2 else b"%d" % n for n in range(3000)
    ]
    assert intake.failure is None


def test_a_server_that_comes_back_is_read_again(server: WebSocketServer) -> None:
    server.messages = ["0", "1"]
    intake = ListIntake(source(server))
    intake.wait(2)
    server.stop()
    time.sleep(0.7)
    server.start()
    server.messages += ["2"]
    assert [m.payload for m in intake.wait(3)] == [b"0", b"1", b"2"]
    intake.stop()
    assert "connection lost" in intake.notes[0]
    assert "connected again" in intake.notes[-1]
    assert intake.is_connected


def test_a_message_of_10_mb_and_an_empty_one(server: WebSocketServer) -> None:
    large = b"x" * 10_000_000
    server.messages = [large, "", large]
    intake = ListIntake(source(server))
    assert [m.payload for m in intake.wait(3)] == [large, b"", large]
    intake.stop()


def test_a_reader_without_room_holds_the_server_back(server: WebSocketServer) -> None:
    server.messages = [b"x" * 10_000 for _ in range(5000)]
    intake = ListIntake(source(server), room=10)
    intake.wait(10)
    time.sleep(0.5)
    assert intake.refused
    assert len(intake.messages) < 5000
    intake.room = 10**9
    intake.wait(5000)
    intake.stop()


def test_users_and_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Certificates(tmp_path)
    server = WebSocketServer(locked=True, certificates=made)
    server.messages = ["a"]
    try:
        url = f"wss://me:se%3Acr%40t@localhost:{server.port}/"
        with pytest.raises(InputError, match="certificate"):
            ListIntake(source_at(url)).wait(1)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        intake = ListIntake(source_at(url))
        assert intake.wait(1)[0].payload == b"a"
        intake.stop()
        with pytest.raises(InputError, match="401") as caught:
            ListIntake(source_at(url.replace("cr", "wr0ng"))).wait(1)
        assert "wr0ng" not in str(caught.value)
    finally:
        server.stop()


def test_what_is_no_websocket_server_is_named() -> None:
    pytest.importorskip("websockets")
    port = free_port()
    with pytest.raises(InputError, match=f"no WebSocket server answers at 127.0.0.1:{port}"):
        ListIntake(source_at(f"ws://127.0.0.1:{port}/")).wait(1)
    other = Hook()
    with pytest.raises(InputError, match="the server answers 501"):
        ListIntake(source_at(f"ws://127.0.0.1:{other.port}/")).wait(1)
    other.close()
    with pytest.raises(UsageError, match="one host"):
        source_at("ws://a,b/")
