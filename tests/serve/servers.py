"""Servers of this process, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from spaseq.diagnosis.report import Report
from spaseq.logs.stream_log import Message
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.runtime.live.message_events import message_events
from spaseq.serve import http_server, server
from spaseq.serve.guard import Access
from spaseq.serve.kept_replies import KeptReplies
from spaseq.serve.posted_events import PostedStream
from tests.serve.stand_in import StandIn


@dataclass
class Served:
    url: str
    run: StandIn
    queries: Path
    http: httpx.Client


def _events(messages: Sequence[Message], on_bad: OnBad) -> Any:
    return message_events(messages, StreamOptions("http://e/s", ()), "POST", on_bad)


@contextmanager
def served(directory: Path, run: StandIn | None = None, **more: Any) -> Iterator[Served]:
    """A server with one stream S; `more` goes to its parts."""
    run = run or StandIn()
    listening = http_server.bound_socket("127.0.0.1:0")
    url = http_server.url_of(listening, False)
    made: list[http_server.HttpServer] = []
    real = server.server_of

    def kept(*given: Any) -> http_server.HttpServer:
        made.append(real(*given))
        return made[0]

    parts = {
        "run": run,
        "queries": directory / "queries",
        "access": Access("127.0.0.1"),
        "posted": {"S": PostedStream("S", _events, GENERATED_AT_TIME)},
        "replies": KeptReplies(3_600_000),
        "why": lambda query, event: Report(0),
        "max_body": 100_000,
        **more,
    }
    with mock.patch.object(server, "server_of", kept), httpx.Client(base_url=url) as http:
        thread = threading.Thread(
            target=server.serve, args=(server.ServerParts(**parts), listening), daemon=True
        )
        thread.start()
        try:
            yield Served(url, run, directory / "queries", http)
        finally:
            made[0].stop()
            thread.join(20)
            assert not thread.is_alive()
