"""Requests to a SPARQL endpoint over HTTP: valid answers, retries and failures."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from spaseq.kb.endpoint import AnswerCache, Endpoint
from spaseq.kb.service_address import ServiceFailure
from spaseq.options import ServiceOptions
from tests.kb import sparql_server as s

TURTLE = """@prefix : <http://example/> .
:a :knows :b ; :name "Ann"@EN , "Annie" ; :age 3 .
:b :friend [ :name "?" ] ."""
NAMES = "SELECT ?n WHERE { <http://example/a> <http://example/name> ?n } ORDER BY ?n"
QUICK = ServiceOptions(timeout_s=5, retries=2, backoff_s=0.01)


@pytest.fixture
def server() -> Iterator[s.SparqlServer]:
    with s.serving(TURTLE) as server:
        yield server


def names(server: s.SparqlServer, options: ServiceOptions = QUICK) -> list[str | None]:
    return [row[0] for row in Endpoint(server.url, options).select(NAMES, ["n"])]


def test_terms_come_as_canonical_texts(server: s.SparqlServer) -> None:
    assert names(server) == ['"Ann"@en', '"Annie"']
    query = "SELECT * WHERE { <http://example/a> <http://example/age> ?x OPTIONAL { ?x ?p ?y } }"
    integer = '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert Endpoint(server.url, QUICK).select(query, ["x", "y", "z"]) == [(integer, None, None)]


def test_blank_nodes_are_the_same_for_the_same_request_only(server: s.SparqlServer) -> None:
    query = "SELECT ?x WHERE { ?x <http://example/name> '?' }"
    endpoint = Endpoint(server.url, QUICK)
    (first,), (again,) = endpoint.select(query, ["x"]), endpoint.select(query, ["x"])
    (other,) = endpoint.select(query + " LIMIT 1", ["x"])
    assert first == again != other
    assert first[0] is not None and first[0].startswith("_:v")


@pytest.mark.parametrize(
    "trouble", [s.status(503), s.status(500), s.status(429), s.broken_off, s.cut_short]
)
def test_what_may_pass_is_asked_again(
    server: s.SparqlServer, trouble: s.Reply, caplog: pytest.LogCaptureFixture
) -> None:
    server.replies = [trouble, trouble]
    with caplog.at_level(logging.WARNING, "spaseq"):
        assert names(server) == ['"Ann"@en', '"Annie"']
    assert len(server.queries) == 3
    assert [r.getMessage().rpartition("; ")[2] for r in caplog.records] == [
        "asking again in 0.01 s",
        "asking again in 0.02 s",
    ]


@pytest.mark.parametrize(
    ("trouble", "asked", "reason"),
    [
        (s.status(503), 3, "HTTP status 503 Service Unavailable: no luck today"),
        (s.status(404), 1, "HTTP status 404 Not Found: no luck today"),
        (s.page, 1, "the answer is text/html, not application/sparql-results"),
        (s.broken_off, 3, "the answer is incomplete"),
        (s.cut_short, 3, "the answer is incomplete"),
    ],
)
def test_what_does_not_pass_is_given_up_with_its_reason(
    server: s.SparqlServer, trouble: s.Reply, asked: int, reason: str
) -> None:
    server.always = trouble
    with pytest.raises(ServiceFailure, match=reason):
        names(server)
    assert len(server.queries) == asked


def test_a_query_that_the_endpoint_refuses_is_not_asked_again(server: s.SparqlServer) -> None:
    with pytest.raises(ServiceFailure, match="HTTP status 400"):
        Endpoint(server.url, QUICK).select("SELECT nonsense", [])
    assert len(server.queries) == 1


@pytest.mark.parametrize("trouble", [s.slow(1.0), s.dripping])
def test_slow_answers_time_out(server: s.SparqlServer, trouble: s.Reply) -> None:
    server.replies = [trouble]
    hasty = ServiceOptions(timeout_s=0.3, retries=0)
    with pytest.raises(ServiceFailure, match=r"timed out after 0\.3 s"):
        names(server, hasty)
    assert names(server) == ['"Ann"@en', '"Annie"']


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(ServiceFailure, match="cannot be reached"):
        Endpoint(url, QUICK).check()


def test_an_endpoint_that_has_moved_gets_the_query_where_it_is(server: s.SparqlServer) -> None:
    server.replies = [s.moved]
    assert names(server) == ['"Ann"@en', '"Annie"']
    assert server.queries == [NAMES, NAMES]


def test_no_answer_to_ask(server: s.SparqlServer) -> None:
    with pytest.raises(ServiceFailure, match="a boolean"):
        Endpoint(server.url, QUICK).select("ASK { }", [])


def test_the_cache_has_a_bound_and_forgets_what_is_old() -> None:
    now, a, b, c = 0.0, ("http://a/", "1"), ("http://a/", "2"), ("http://c/", "1")
    cache = AnswerCache(ServiceOptions(cache=2, ttl_s=10, refresh={"http://c/": 3}), lambda: now)
    cache.put(a, [("1",)])
    cache.put(b, [])
    assert cache.get(a) == [("1",)]
    cache.put(c, [])
    assert (cache.get(b), len(cache)) == (None, 2)  # a was used more recently
    now = 3.0
    assert (cache.get(a), cache.get(c)) == ([("1",)], None)  # c is asked again sooner
    now = 10.0
    assert cache.get(a) is None
    none = AnswerCache(ServiceOptions(cache=0, ttl_s=10))
    none.put(a, [])
    assert none.get(a) is None
