"""SERVICE and endpoint graphs give the same answers as the loaded graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import rdflib

import spaseq
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.errors import QueryError, RunError, UsageError
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.patterns.services import FailedRequest
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import ServiceOptions
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.schema import Schema
from tests.gpm.graphs import Row, Triple, batch_of, group_of, knowledge_of
from tests.kb import sparql_server as s

KB = "http://e/kb0"
P, Q, R, T = (f"<http://e/{name}>" for name in "pqrt")
A, B, C, D = (f"<http://e/{name}>" for name in "abcd")
XSD = "^^<http://www.w3.org/2001/XMLSchema#integer>"
ONE, TWO = f'"1"{XSD}', f'"2"{XSD}'

TRIPLES: Sequence[Triple] = [
    (A, Q, ONE), (A, Q, TWO), (B, Q, TWO), (A, R, B), (B, R, C), (C, R, A), (C, Q, '"x\\n"@en'),
    (D, T, "_:n"), ("_:n", Q, ONE),
]  # fmt: skip
EVENTS: Sequence[Sequence[Triple]] = [
    [(A, P, ONE), (B, P, TWO)],
    [(A, P, ONE), (D, P, ONE)],
    [],
    [("_:e", P, TWO), (A, T, B), (B, T, C)],
    [(C, P, '"x\\n"@en')],
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[s.SparqlServer]:
    with s.serving("".join(f"{' '.join(triple)} .\n" for triple in TRIPLES)) as server:
        yield server


@pytest.fixture
def server(endpoint: s.SparqlServer) -> s.SparqlServer:
    return endpoint.as_new()


def rows(
    pattern: str,
    knowledge: KnowledgeBase,
    events: Sequence[Sequence[Triple]] = EVENTS,
    schema: Schema | None = None,
) -> tuple[list[Counter[Row]], list[FailedRequest]]:
    """The solutions of each event, with blank nodes made equal, and the unanswered requests."""
    algebra = entailed(translate_group(group_of(pattern)), schema)
    evaluator = GpmEvaluator(algebra, knowledge, Options(schema=schema))
    found = evaluator.evaluate(batch_of(events))
    each: list[Counter[Row]] = [Counter() for _ in events]
    for i, event in enumerate(found.event.tolist()):
        codes = {v: int(column[i]) for v, column in found.columns.items()}
        texts = {v: found.terms[c] for v, c in codes.items() if c >= 0}
        row = frozenset((v, "_:" if t.startswith("_:") else t) for v, t in texts.items())
        each[event][row] += 1
    return each, evaluator.take_failures()


def remote(server: s.SparqlServer, **options: object) -> KnowledgeBase:
    services = replace(ServiceOptions(retries=0), **options)  # type: ignore[arg-type]
    return replace(
        KnowledgeBase.empty(),
        endpoints={KB: server.url},
        addresses={KB: server.url},
        services=services,
    )


PATTERNS = [
    "{ ?x :p ?y GRAPH :kb0 { ?x :q ?y } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }",
    "{ ?x :p ?y GRAPH :kb0 { ?z :q ?y } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x :r/:q ?z } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x :r+ ?z } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x !(:q|^:r) ?z } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x :t [ :q ?y ] } }",
    "{ ?x :p ?y GRAPH :kb0 { ?z ?w ?y FILTER (?z != ?w && ?w = :q) } }",
    "{ ?x :p ?y OPTIONAL { GRAPH :kb0 { ?x :q ?z } } }",
    "{ ?x :p ?y OPTIONAL { GRAPH :kb0 { ?x :q ?z } FILTER (?z > ?y) } }",
    "{ ?x :p ?y MINUS { GRAPH :kb0 { ?x :q ?y } } }",
    "{ ?x :p ?y FILTER EXISTS { GRAPH :kb0 { ?x :q ?y } } }",
    "{ ?x :p ?y FILTER NOT EXISTS { GRAPH :kb0 { ?x :r ?z FILTER (?z = :b) } } }",
    "{ { ?x :p ?y } UNION { GRAPH :kb0 { ?x :q ?y } } }",
    "{ ?x :p ?y GRAPH :kb0 { { ?x :q ?z } UNION { ?x :r ?z } } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x :r ?z OPTIONAL { ?z :q ?y } } }",
    "{ ?x :p ?y GRAPH :kb0 { ?z :r ?x MINUS { ?z :q ?y } } }",
    "{ ?x :p ?y GRAPH :kb0 { ?x :q ?z BIND (?z * 2 AS ?y) } }",
    "{ ?x :p ?y GRAPH :kb0 { VALUES (?x ?z) { (:a 1) (UNDEF 2) } ?x :q ?z } }",
    "{ ?x :p ?y GRAPH :kb0 { { SELECT ?x (COUNT(*) AS ?n) { ?x :q ?z } GROUP BY ?x } } }",
    "{ ?x :p ?y GRAPH :kb0 { { SELECT ?x (MAX(?y) + 1 AS ?n) { ?x :q ?y } GROUP BY ?x "
    "HAVING (COUNT(?y) > 1) } } }",
    "{ ?x :p ?y GRAPH :kb0 { { SELECT DISTINCT ?x { ?x :q ?y } ORDER BY DESC(?x) LIMIT 2 } } }",
    "{ ?x :p ?y GRAPH :kb0 { { SELECT ?x { ?x ?p ?y } } ?x :q ?y } }",
    "{ ?x :p ?y GRAPH :kb0 { ?z :q ?y FILTER NOT EXISTS { ?z :r :b } } }",
    "{ ?x :p ?y GRAPH ?g { ?x :q ?y } }",
    "{ OPTIONAL { ?x :t ?z } GRAPH :kb0 { ?x :q ?y . ?x :r ?z } }",
    "{ GRAPH :kb0 { :a :q ?y } }",
    "{ GRAPH :kb0 { :a :r :b } }",
    "{ GRAPH :kb0 { :a :r :c } }",
    "{ ?x :p ?y { SELECT ?y { ?a :p ?y GRAPH :kb0 { ?x :q ?y } } } }",
    "{ ?x :p ?y { SELECT ?x { GRAPH :kb0 { ?x :q ?y } } ORDER BY ?x ?y LIMIT 1 } }",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_endpoint_answers_as_the_loaded_graph_does(server: s.SparqlServer, pattern: str) -> None:
    expected, _ = rows(pattern, knowledge_of({KB: TRIPLES}))
    assert rows(pattern, remote(server)) == (expected, [])
    assert rows(pattern, remote(server, batch=1, cache=0)) == (expected, [])
    if "GRAPH ?" not in pattern:
        service = pattern.replace("GRAPH :kb0", f"SERVICE <{server.url}>")
        assert rows(service, replace(remote(server), endpoints={})) == (expected, [])
        silent = pattern.replace("GRAPH :kb0", "SERVICE SILENT :kb0")
        assert rows(silent, remote(server)) == (expected, [])


RDFS, OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
ENTAILED = Schema.of(
    [
        (R, f"<{RDFS}domain>", "<http://e/C>"),
        (Q, TYPE, f"<{OWL}SymmetricProperty>"),
        (Q, TYPE, f"<{OWL}TransitiveProperty>"),
        (R, f"<{OWL}inverseOf>", "<http://e/v>"),
        ("<http://e/v>", f"<{RDFS}subPropertyOf>", "<http://e/w>"),
        (R, TYPE, f"<{OWL}ObjectProperty>"),
    ]
)


@pytest.mark.parametrize(
    "pattern",
    [
        "{ ?x :p ?y GRAPH :kb0 { ?x a :C } }",
        "{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }",  # :a :q 2, and :b through a literal
        "{ ?x :p ?y GRAPH :kb0 { ?z :q ?x } }",
        "{ ?x :p ?y GRAPH :kb0 { ?x ?w ?z FILTER (?w != :t) } }",
        "{ ?x :p ?y GRAPH :kb0 { ?x :w+ ?z } }",
        "{ ?x :p ?y GRAPH :kb0 { ?x ^:w* ?z } }",
        "{ ?x :p ?y GRAPH :kb0 { ?x :r ?z FILTER EXISTS { ?z :w ?x } } }",
        "{ ?x :p ?y GRAPH :kb0 { ?x :r ?z FILTER NOT EXISTS { ?x :q/:w [] } } }",
        "{ ?x :p ?y FILTER EXISTS { GRAPH :kb0 { ?x :v ?z FILTER EXISTS { ?z a :C } } } }",
    ],
)
def test_an_endpoint_is_asked_for_what_its_graph_entails(
    server: s.SparqlServer, pattern: str
) -> None:
    expected, _ = rows(pattern, knowledge_of({KB: TRIPLES}), schema=ENTAILED)
    assert rows(pattern, remote(server), schema=ENTAILED) == (expected, [])
    assert expected != rows(pattern, knowledge_of({KB: TRIPLES}))[0]


def test_service_is_sent_as_it_is_written(server: s.SparqlServer) -> None:
    pattern = "{ ?x :p ?y SERVICE :kb0 { ?x :r ?z FILTER EXISTS { ?z :q|:w ?y } } }"
    assert rows(pattern, remote(server), schema=ENTAILED) == rows(pattern, remote(server))


def test_blank_nodes_of_exists_are_told_apart_from_those_around_it(server: s.SparqlServer) -> None:
    pattern = "{ ?x :p ?y GRAPH :kb0 { ?x :r/:r ?z FILTER EXISTS { ?z :r/:r ?x } } }"
    expected, _ = rows(pattern, knowledge_of({KB: TRIPLES}))
    assert rows(pattern, remote(server)) == (expected, [])
    assert any(sum(each.values()) == 0 for each in expected)


@pytest.mark.parametrize("pattern", ["?x :q+ ?y", "?x :r ?z FILTER EXISTS { ?x (:p/:q)* ?z }"])
def test_a_path_that_sparql_cannot_say_is_refused_at_the_start(pattern: str) -> None:
    ontology = rdflib.Graph()
    for triple in ENTAILED.axioms:
        ontology.add(tuple(rdflib.URIRef(term[1:-1]) for term in triple))
    query = (
        f"PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> FROM NAMED :kb0 "
        f"SEQ(A) {{ DEFINE GPM A ON S {{ ?x :p ?y GRAPH :kb0 {{ {pattern} }} }} }}"
    )

    def start(ontology: rdflib.Graph) -> None:
        spaseq.Engine(query, {KB: "http://127.0.0.1:9/"}, ontology=ontology, entailment="rdfs")

    with pytest.raises(
        UsageError, match=r"A of query .* repeats <http://e/q> .* owl:ObjectProperty"
    ):
        start(ontology)
    ontology.add((rdflib.URIRef("http://e/q"), rdflib.RDF.type, rdflib.OWL.ObjectProperty))
    start(ontology)


def test_one_request_asks_for_many_solutions_and_each_once(server: s.SparqlServer) -> None:
    knowledge = remote(server, batch=2)
    rows("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", knowledge)
    assert len(server.queries) == 2  # :a :b, :c :d, no blank node
    rows("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", knowledge)
    assert len(server.queries) == 2  # from the cache
    events = [[(A, P, ONE), (f"<http://e/new{i}>", P, ONE)] for i in range(3)]
    rows("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", knowledge, events)
    assert len(server.queries) == 4
    assert not any(A in query for query in server.queries[2:])


def test_no_event_no_request(server: s.SparqlServer) -> None:
    rows("{ ?x :nothing ?y GRAPH :kb0 { ?x :q ?z } }", remote(server))
    assert server.queries == []


def test_a_request_that_fails_has_no_solution_and_says_for_which_events(
    server: s.SparqlServer,
) -> None:
    server.replies = [s.page]
    found, failed = rows("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", remote(server, batch=2))
    assert [sum(each.values()) for each in found] == [0, 0, 0, 0, 1]  # :c has a later request
    assert [list(f.event) for f in failed if f.event is not None] == [[0, 1], [0]]
    assert {f.url for f in failed} == {server.url}
    assert "text/html" in failed[0].reason


def test_failed_requests_are_not_kept(server: s.SparqlServer) -> None:
    server.replies = [s.page]
    knowledge = remote(server)
    pattern = "{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }"
    assert rows(pattern, knowledge)[1]
    assert rows(pattern, knowledge) == rows(pattern, knowledge_of({KB: TRIPLES}))


def test_silent_binds_nothing_where_it_fails(server: s.SparqlServer) -> None:
    server.always = s.page
    pattern = "{ ?x :p ?y SERVICE SILENT :kb0 { ?x :q ?z } }"
    expected, _ = rows("{ ?x :p ?y FILTER (!ISBLANK(?x)) }", KnowledgeBase.empty())
    assert rows(pattern, remote(server)) == (expected, [])


def test_an_answer_to_another_question_is_none(server: s.SparqlServer) -> None:
    server.always = s.other_rows
    _, failed = rows("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", remote(server))
    assert {f.reason for f in failed} == {"the answer does not fit the request"}


def test_a_required_endpoint_that_fails_ends_the_run(server: s.SparqlServer) -> None:
    server.always = s.status(404)
    with pytest.raises(RunError, match=r"127\.0\.0\.1.* failed: HTTP status 404"):
        rows("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", remote(server, required=True))


def test_a_variable_may_name_endpoints_that_are_known_and_no_others(
    server: s.SparqlServer,
) -> None:
    pattern = "{ ?x :p ?y ; :at ?e SERVICE ?e { ?x :q ?z } }"
    events = [
        [(A, P, ONE), (A, "<http://e/at>", f"<{KB}>")],
        [(B, P, ONE), (B, "<http://e/at>", "<http://example.org/sparql>")],  # not a host of a KB
        [(B, P, ONE), (B, "<http://e/at>", f'"{server.url}"')],  # no IRI
    ]
    found, failed = rows(pattern, remote(server), events)
    assert [sum(each.values()) for each in found] == [2, 0, 0]
    assert [list(f.event) for f in failed if f.event is not None] == [[1], [2]]
    assert {f.reason for f in failed} == {"neither --kb nor --service-allow names its host"}


def engine(body: str, server: s.SparqlServer, bad: list[BadInput]) -> list[dict[str, str]]:
    """Bindings of the answers to `SEQ(A; B)` over two events."""
    query = f"""PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>
      FROM NAMED :kb0 WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :p ?old ; :at ?s }} {body} }}"""
    engine = spaseq.Engine(
        query, {KB: server.url}, services=ServiceOptions(retries=0), on_bad=bad.append
    )
    engine.push("S", f"{A} {P} {ONE} .\n{A} <http://e/at> <{KB}> .", 0)
    engine.push("S", f"{B} {T} {C} .", 1000)
    return [{v: t.n3() for v, t in m.bindings.items()} for m in engine.close()]


EARLIER = {"x": A, "old": ONE, "s": f"<{KB}>"}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("{ ?b :t ?c OPTIONAL { GRAPH :kb0 { ?x :r ?b } } }", [{"b": B, "c": C}]),
        (
            "{ ?b :t ?c OPTIONAL { SERVICE :kb0 { ?x :r ?y FILTER (?y = :c) } } }",
            [{"b": B, "c": C}],
        ),
        ("{ ?b :t ?c SERVICE :kb0 { ?b :q ?y FILTER (?y > ?old) } }", [{"b": B, "c": C, "y": TWO}]),
        ("{ ?b :t ?c SERVICE ?s { ?b :q ?y } }", [{"b": B, "c": C, "y": TWO}]),
        ("{ ?b :t ?c MINUS { SERVICE :kb0 { ?x :r ?b } } }", []),
        ("{ ?b :t ?c FILTER NOT EXISTS { SERVICE :kb0 { ?x :q ?old } } }", []),
    ],
)
def test_bindings_of_earlier_steps_are_sent(
    server: s.SparqlServer, pattern: str, found: list[dict[str, str]]
) -> None:
    bad: list[BadInput] = []
    answers = engine(f"DEFINE GPM B ON S {pattern}", server, bad)
    assert answers == [{**EARLIER, **own} for own in found]
    assert bad == []


def test_what_earlier_steps_could_not_ask_is_said(server: s.SparqlServer) -> None:
    server.always = s.page
    bad: list[BadInput] = []
    body = "DEFINE GPM B ON S { ?b :t ?c OPTIONAL { GRAPH :kb0 { ?x :r ?y } } }"
    assert engine(body, server, bad) == [{**EARLIER, "b": B, "c": C}]
    assert [b.file for b in bad] == [server.url]
    assert B in bad[0].text


def test_a_variable_that_nothing_binds_is_no_endpoint(server: s.SparqlServer) -> None:
    with pytest.raises(QueryError, match=r"nothing binds \?e to an endpoint"):
        engine("DEFINE GPM B ON S { ?b :t ?c SERVICE ?e { ?b :q ?y } }", server, [])
