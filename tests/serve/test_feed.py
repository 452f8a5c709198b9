"""The feed of all answers: filters, what queries say about themselves, acknowledgements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.servers import Served, served, wait

QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)
JAM = f"# title: Jam\n# severity: critical\n{QUERY}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        found.http.put("/queries/jam", content=JAM)
        found.http.put("/queries/calm", content=QUERY.replace("1 HOURS", "2 HOURS"))
        found.feed(0, 6)
        wait(lambda: len(feed(found)) == 10)
        yield found


def feed(server: Served, **asked: object) -> list[dict[str, Any]]:
    reply = server.http.get("/answers", params={k: str(v) for k, v in asked.items()})
    assert reply.status_code == 200, reply.text
    return [json.loads(line) for line in reply.text.splitlines()]


def test_all_answers_with_what_their_queries_say(server: Served) -> None:
    found = feed(server)
    jam, calm = ([a for a in found if a["name"] == name] for name in ("jam", "calm"))
    assert {(a["title"], a["severity"]) for a in jam} == {("Jam", "critical")}
    assert {(a["title"], a["severity"]) for a in calm} == {(None, None)}
    assert feed(server, limit=3) == found[-3:]
    assert feed(server, after=found[2]["id"], limit=4) == found[3:7]
    assert feed(server, query="ja*") == feed(server, severity="critical") == jam
    assert feed(server, query="c*", severity="critical") == []
    assert server.http.get("/answers?after=0123").status_code == 410
    assert server.http.get("/answers?limit=no").status_code == 400


def test_an_acknowledgement_is_shown_also_after_a_restart(server: Served, tmp_path: Path) -> None:
    first = feed(server)[0]["id"]
    given = server.http.post(f"/answers/{first}/acknowledge", json={"note": "on it"})
    assert given.status_code == 200
    shown = feed(server)[0]["acknowledged"]
    assert shown == given.json()["acknowledged"] and shown["note"] == "on it"
    assert shown["who"] == "local" and feed(server)[1]["acknowledged"] is None
    assert server.http.post(f"/answers/{'0' * 32}/acknowledge").status_code == 404
    wrong = server.http.post(f"/answers/{first}/acknowledge", json={"nte": 1})
    assert wrong.status_code == 400
    last = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["target"] == first


def test_the_event_stream_goes_on(server: Served) -> None:
    with (
        httpx.Client(base_url=server.url, timeout=20) as client,
        client.stream("GET", "/answers", headers={"Accept": "text/event-stream"}) as reply,
    ):
        lines = reply.iter_lines()
        next(lines)
        server.feed(6, 8)
        data = (line[6:] for line in lines if line.startswith("data: "))
        found = [json.loads(next(data)) for _ in range(4)]
    assert sorted(a["bindings"]["v"]["value"] for a in found) == ["5", "5", "6", "6"]
    assert {a["title"] for a in found} == {"Jam", None}
