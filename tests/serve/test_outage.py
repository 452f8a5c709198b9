"""A receiver that is away for an hour, and back, on a clock that goes 1,200 times as fast."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from spaseq.back_off import BackOff
from spaseq.runtime.live import answer_records, delivery
from tests.connectors.hook import Hook
from tests.serve.servers import served, wait

SCALE = 1200
HOUR_S = 3600 / SCALE
QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)
BEGAN = time.time()


def fast() -> float:
    """The time of the fast clock, s since the epoch."""
    return BEGAN + (time.time() - BEGAN) * SCALE


class FastBackOff(BackOff):
    def failed(self) -> float:
        return super().failed() / SCALE


@pytest.fixture
def fast_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=fast, monotonic=fast)
    monkeypatch.setattr(delivery, "time", clock)
    monkeypatch.setattr(delivery, "BackOff", FastBackOff)
    monkeypatch.setattr(answer_records, "time", clock)


def port_of_nobody() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.usefixtures("fast_clock")
def test_an_hour_away(tmp_path: Path) -> None:
    port = port_of_nobody()
    sinks = f"""
[sinks.patient]
to = "http://127.0.0.1:{port}/patient"
[sinks.hasty]
to = "http://127.0.0.1:{port}/hasty"
keep = "20 MINUTES"
[sinks.file]
to = "out.jsonl"
"""
    with served(tmp_path, stream=sinks) as server:
        server.http.put("/queries/jam", content=QUERY)
        server.http.timeout = httpx.Timeout(60)
        server.feed(0, 5)
        wait(lambda: server.http.get("/health").status_code == 503, 60)
        began, fed = time.monotonic(), 5
        while time.monotonic() - began < HOUR_S:
            server.feed(fed, fed + 5)
            fed += 5
            time.sleep(HOUR_S / 12)
        assert server.http.get("/health").status_code == 503
        wait(lambda: server.http.get("/queries/jam").json()["answers"] == fed - 1, 60)
        hook = Hook(port)
        hook.statuses = [503, 500, 503]  # it takes an answer, and does not say so
        back = fast()
        server.feed(fed, fed + 5)
        count = fed + 4
        out = tmp_path / "out.jsonl"
        wait(lambda: out.read_text().count("\n") == count)
        every = [json.loads(line)["id"] for line in out.read_text().splitlines()]

        def taken(path: str) -> list[str]:
            return [h["Idempotency-Key"] for p, h, _ in hook.requests if p == path]

        wait(lambda: {*taken("/patient")} == {*every}, 60)
        failed_file = tmp_path / "state" / "failed" / "hasty.jsonl"

        def failed() -> list[str]:
            lines = failed_file.read_text().splitlines() if failed_file.exists() else []
            return [json.loads(line)["answer"]["id"] for line in lines]

        wait(lambda: len({*taken("/hasty")}) + len(failed()) == count, 60)
        wait(lambda: server.http.get("/health").status_code == 200)
        logged = server.run.answers
        ages = {name: back - logged.find("jam", name).logged_ms / 1000 for name in every}
        requests = len(hook.requests)
    hook.close()
    # None lost, none twice but with its id again, in order.
    assert [*dict.fromkeys(taken("/patient"))] == every
    assert requests == len(hook.requests) <= 2 * count + 3
    # None past `keep`, and what was given up is in failed/ with its reason.
    late = failed()
    assert late and {*late}.isdisjoint(taken("/hasty")) and {*late, *taken("/hasty")} == {*every}
    assert late == every[: len(late)]
    assert all(ages[name] < 20 * 60 for name in taken("/hasty")[1:] if ages[name] > 0)
