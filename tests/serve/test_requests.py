"""The requests, one by one, over HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from spaseq.errors import RunError
from spaseq.serve import bodies, http_server
from spaseq.serve.guard import Access
from tests.serve.servers import Served, served

QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)
EVENT = (
    '<http://e/x> <http://e/p> "1" <http://e/g{0}> .\n'
    '<http://e/g{0}> <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:0{0}Z"'
    "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
)
NQUADS = {"Content-Type": "application/n-quads"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        yield found


# --- queries --------------------------------------------------------------------------------------


def test_a_query_comes_changes_and_goes(server: Served) -> None:
    http = server.http
    assert http.get("/queries").json() == []
    added = http.put("/queries/jam", content=QUERY)
    assert (added.status_code, added.json()["changed"]) == (201, True)
    same = http.put("/queries/jam", content=QUERY.replace(" ", "  "))
    assert (same.status_code, same.json()["changed"]) == (200, False)
    other = http.put("/queries/jam", content=QUERY.replace("1 HOURS", "2 HOURS"))
    assert (other.status_code, other.json()["changed"]) == (200, True)
    (listed,) = http.get("/queries").json()
    assert listed.keys() == {
        "name", "state", "since", "streams", "answers", "live", "reason"
    }  # fmt: skip
    assert (server.queries / "jam.rq").read_text() == QUERY.replace("1 HOURS", "2 HOURS")
    gone = http.delete("/queries/jam")
    assert (gone.status_code, gone.content) == (204, b"")
    assert http.get("/queries").json() == []
    assert not (server.queries / "jam.rq").exists()
    assert http.delete("/queries/jam").status_code == 404


def test_a_query_with_mistakes_is_refused_with_all_of_them(server: Served) -> None:
    found = server.http.put("/queries/jam", content="SELECT ?v WITHIN 1 HUORS")
    assert found.status_code == 400
    body = found.json()
    assert body["error"]
    assert {"severity", "code", "message", "line", "column", "suggestion"} <= {
        *body["diagnostics"][0]
    }
    assert server.http.get("/queries/jam").status_code == 404
    assert not list(server.queries.iterdir())


@pytest.mark.parametrize("name", [".jam", "-jam", "a b", "ä", "a" * 101, "..%2fjam"])
def test_a_name_that_is_none(server: Served, name: str) -> None:
    found = server.http.put(f"/queries/{name}", content=QUERY)
    assert found.status_code in (400, 404)
    assert {"error", "hint"} <= found.json().keys()
    assert not list(server.queries.iterdir())


def test_from_is_a_date_time_or_milliseconds(server: Served) -> None:
    for text in ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00%2B01:00", "1767225600000"):
        assert server.http.put(f"/queries/q?from={text}", content=QUERY).status_code == 201
        assert server.http.get("/queries").json()[0]["since"] == "2026-01-01T00:00:00Z"
        server.http.delete("/queries/q")
    assert server.http.put("/queries/q?from=soon", content=QUERY).status_code == 400


def test_a_query_has_its_text_plan_automaton_and_drawing(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    found = server.http.get("/queries/jam").json()
    assert found["text"] == QUERY
    assert found["plan"]["window"]["ms"] == 3_600_000
    assert [state["label"] for state in found["automaton"]["states"]] == ["", "A"]
    assert found["automaton"]["edges"][0].keys() >= {"from", "to", "count"}
    svg = server.http.get("/queries/jam/automaton.svg")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert svg.text.startswith("<svg")
    assert server.http.get("/queries/other/automaton.svg").status_code == 404


def test_restart_is_for_queries_that_failed(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    assert server.http.post("/queries/jam/restart").status_code == 409
    server.run.fail("jam")
    assert server.http.get("/queries").json()[0]["reason"] == "it is tired"
    assert server.http.post("/queries/jam/restart").status_code == 200
    assert server.http.post("/queries/other/restart").status_code == 404


def test_a_text_is_checked_without_running(server: Served) -> None:
    assert server.http.post("/check", content=QUERY).json() == {"diagnostics": []}
    found = server.http.post("/check", content=QUERY.replace("ON S {", "ON T {")).json()
    assert any(each["severity"] == "error" for each in found["diagnostics"])
    assert server.http.get("/queries").json() == []


def test_files_that_come_change_and_go(server: Served) -> None:
    path = server.queries / "jam.rq"
    path.write_text(QUERY)
    wait(lambda: [q["name"] for q in server.http.get("/queries").json()] == ["jam"])
    path.write_text("no query")
    (server.queries / "other.rq").write_text(QUERY)
    wait(lambda: len(server.http.get("/queries").json()) == 2)
    assert server.http.get("/queries/jam").json()["text"] == QUERY  # the one that runs goes on
    path.unlink()
    wait(lambda: [q["name"] for q in server.http.get("/queries").json()] == ["other"])


# --- answers --------------------------------------------------------------------------------------


def test_answers_are_lines_oldest_first(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    server.run.answers.give("jam", *(f"a{n}" for n in range(2500)))

    def ids(**given: Any) -> list[str]:
        found = server.http.get("/queries/jam/answers", params=given)
        assert found.status_code == 200
        return [json.loads(line)["id"] for line in found.text.splitlines()]

    assert ids() == [f"a{n}" for n in range(1000)]
    assert ids(after="a2497") == ["a2498", "a2499"]
    assert ids(after="a2499") == []
    assert ids(limit=2400) == [f"a{n}" for n in range(2400)]
    assert ids(after="a5", limit=2) == ["a6", "a7"]
    assert server.http.get("/queries/jam/answers?after=x").status_code == 410
    assert server.http.get("/queries/jam/answers?limit=0").status_code == 400
    assert server.http.get("/queries/other/answers").status_code == 404


def test_a_subscriber_gets_answers_from_now_on(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    server.run.answers.give("jam", "old")
    with subscriber(server) as events:
        server.run.answers.give("jam", "new1", "new2")
        assert [next(events)["id"] for _ in range(2)] == ["new1", "new2"]
        server.http.delete("/queries/jam")
        assert next(events)["event"] == "end"
        assert next(events, None) is None


def test_a_subscriber_goes_on_after_the_last_event(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    server.run.answers.give("jam", *(f"a{n}" for n in range(5000)))
    with subscriber(server, {"Last-Event-ID": "a9"}) as events:
        assert [next(events)["id"] for _ in range(4990)] == [f"a{n}" for n in range(10, 5000)]
        server.run.answers.give("jam", "b")
        found = next(events)
        assert (found["id"], json.loads(found["data"])["id"]) == ("b", "b")
    gone = {"Accept": "text/event-stream", "Last-Event-ID": "x"}
    assert server.http.get("/queries/jam/answers", headers=gone).status_code == 410


def test_a_slow_subscriber_loses_nothing_and_holds_up_nobody(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    with subscriber(server) as slow, subscriber(server) as fast:
        for block in range(20):
            server.run.answers.give("jam", *(f"{block}-{n}-{'x' * 500}" for n in range(500)))
            for n in range(500):
                assert next(fast)["id"].startswith(f"{block}-{n}-")
        found = [next(slow)["id"].rpartition("-")[0] for _ in range(10_000)]
    assert found == [f"{block}-{n}" for block in range(20) for n in range(500)]


@pytest.mark.thorough
def test_a_thousand_idle_subscribers(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    http_server.more_connections()
    host, port = server.url.removeprefix("http://").split(":")
    request = (
        f"GET /queries/jam/answers HTTP/1.1\r\nHost: {host}:{port}\r\n"
        "Accept: text/event-stream\r\n\r\n"
    )
    idle = []
    try:
        for _ in range(1000):
            one = socket.create_connection((host, int(port)), timeout=30)
            one.sendall(request.encode())
            idle.append(one)
        for one in idle:
            assert b"200 OK" in one.recv(4096)
        start = time.monotonic()
        assert server.http.get("/live").status_code == 200
        server.run.answers.give("jam", "a")
        for one in idle:
            text = b""
            while b"id: a\n" not in text:
                text += one.recv(4096)
        assert time.monotonic() - start < 20
    finally:
        for one in idle:
            one.close()


# --- streams --------------------------------------------------------------------------------------


def test_events_are_accepted_as_a_whole(server: Served) -> None:
    text = EVENT.format(1) + EVENT.format(2)
    found = server.http.post("/streams/S", content=text, headers=NQUADS)
    assert (found.status_code, found.json()) == (200, {"accepted": 2, "bad": []})
    ((stream, (message,), _),) = server.run.accepted
    assert (stream, message.payload, message.media_type) == (
        "S", text.encode(), "application/n-quads"
    )  # fmt: skip
    assert server.http.post("/streams/T", content=text, headers=NQUADS).status_code == 404


def test_an_event_that_lost_a_quad_is_bad_and_the_others_count(server: Served) -> None:
    lines = [*EVENT.format(1).splitlines(), '<http://e/x> <http://e/p> "oops .']
    lines += EVENT.format(2).splitlines()
    text = "<http://e/alone>\n" + "\n".join(lines) + "\n"
    reply = server.http.post("/streams/S", content=text, headers=NQUADS).json()
    assert reply["accepted"] == 1
    assert [bad["line"] for bad in reply["bad"]] == [1, 4]
    assert "http://e/g1" in reply["bad"][1]["reason"]
    assert "http://e/g1" not in reply["bad"][0]["reason"]
    ((_, (message,), _),) = server.run.accepted
    assert b"g1" not in message.payload
    assert message.payload.count(b"g2") == 2


def test_formats_by_their_content_type(server: Served) -> None:
    prov = "http://www.w3.org/ns/prov#generatedAtTime"
    trig = (
        "<http://e/g> { <http://e/x> <http://e/p> 1 } <http://e/g> <"
        + prov
        + '> "2026-01-01T00:00:00Z"'
        "^^<http://www.w3.org/2001/XMLSchema#dateTime> ."
    )
    jsonld = {
        "@id": "http://e/g",
        prov: {"@value": 5, "@type": "http://www.w3.org/2001/XMLSchema#long"},
        "@graph": [{"@id": "http://e/x", "http://e/p": 1}],
    }
    for media, text in (
        ("application/trig", trig),
        ("application/ld+json", json.dumps(jsonld)),
        ("application/x-ld+ndjson", json.dumps(jsonld) + "\n" + json.dumps(jsonld) + "\n"),
        ("text/plain; charset=utf-8", EVENT.format(1)),
    ):
        found = server.http.post("/streams/S", content=text, headers={"Content-Type": media})
        assert found.json()["accepted"] == 1 + (media == "application/x-ld+ndjson"), media
        assert found.json()["bad"] == [], media
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found = server.http.post("/streams/S", content=EVENT.format(1), headers=form)
    assert found.status_code == 415
    assert "n-quads" in found.json()["hint"]


def test_a_key_makes_a_request_safe_to_repeat(server: Served) -> None:
    def post(key: str, text: str) -> httpx.Response:
        headers = {**NQUADS, "Idempotency-Key": key}
        return server.http.post("/streams/S", content=text, headers=headers)

    first = post("k1", EVENT.format(1) + "<oops>\n")
    again = post("k1", EVENT.format(1) + "<oops>\n")
    assert first.json() == again.json()
    assert again.status_code == 200
    assert len(server.run.accepted) == 1
    assert server.run.accepted[0][2] is not None
    assert post("k1", EVENT.format(2)).status_code == 422
    assert post("k2", EVENT.format(2)).json() == {"accepted": 1, "bad": []}
    assert post("", EVENT.format(2)).status_code == 400


def test_requests_with_one_key_at_one_time_count_once(server: Served) -> None:
    replies = []

    def post() -> None:
        headers = {**NQUADS, "Idempotency-Key": "k"}
        found = httpx.post(f"{server.url}/streams/S", content=EVENT.format(1), headers=headers)
        replies.append(found.json())

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [{"accepted": 1, "bad": []}] * 8
    assert len(server.run.accepted) == 1


def test_a_full_disk_refuses_events(server: Served) -> None:
    server.run.full = RunError("cannot write: No space left on device")
    found = server.http.post("/streams/S", content=EVENT.format(1), headers=NQUADS)
    assert found.status_code == 503
    assert {"error", "hint"} <= found.json().keys()
    keyed = {**NQUADS, "Idempotency-Key": "k"}
    assert server.http.post("/streams/S", content="", headers=keyed).status_code == 503
    server.run.full = None
    found = server.http.post("/streams/S", content=EVENT.format(1), headers=keyed)
    assert found.json()["accepted"] == 1  # the refusal was not kept


def test_a_body_that_is_too_large(server: Served) -> None:
    for content in (b"x" * 100_001, iter([b"x" * 50_000] * 3)):
        found = httpx.post(f"{server.url}/streams/S", content=content, headers=NQUADS)
        assert found.status_code == 413
    assert server.run.accepted == []


def test_a_body_that_comes_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_S", 0.5)
    with served(tmp_path) as server, connected(server) as one:
        one.sendall(
            b"POST /streams/S HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            b"Content-Type: application/n-quads\r\n\r\n<"
        )
        start = time.monotonic()
        assert one.recv(4096).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - start < 10
        assert server.http.get("/live").status_code == 200


def test_a_head_that_comes_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_S", 0.5)
    with served(tmp_path) as server, connected(server) as one:
        one.sendall(b"GET /live HTTP/1.1\r\nHo")
        assert one.recv(4096) == b""  # it is closed


# --- who may ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "a b", "10.0.0.1"])
def test_other_hosts_are_not_known(server: Served, host: str) -> None:
    assert server.http.get("/queries", headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8787", "LOCALHOST:80"])
def test_names_of_this_machine_are_known(server: Served, host: str) -> None:
    assert server.http.get("/queries", headers={"Host": host}).status_code == 200


def test_pages_of_others_are_refused(server: Served) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "file://"):
        found = server.http.post("/streams/S", content="", headers={"Origin": origin, **NQUADS})
        assert found.status_code == 403, origin
    assert server.http.get("/live", headers={"Origin": server.url}).status_code == 200


def test_without_a_token_nobody_is_served_from_afar(server: Served) -> None:
    for header in ({"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}):
        assert server.http.get("/queries", headers=header).status_code == 403
    spoofed = {"X-Forwarded-For": "127.0.0.1, 192.0.2.1"}
    assert server.http.get("/queries", headers=spoofed).status_code == 403


def test_a_token_is_demanded(tmp_path: Path) -> None:
    access = Access("127.0.0.1", ("alerts.example",), "secret", True)
    with served(tmp_path, access=access) as server:
        http = server.http
        for path in ("/queries", "/health", "/metrics", "/streams", "/nothing", "/page"):
            found = http.get(path)
            assert found.status_code == 401, path
            assert found.headers["WWW-Authenticate"] == "Bearer"
        assert http.get("/live").status_code == 200
        assert http.get("/").status_code != 401
        assert http.get("/page/page.js").status_code != 401
        assert http.put("/queries/q", content=QUERY).status_code == 401
        bearer = {"Authorization": "Bearer secret"}
        assert http.get("/queries", headers=bearer).status_code == 200
        wrong = {"Authorization": "Bearer secreT"}
        assert http.get("/queries", headers=wrong).status_code == 401
        named = {"Host": "alerts.example", "Origin": "https://alerts.example", **bearer}
        assert http.get("/queries", headers=named).status_code == 200
        assert http.post("/login", data={"token": "wrong"}).status_code == 401
        found = http.post("/login", data={"token": "secret"})
        assert found.status_code == 303
        cookie = found.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Secure"} <= set(cookie.split("; "))
        assert "secret" not in cookie
        shown = {"Cookie": cookie.partition(";")[0]}
        assert httpx.get(f"{server.url}/queries", headers=shown).status_code == 200


# --- the rest -------------------------------------------------------------------------------------


def test_health_says_what_is_wrong(server: Served) -> None:
    assert server.http.get("/health").status_code == 200
    server.run.trouble = ["the disk is full"]
    found = server.http.get("/health")
    assert found.status_code == 503
    assert found.json() == {"status": "degraded", "problems": ["the disk is full"]}
    assert server.http.get("/live").status_code == 200


def test_metrics_are_prometheus_text(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    found = server.http.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'spaseq_query_answers_total{query="jam"} 0\n' in found.text
    names = [line.split()[2] for line in found.text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("POST", "/queries", 405), ("GET", "/page/../app.py", 404)],
)
def test_other_requests_are_errors_in_json(
    server: Served, method: str, path: str, status: int
) -> None:
    found = server.http.request(method, path)
    assert found.status_code == status
    assert found.json().keys() == {"error", "hint"}


def test_the_end_closes_streams_at_once(tmp_path: Path) -> None:
    start = time.monotonic()
    with served(tmp_path) as server:
        server.http.put("/queries/jam", content=QUERY)
        with subscriber(server):
            start = time.monotonic()
    assert server.run.ended == 1
    assert time.monotonic() - start < 5


# --- means ----------------------------------------------------------------------------------------


def wait(true: Any, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.05)


def connected(server: Served) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


class subscriber:
    """The server-sent events of a query's answers, as dicts."""

    def __init__(self, server: Served, headers: dict[str, str] | None = None) -> None:
        self._client = httpx.Client(base_url=server.url, timeout=20)
        self._stream = self._client.stream(
            "GET",
            "/queries/jam/answers",
            headers={"Accept": "text/event-stream", **(headers or {})},
        )

    def __enter__(self) -> Iterator[dict[str, str]]:
        response = self._stream.__enter__()
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        assert next(lines).startswith(":")  # from here on it is subscribed
        return self._events(lines)

    @staticmethod
    def _events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
        event: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(": ")
            if not line:
                if event:
                    yield event
                event = {}
            elif name and colon:
                event[name] = value

    def __exit__(self, *_: object) -> None:
        self._stream.__exit__(None, None, None)
        self._client.close()
