"""Server-sent events as a source, against a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.connectors import source_at
from spaseq.connectors.base import MessageSource
from spaseq.connectors.server_sent_events import EventStreamParser
from spaseq.errors import InputError
from tests.connectors.certificates import Certificates
from tests.connectors.intake import ListIntake
from tests.connectors.nats_server import free_port
from tests.connectors.pushing_servers import EventServer


@pytest.fixture
def server() -> Iterator[EventServer]:
    made = EventServer()
    yield made
    made.stop()


def source(server: EventServer, login: str = "") -> MessageSource:
    return source_at(f"sse+http://{login}127.0.0.1:{server.port}/a?b=c")


def chunk(number: int) -> bytes:
    return b"id: %d\ndata: %d\n\n" % (number, number)


def test_events_come_in_order_with_their_types(server: EventServer) -> None:
    server.chunks = [b": hello\n\n", b"event: speed\ndata: {\n", b"data: }\n\ndata: 2\n\n"]
    server.chunks += [chunk(n) for n in range(4, 2000)]
    intake = ListIntake(source(server))
    found = intake.wait(1998)
    intake.stop()
    assert [m.payload for m in found] == [b"{\n}", b"2", *(b"%d" % n for n in range(4, 2000))]
    assert [m.topic for m in found[:2]] == ["speed", "message"]
    assert intake.marks == {"Last-Event-ID": "1999"}


def test_a_source_goes_on_behind_the_logged_id(server: EventServer) -> None:
    server.chunks = [chunk(n) for n in range(1, 8)]
    intake = ListIntake(source(server), marks={"Last-Event-ID": "5"})
    assert [m.payload for m in intake.wait(2)] == [b"6", b"7"]
    intake.stop()
    assert server.asked == ["5"]


def test_a_server_that_comes_back_loses_and_repeats_nothing(server: EventServer) -> None:
    server.chunks = [b"retry: 700\n" + chunk(1), chunk(2)]
    intake = ListIntake(source(server))
    intake.wait(2)
    server.stop()
    time.sleep(0.7)
    server.chunks += [chunk(3)]
    server.start()
    assert [m.payload for m in intake.wait(3)] == [b"1", b"2", b"3"]
    time.sleep(0.2)
    begin = time.monotonic()
    intake.stop()
    assert time.monotonic() - begin < 5
    assert server.asked == [None, "2"]
    assert "connection lost" in intake.notes[0]
    assert "connected again" in intake.notes[-1]
    assert intake.is_connected
    assert len(intake.messages) == 3


def test_an_event_of_10_mb(server: EventServer) -> None:
    large = b"x" * 10_000_000
    server.chunks = [b"data: %b\n\n" % large, chunk(2)]
    intake = ListIntake(source(server))
    assert [m.payload for m in intake.wait(2)] == [large, b"2"]
    intake.stop()


def test_users_and_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Certificates(tmp_path)
    server = EventServer(locked=True, certificates=made)
    server.chunks = [chunk(1)]
    try:
        url = f"sse+https://me:se%3Acr%40t@localhost:{server.port}/"
        with pytest.raises(InputError, match="certificate"):
            ListIntake(source_at(url)).wait(1)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        intake = ListIntake(source_at(url))
        assert intake.wait(1)[0].payload == b"1"
        intake.stop()
        with pytest.raises(InputError, match="401") as caught:
            ListIntake(source_at(url.replace("cr", "wr0ng"))).wait(1)
        assert "wr0ng" not in str(caught.value)
    finally:
        server.stop()


def test_what_is_no_stream_of_events_is_named(server: EventServer) -> None:
    port = free_port()
    with pytest.raises(InputError, match=f"no HTTP server answers at 127.0.0.1:{port}"):
        ListIntake(source_at(f"sse+http://127.0.0.1:{port}/")).wait(1)
    server.media_type = "text/html"
    with pytest.raises(InputError, match="200 with text/html"):
        ListIntake(source(server)).wait(1)
    server.status = 404
    with pytest.raises(InputError, match="404"):
        ListIntake(source(server)).wait(1)


STREAM = (
    "\ufeffdata: first\r\n\r\n: comment\nid: 1\rdata:second\rdata\r\rid: 2\n\n"
    "event: x\ndata: third\nretry: 50\nid: a\0b\n\nevent: y\n\ndata: é\n\ndata: incomplete\n"
).encode()
EVENTS = [
    (b"first", "message", ""),
    (b"second\n", "message", "1"),
    (b"third", "x", "2"),
    ("é".encode(), "message", "2"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_events_are_the_same_however_the_stream_is_cut(places: list[int]) -> None:
    """The expected events follow from the algorithm of the HTML standard, by hand."""
    edges = [0, *sorted(places), len(STREAM)]
    parser, found = EventStreamParser(), []
    for begin, end in pairwise(edges):
        found += [(e.data, e.type, e.id) for e in parser.feed(STREAM[begin:end])]
    assert found == EVENTS
    assert parser.retry_ms == 50


def test_an_id_beyond_latin_1_is_sent_back_as_utf_8(server: EventServer) -> None:
    intake = ListIntake(source(server), marks={"Last-Event-ID": "łódź 5"})
    end = time.monotonic() + 20
    while not server.asked and time.monotonic() < end:
        time.sleep(0.02)
    intake.stop()
    assert [asked and asked.encode("latin-1").decode() for asked in server.asked] == ["łódź 5"]
