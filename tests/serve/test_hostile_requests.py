"""Requests that are wrong in every part: each is refused, and none is a fault of the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spaseq.serve import http_server
from tests.serve.servers import NQUADS, Served, event, no_slow_callbacks, served, wait
from tests.sizes import first_of

QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)
LONG = "a" * 300
DIGITS = "9" * 5000
ZEROS = "0" * 4400 + "1"
WORDS = (
    "",
    "%00",
    "..",
    "%2e%2e%2f",
    LONG,
    "%ff%fe",
    "%F0%9F%98%80",
    "a%20b",
    "%0A",
    DIGITS,
    "--5",
)
NUMBERS = ("--5", "-", "5-", "+5", "1e9", "%D9%A5", "%00", "0", "-1", DIGITS, ZEROS, "", " 5")
TIMES = (
    *NUMBERS,
    "9" * 18,
    "-" + "9" * 18,
    "0000-01-01T00:00:00Z",
    "999999999-01-01T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-01T00:00:00%2B99:99",
    "T" * 5000,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory: Path = tmp_path_factory.mktemp("hostile")
    with no_slow_callbacks(), served(directory) as found:
        assert found.http.put("/queries/jam", content=QUERY).status_code == 201
        yield found


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR]


@pytest.mark.parametrize("path", ["/page/{}", "/streams/{}", "/queries/{}", "/{}", "/kb/{}"])
def test_parts_of_paths(server: Served, path: str) -> None:
    for word in WORDS:
        url = path.format(word)
        for method in ("GET", "PUT", "POST", "DELETE"):
            found = server.http.request(method, url, content=b"<", headers=NQUADS)
            assert found.status_code < 500, (method, url)
        below = f"{url}/answers/{word}/knowledge", f"{url}/why", f"{url}/automaton.svg"
        assert all(server.http.get(each).status_code < 500 for each in below), url


@pytest.mark.parametrize("nth", first_of([3, 1], 1))
@pytest.mark.parametrize(
    ("number", "name"), [*enumerate(("limit", "last", "after", "from", "event"))], ids=str
)
def test_parameters_of_requests(server: Served, number: int, name: str, nth: int) -> None:
    """By default each parameter has every third value, so that some parameter has each."""
    for value in (*WORDS, *TIMES)[number % nth :: nth]:
        for path in ("/queries/jam/answers", "/queries/jam/why", "/queries", "/streams"):
            found = server.http.get(f"{path}?{name}={value}")
            assert found.status_code < 500, (path, value)


@pytest.mark.parametrize("time", TIMES)
def test_times_from_which_a_query_begins(server: Served, time: str) -> None:
    found = server.http.put(f"/queries/past?from={time}", content=QUERY)
    assert found.status_code < 500
    if found.status_code == 201:
        assert server.http.get("/queries").status_code == 200
        assert server.http.get("/queries/past").status_code == 200
        assert server.http.get("/queries/past/why").status_code == 200
        server.http.delete("/queries/past")


def test_what_is_no_number_of_answers(server: Served) -> None:
    for value in ("--5", "0", "-1", DIGITS, ZEROS, "x"):
        assert server.http.get(f"/queries/jam/answers?limit={value}").status_code == 400


def test_origins_and_hosts_that_are_none(server: Served) -> None:
    for text in (
        "http://[",
        "http://[/x",
        "[",
        "http://]",
        "http://a:b",
        "http://" + LONG,
        "//",
        "",
    ):
        for name in ("Origin", "Host", "Referer", "X-Forwarded-For", "Forwarded"):
            found = server.http.get("/queries", headers={name: text})
            assert found.status_code < 500, (name, text)
        assert server.http.get("/queries", headers={"Origin": text}).status_code == 403
    own = server.url.upper().replace("HTTP", "http")
    assert server.http.get("/queries", headers={"Origin": own}).status_code == 200


@pytest.mark.parametrize("nth", first_of([3, 1], 1))
def test_headers_of_requests(server: Served, nth: int) -> None:
    """By default each header has every third value, so that some headers have each."""
    names = (
        *("Accept", "Cookie", "Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"),
        *("Range", "If-Range", "If-None-Match", "If-Modified-Since", "Accept-Encoding", "Expect"),
        *("X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "Upgrade", "Connection"),
    )
    values = (
        "",
        ",",
        ";=;",
        "\xff",
        "a" * 3000,
        "bytes=9-1",
        "bytes=-",
        "spaseq=\x7f",
        "[",
        "%",
        "--5",
    )
    for number, name in enumerate(names):
        for value in values[number % nth :: nth]:
            header = {name: value.encode("latin-1")}
            for path in ("/", "/queries/jam/answers", "/queries/jam/why"):
                assert server.http.get(path, headers=header).status_code < 500, (name, value)
            posted = server.http.post("/streams/S", content="", headers={**NQUADS, **header})
            assert posted.status_code < 500, (name, value)


def test_a_word_without_end_is_refused_at_once(server: Served) -> None:
    """A scan that is quadratic in the word's length would take hours."""
    for word in ("a" * 99_000, "?x" * 40_000, "://" * 30_000, "a://" * 24_000, " " * 99_000 + "x"):
        found = server.http.post("/check", content=word)
        assert found.status_code == 200
        findings = found.json()["diagnostics"]
        assert findings
        assert all(len(each["text"]) <= 500 for each in findings)
    assert server.post(event(1)).status_code == 200


def test_connections_beyond_the_bound_are_closed_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "most_connections", lambda: 5)
    monkeypatch.setattr(http_server, "_refusals", http_server._Refusals())
    with served(tmp_path) as server:
        server.http.close()
        caplog.clear()
        links = [server.connect() for _ in range(40)]
        served_ones = 0
        for link in links:
            try:
                link.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                served_ones += link.recv(12) == b"HTTP/1.1 200"
            except ConnectionError:
                pass
        for link in links:
            link.close()
        assert served_ones <= 5
        wait(lambda: httpx.get(f"{server.url}/live").status_code == 200)
    assert sum("connections are open" in r.getMessage() for r in caplog.records) == 1
