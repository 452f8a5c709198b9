"""Endpoints as knowledge bases on the command line: answers, failures and their messages."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from spaseq.kb.endpoint import shared_cache
from tests.cli.test_run import KB, Done, Place, place, prices
from tests.kb import sparql_server as s
from tests.sizes import first_of

__all__ = ["place"]

ON_BOTH = pytest.mark.parametrize(
    "runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)]
)
EVENTS = ["http://example/e0", "http://example/e1"]


@pytest.fixture
def server() -> Iterator[s.SparqlServer]:
    shared_cache.cache_clear()
    with s.serving(KB) as server:
        yield server


def run(place: Place, server: s.SparqlServer, *arguments: str, runtime: str = "local") -> Done:
    kb = f"http://example/kb={server.url}"
    return place.run("--runtime", runtime, *arguments, kb=kb)


@ON_BOTH
def test_an_endpoint_as_kb_that_fails_twice_costs_no_answer(
    place: Place, server: s.SparqlServer, runtime: str
) -> None:
    server.replies = [s.status(503), s.cut_short]
    done = run(place, server, runtime=runtime)
    assert (done.status, prices(done)) == (0, EVENTS), done.err
    assert json.loads(done.out.splitlines()[0])["bindings"]["owner"]["value"] == "Ada"
    assert "2 requests to endpoints sent again" in done.err


@ON_BOTH
def test_an_endpoint_that_is_down_is_said_event_by_event(
    place: Place, server: s.SparqlServer, runtime: str
) -> None:
    server.always = s.status(404)
    done = run(place, server, "--bad", "bad.jsonl", runtime=runtime)
    assert (done.status, done.out) == (0, ""), done.err
    assert "0 answers from 3 events" in done.err
    assert "3 bad inputs" in done.err
    bad = [json.loads(x) for x in (place.directory / "bad.jsonl").read_text().splitlines()]
    assert {b["file"] for b in bad} == {server.url}
    assert {b["reason"] for b in bad} == {"no answer: HTTP status 404 Not Found: no luck today"}
    names = [f"http://example/e{i} of <http://example/stream?a=1>" for i in range(3)]
    assert [b["text"].partition(" at ")[0] for b in bad] == names


def nobody(server: s.SparqlServer) -> str:
    """An address on this machine without a listening process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


TROUBLE = {
    "down": (None, "cannot be reached: "),
    "slow": (s.slow(2.0), "timed out after 0.2 s"),
    "dripping": (s.dripping, "timed out after 0.2 s"),
    "error": (s.status(500), "HTTP status 500 Internal Server Error: no luck today"),
    "broken-off": (s.broken_off, "the answer is incomplete: "),
    "cut-short": (s.cut_short, "the answer is incomplete or not JSON: "),
}


@ON_BOTH
@pytest.mark.parametrize("trouble", first_of(sorted(TROUBLE), 2))
def test_whatever_is_wrong_with_an_endpoint_is_said_and_no_event_is_lost(
    place: Place, server: s.SparqlServer, runtime: str, trouble: str
) -> None:
    """The first request is retried. Then each event goes to --bad; --kb-required stops the run."""
    reply, reason = TROUBLE[trouble]
    url = nobody(server) if reply is None else server.url
    server.always = reply or s.good
    options = (
        "--runtime", runtime, "--service-timeout", "200 MILLISECONDS", "--service-retries", "1",
        "--bad", "bad.jsonl",
    )  # fmt: skip
    done = place.run(*options, kb=f"http://example/kb={url}")
    assert (done.status, done.out) == (0, ""), done.err
    assert "0 answers from 3 events" in done.err
    bad = [json.loads(x) for x in (place.directory / "bad.jsonl").read_text().splitlines()]
    assert sorted(b["text"].partition(" ")[0] for b in bad) == [
        f"http://example/e{i}" for i in range(3)
    ]
    assert all(b["reason"].startswith(f"no answer: {reason}") for b in bad)
    requests = len(server.queries)
    assert reply is None or requests in (2, 4, 6)  # each is sent twice, in one batch or several
    done = place.run(*options, "--kb-required", kb=f"http://example/kb={url}")
    assert (done.status, done.out) == (3, "")
    assert f"the endpoint {url} failed: {reason}" in done.err
    assert reply is None or len(server.queries) == requests + 2


