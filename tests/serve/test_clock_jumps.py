"""A server whose wall clock jumps: nothing is told twice or missing, health says so."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest

from tests.serve.commands import NQUADS
from tests.serve.processes import Command, spaseq
from tests.serve.servers import wait

pytestmark = pytest.mark.thorough

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HOUR = 3600
CONFIGURATION = """[server]
data = "state"
[queries]
directory = "queries"
[streams.S]
iri = "http://e/s"
time = "arrival"
heartbeat = "100 MILLISECONDS"
"""
EACH = """PREFIX : <http://e/>
SELECT ?v WITHIN 2 HOURS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { :x :p ?v } }"""
SILENT = """PREFIX : <http://e/>
SELECT ?v WITHIN 300 MILLISECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(H; N!) DEFINE GPM H ON S { :x :p ?v } DEFINE GPM N ON S { :x :p ?w } }"""


class Clock:
    """What the server takes for the wall clock: the real one and an offset in seconds."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "clock"
        self.set(0)

    def set(self, offset: int) -> None:
        """Make the clock jump."""
        new = self._path.with_suffix(".new")
        new.write_text(f"{offset:+d}\n")
        new.replace(self._path)

    def variables(self) -> dict[str, str]:
        """The environment of a process with this clock."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


def found(http: httpx.Client, query: str) -> list[Any]:
    """The answers of a query so far."""
    return [*map(json.loads, http.get(f"/queries/{query}/answers").text.splitlines())]


def values(http: httpx.Client, query: str) -> list[int]:
    """The values of ?v in these."""
    return [int(answer["bindings"]["v"]["value"]) for answer in found(http, query)]


def as_key(answer: Any) -> tuple[str, ...]:
    """What an answer says: its query, event and time."""
    (item,) = answer["trace"]
    return answer["query"], item["event"], answer["start"], answer["end"]


def post(http: httpx.Client, *numbers: int) -> None:
    """Post events with these values."""
    for n in numbers:
        text = f'<http://e/x> <http://e/p> "{n}" <http://e/g{n}> .\n'
        reply = http.post("/streams/S", content=text, headers=NQUADS).json()
        assert reply == {"accepted": 1, "bad": [], "late": 0}


def clock_problems(http: httpx.Client) -> list[str]:
    """What health says of the clock."""
    return [p for p in http.get("/health").json()["problems"] if "clock" in p]


def go_back(http: httpx.Client, clock: Clock) -> None:
    """An hour back: time stands still, so no silence ends."""
    post(http, 1)
    wait(lambda: values(http, "silent") == [1])
    assert http.get("/health").status_code == 200
    clock.set(-HOUR)
    (problem,) = clock_problems(http)
    assert "gone back by 3" in problem  # 3,600 s, or a little less
    assert http.get("/health").status_code == 503
    post(http, 2, 3)
    time.sleep(0.6)
    assert values(http, "silent") == [1]


def go_forth(http: httpx.Client, clock: Clock) -> None:
    """Forth to the right time, an hour ahead of it, back, and ahead once more."""
    assert clock_problems(http)  # a restart knows that the clock has gone back
    post(http, 4)
    clock.set(0)
    wait(lambda: not clock_problems(http))
    wait(lambda: 4 in values(http, "silent"))
    clock.set(HOUR)
    post(http, 5)
    wait(lambda: 5 in values(http, "silent"))
    assert not clock_problems(http)
    clock.set(0)
    assert clock_problems(http)
    post(http, 6)
    clock.set(HOUR)
    wait(lambda: 6 in values(http, "silent"))
    wait(lambda: len(values(http, "each")) >= 6)
    time.sleep(0.5)


@pytest.mark.skipif(not LIBRARY.exists(), reason=f"libfaketime is not installed ({LIBRARY})")
def test_a_clock_that_goes_back_and_forth_an_hour(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "each.rq").write_text(EACH)
    (tmp_path / "queries" / "silent.rq").write_text(SILENT)
    (tmp_path / "spaseq.toml").write_text(CONFIGURATION)
    clock = Clock(tmp_path)
    with mock.patch.dict(os.environ, clock.variables()):
        server = Command(tmp_path / "spaseq.toml")
        try:
            with server.client() as http:
                go_back(http, clock)
            server.kill()
            server = Command(tmp_path / "spaseq.toml")
            with server.client() as http:
                go_forth(http, clock)
                assert values(http, "each") == [1, 2, 3, 4, 5, 6]
                # 2, 3 and 4 have one time: they follow each other as they stand in the stream
                assert values(http, "silent") == [1, 4, 5, 6]
                given = [answer for q in ("each", "silent") for answer in found(http, q)]
                assert http.get("/streams").json()[0]["late"] == 0
            assert server.end() == 0
        finally:
            server.kill()
    assert "Traceback" not in "".join(server.lines)
    replay = spaseq("run", "--logs", str(tmp_path / "state"), "--runtime", "local")
    assert replay.returncode == 0, replay.stderr
    again = [*map(json.loads, replay.stdout.splitlines())]
    assert sorted(map(as_key, again)) == sorted(map(as_key, given))
    assert len({answer["id"] for answer in given}) == len(given) == 10
