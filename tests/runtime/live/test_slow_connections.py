"""A stream is not idle before the connection to its source stands."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.live_run import LoggedRun
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.live.live_jobs import event, lines

FAST, SLOW = "http://example/fast", "http://example/slow"
UNANSWERED = f"""SELECT ?x WITHIN 10 SECONDS FROM STREAM F <{FAST}> FROM STREAM G <{SLOW}>
WHERE {{ SEQ(A; B!)
  DEFINE GPM A ON F {{ ?x <http://example/is> "asked" }}
  DEFINE GPM B ON G {{ ?x <http://example/is> "answered" }} }}"""

IDLE_S = 0.5
ASKED = event(3, 0, "x", "asked") + event(4, 30_000, "y", "none")
ANSWERED = event(1, 5_000, "x", "answered") + event(2, 40_000, "y", "answered")


class PausingServer(threading.Thread):
    """Sends server-sent events to one client, some time after it came."""

    def __init__(self, events: bytes, pause_s: float) -> None:
        super().__init__(daemon=True)
        self._events, self._pause_s = events, pause_s
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"sse+http://127.0.0.1:{self._socket.getsockname()[1]}/events"
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            client, _ = self._socket.accept()
            with client:
                time.sleep(self._pause_s)
                data = b"".join(b"data: %s\n" % line for line in self._events.splitlines())
                client.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + data + b"\n"
                )
                while client.recv(1000):
                    pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def servers() -> Iterator[list[PausingServer]]:
    """Of the fast stream and the slow one."""
    made = [PausingServer(ASKED, 0), PausingServer(ANSWERED, 3 * IDLE_S)]
    yield made
    for server in made:
        server.close()


def test_a_connection_that_takes_longer_than_idle(
    tmp_path: Path, servers: list[PausingServer]
) -> None:
    """What comes over it takes an answer away, and is not late."""
    urls = [(iri, server.url) for iri, server in zip((FAST, SLOW), servers, strict=True)]
    sources = tuple(BrokerStream(StreamOptions(iri, ()), url) for iri, url in urls)
    late, stop = list[object](), threading.Event()
    plans = (compile_query(UNANSWERED, "q"),)
    job = Job(plans, sources, KnowledgeBase.empty(), on_late=lambda *given: late.append(given))
    settings = FileSourceSettings(idle_ms=int(IDLE_S * 1000), heartbeat_ms=100, max_ahead_ms=10**15)
    options, out = FollowOptions(tmp_path / "state", settings), str(tmp_path / "out.jsonl")
    given = {"out": out, "form": "jsonl", "columns": ["x"]}
    run = threading.Thread(target=LoggedRun(stop=stop).run, args=(job, options), kwargs=given)
    run.start()
    end = time.monotonic() + 60
    while job.stats.events < 4 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(2 * IDLE_S)
    stop.set()
    run.join()
    assert (job.stats.events, late, lines(Path(out))) == (4, [], [])