def test_without_a_file_for_them_the_first_event_is_named_on_stderr(
    place: Place, server: s.SparqlServer
) -> None:
    server.always = s.status(404)
    said = run(place, server, runtime="local").err.splitlines()
    (shown,) = [line for line in said if "no answer:" in line]
    assert "(http://example/e0 of " in shown
    assert "... and 2 more; --bad FILE keeps them" in said


def test_a_required_endpoint_that_is_down_stops_the_run_at_its_start(
    place: Place, server: s.SparqlServer
) -> None:
    server.always = s.status(404)
    done = run(place, server, "--kb-required")
    assert (done.status, done.out) == (3, "")
    assert f"the endpoint {server.url} failed: HTTP status 404" in done.err


@ON_BOTH
def test_a_required_endpoint_that_goes_down_stops_the_run(
    place: Place, server: s.SparqlServer, runtime: str
) -> None:
    server.replies, server.always = [s.good], s.status(404)
    done = run(place, server, "--kb-required", runtime=runtime)
    assert (done.status, done.out) == (4, "")
    assert f"the endpoint {server.url} failed: HTTP status 404" in done.err


def test_service_in_the_query_with_options(place: Place, server: s.SparqlServer) -> None:
    query = (place.directory / "query.rq").read_text()
    place.write("query.rq", query.replace("GRAPH <http://example/kb>", f"SERVICE <{server.url}>"))
    server.replies = [s.slow(1.0)]
    done = place.run(
        "--service-timeout", "200 MILLISECONDS", "--service-retries", "1",
        "--service-cache", "0", "--service-batch", "5", "--service-ttl", "1 SECOND",
        "--service-allow", "127.0.0.1", "--service-max-bytes", "100000",
    )  # fmt: skip
    assert (done.status, prices(done)) == (0, EVENTS), done.err
    assert len(server.queries) == 2


def test_a_service_that_is_no_address_is_an_error_at_the_start(place: Place) -> None:
    query = (place.directory / "query.rq").read_text()
    place.write("query.rq", query.replace("GRAPH <http://example/kb>", "SERVICE <urn:kb>"))
    done = place.run()
    assert done.status == 3
    assert "SERVICE <urn:kb> is no HTTP address: give --kb 'urn:kb=https://...'" in done.err


@ON_BOTH
def test_a_service_that_nothing_allows_is_an_error_at_the_start(
    place: Place, server: s.SparqlServer, runtime: str
) -> None:
    query = (place.directory / "query.rq").read_text()
    url = server.url.replace("http://", "http://me:secret@") + "?token=abc"
    for silent in ("", "SILENT "):
        named = f"SERVICE {silent}<{url}>"
        place.write("query.rq", query.replace("GRAPH <http://example/kb>", named))
        done = place.run("--runtime", runtime, "--service-allow", "127.0.0.1:9")
        host = server.url.split("/")[2]
        assert (done.status, done.out) == (3, "")
        assert f"may not be asked: give --service-allow {host}" in done.err
        assert "secret" not in done.err and "abc" not in done.err
    assert server.queries == []


@pytest.mark.parametrize("host", ["", "http://example.org", "a:b", "a:99999", "[::1", "a b", "a@b"])
def test_an_allowed_host_that_is_none_is_wrong_usage(place: Place, host: str) -> None:
    done = place.run("--service-allow", host)
    assert (done.status, done.out) == (2, "")
    assert f"--service-allow {host}: " in done.err


def test_an_endpoint_without_a_name_where_queries_name_two_graphs(place: Place) -> None:
    query = (place.directory / "query.rq").read_text()
    named = "FROM NAMED <http://example/kb>"
    place.write("query.rq", query.replace(named, f"{named} FROM NAMED <http://example/kb2>"))
    done = place.run(kb="http://127.0.0.1:9/sparql?a=b")
    assert done.status == 2
    assert "say which graph it is" in done.err


def test_only_a_followed_run_takes_up_changes(place: Place) -> None:
    done = place.run("--kb-refresh")
    assert done.status == 2
    assert "--kb-refresh goes with --follow" in done.err


def test_a_compiled_knowledge_base_is_kept_where_one_says(place: Place) -> None:
    for _ in range(2):
        done = place.run("--kb-cache", "compiled")
        assert (done.status, prices(done)) == (0, EVENTS), done.err
    assert len(list((place.directory / "compiled").iterdir())) == 1
