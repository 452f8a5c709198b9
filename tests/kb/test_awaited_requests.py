"""An engine asks an endpoint about a pushed event only if a partial match awaits it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spaseq import Engine, ServiceOptions
from spaseq.kb.endpoint import shared_cache
from tests.kb import sparql_server as s

NS = "http://e/"
SERVICES = ServiceOptions(retries=0, allow=["127.0.0.1"])
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
OWNERS = "".join(f'<{NS}{x}> <{NS}owner> "owner of {x}" .\n' for x in "pqrs")
EVENTS = ["B q 1", "A p 1", "B q 2", "B r 1", "B s 1", "A p 2", "B q 2"]
"""Class, subject and key of each event; one event per second."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[s.SparqlServer]:
    with s.serving(OWNERS) as server:
        yield server


@pytest.fixture
def server(endpoint: s.SparqlServer) -> s.SparqlServer:
    return endpoint.as_new()


def query(sequence: str, service: str, rest: str = "") -> str:
    return f"""PREFIX : <{NS}> SELECT ?x ?y ?o WITHIN 1 HOURS {rest} FROM STREAM S <{NS}s>
    SEQ({sequence}) {{ DEFINE GPM A ON S {{ ?x a :A ; :key ?k }}
    DEFINE GPM B ON S {{ ?y a :B ; :key ?k {service} {{ ?y :owner ?o }} }} }}"""


def answers(text: str, *disable: str) -> list[tuple[str, ...]]:
    engine = Engine(text, disable=disable, services=SERVICES, on_bad=print)
    found = []
    for i, event in enumerate(EVENTS):
        kind, subject, key = event.split()
        graph = f'<{NS}{subject}> {TYPE} <{NS}{kind}> .\n<{NS}{subject}> <{NS}key> "{key}" .'
        found += engine.push("S", graph, 1000 * i)
    found += engine.close()
    return [tuple(t.n3() for t in match.bindings.values()) for match in found]


FIRST = f"<{NS}p>", f"<{NS}r>", '"owner of r"'
SECOND = f"<{NS}p>", f"<{NS}q>", '"owner of q"'


@pytest.mark.parametrize("rest", ["", "PARTITION BY (?k)"])
def test_only_what_is_awaited_is_asked_for(server: s.SparqlServer, rest: str) -> None:
    text = query("A; B", f"SERVICE <{server.url}>", rest)
    assert answers(text) == [FIRST, SECOND]
    asked = "".join(server.queries)
    assert f"<{NS}r>" in asked and f"<{NS}q>" in asked and f"<{NS}s>" not in asked
    assert len(server.queries) == 2
    shared_cache.cache_clear()
    server.queries.clear()
    assert answers(text, "awaited-requests") == [FIRST, SECOND]
    assert f"<{NS}s>" in "".join(server.queries)


@pytest.mark.parametrize("disable", [(), ("awaited-requests",)])
def test_a_first_step_is_asked_for_at_once(
    server: s.SparqlServer, disable: tuple[str, ...]
) -> None:
    assert answers(query("B; A", f"SERVICE <{server.url}>"), *disable) == [SECOND, SECOND]


@pytest.mark.parametrize("disable", [(), ("awaited-requests",)])
def test_endpoints_that_fail(server: s.SparqlServer, disable: tuple[str, ...]) -> None:
    service = f"SERVICE <{server.url}>"
    assert answers(query("A; B!", service), *disable) == []
    server.always = s.status(500)
    shared_cache.cache_clear()
    assert answers(query("A; B!", service), *disable) == [(f"<{NS}p>",), (f"<{NS}p>",)]
    assert answers(query("A; B", service), *disable) == []
    silent = f"SERVICE SILENT <{server.url}>"
    assert answers(query("A; B", silent), *disable) == [FIRST[:2], SECOND[:2]]
