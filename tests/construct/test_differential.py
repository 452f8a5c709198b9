"""CONSTRUCT and chains of queries against the oracle, on generated queries and streams."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq.api.match import Match
from spaseq.lang.parser import parse
from tests.construct.reference import construct, renamed, texts
from tests.oracle.choices import Choices, seeded
from tests.oracle.comparison import comparable
from tests.oracle.model import TooBig
from tests.oracle.oracle import evaluate
from tests.oracle.patterns import nt
from tests.oracle.spark_sample import apart
from tests.oracle.strategies import NS, STEP_1, Case, case, template
from tests.oracle.triple_terms import triple_term
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
MADE = f"{NS}made"
SIMPLE = STEP_1 - {"equality-join", "stateful-filter", "PREV", "!", "&", ","}
"""Features of queries that have answers more often."""

Triples = list[tuple[str, str, str]]


def construct_query(choices: Choices, query: str, blanks: bool) -> str:
    """The query with a generated template instead of its SELECT, and with a registered stream."""
    (select,) = [line for line in query.splitlines() if line.startswith("SELECT ")]
    gpms = [line for line in query.splitlines() if "DEFINE GPM" in line]
    variables = sorted({name for line in gpms for name in re.findall(r"\?\w+", line)})
    made = f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ {template(choices, variables, blanks)} }}"
    return query.replace(select, made)


def inputs(example: Case) -> dict[str, list[spaseq.Event]]:
    """The streams of an example in the form of the API."""
    return {
        stream: [
            spaseq.Event([(nt(s), nt(p), nt(o)) for s, p, o in triples], time, iri)
            for time, iri, triples in events
        ]
        for stream, events in example.streams.items()
    }


def ended(matches: list[Match]) -> list[tuple[int, Triples]]:
    return [(m.answer.end[0], renamed(list(m.answer.graph or ()))) for m in matches]


@sizes(20, 40, 300)
def test_construct_gives_the_events_of_the_page(examples: int) -> None:
    tried = made = blank = 0
    for number in range(examples):
        choices = seeded(f"construct:{SEED}:{number}")
        example = case(choices, STEP_1)
        query = construct_query(choices, example.query, blanks=True)
        try:
            expected = texts(construct(parse(query), example.streams, example.kb))
        except TooBig:
            continue
        found = list(spaseq.run(query, inputs(example), example.kb, "local"))
        assert ended(found) == [(time, renamed(graph)) for time, graph in expected], query
        used = [{x for t in m.answer.graph or () for x in t if x[0] == "_"} for m in found]
        assert sum(map(len, used)) == len(set().union(*used)), "blank nodes are fresh per match"
        assert len({m.event for m in found}) == len(found)
        tried, made = tried + 1, made + bool(found)
        blank += any(used)
    assert tried > examples * 0.8
    assert made > examples // 6
    assert blank > examples // 15


READER = f"""PREFIX ex: <{NS}>
SELECT * WITHIN {{within}} FROM STREAM D <{MADE}> FROM STREAM S1 <{NS}stream/1>
WHERE {{{{ SEQ({{sequence}})
  DEFINE GPM X ON D {{{{ ?x ex:p ?y }}}}
  DEFINE GPM Y ON D {{{{ ?x ?any ?z }}}}
  DEFINE GPM Z ON D, S1 {{{{ ?s ?r ?t }}}} }}}}"""


@sizes(8, 20, 200)
def test_a_query_reads_the_stream_that_another_registers(examples: int) -> None:
    answers = [chained(seeded(f"chain:{SEED}:{number}")) for number in range(examples)]
    assert sum(n > 0 for n in answers) > examples // 5


def chain(choices: Choices) -> tuple[str, str, Case]:
    """A query that makes a stream, a query that reads it, and their input."""
    example = case(choices, SIMPLE, 8)
    maker = construct_query(choices, example.query, blanks=False)
    reader = READER.format(
        within=choices.pick(["5 SECONDS", "20 SECONDS"]),
        sequence=choices.pick(["X; Y", "X, Z", "X; Z!; Y", "(X & Z)", "X, Y?, Z", "X; Y{2}"]),
    )
    return maker, reader, replace(example, streams={f"{NS}stream/1": [], **example.streams})


def many_chains(count: int, seed: str) -> tuple[list[str], list[Case]]:
    """The queries of chains and their streams; a number in each IRI keeps the chains separate."""
    queries, examples = list[str](), list[Case]()
    for number in range(count):
        maker, reader, example = chain(seeded(f"{seed}:{SEED}:{number}"))
        for query in (reader, maker):
            moved = apart(replace(example, query=query), number)
            queries.append(moved.query.replace(f"<{MADE}>", f"<{NS}{number}/made>"))
        examples.append(moved)
    return queries, examples


@pytest.mark.spark
@pytest.mark.thorough
def test_many_chains_in_one_run_on_spark() -> None:
    queries, examples = many_chains(12, "spark")
    streams = {iri: events for e in examples for iri, events in inputs(e).items()}
    local, spark = (
        [(m.query, m.answer) for m in spaseq.run(queries, streams, runtime=runtime)]
        for runtime in ("local", "spark")
    )
    assert local == spark
    assert len({query for query, _ in local}) > 6


def chained(choices: Choices) -> int:
    """Check one example; returns the number of answers of the second query."""
    maker, reader, example = chain(choices)
    streams = example.streams
    try:
        events = construct(parse(maker), streams, example.kb)
    except TooBig:
        return 0
    matches = list(spaseq.run([reader, maker], inputs(example), example.kb, "local"))
    made = [m for m in matches if m.query == MADE]
    assert ended(made) == texts(events)
    names = [m.event for m in made]
    derived = [(time, iri, triples) for (time, triples), iri in zip(events, names, strict=True)]
    try:
        expected = evaluate(parse(reader), {**streams, MADE: derived})
    except TooBig:
        return 0
    found = [m.answer for m in matches if m.query != MADE]
    assert [comparable(a) for a in found] == [comparable(a) for a in expected]
    return len(found)


def test_the_reference_leaves_out_what_rdf_does_not_allow() -> None:
    query = parse(f"""PREFIX ex: <{NS}> CONSTRUCT {{ ?o ex:p ?s . ?s ex:p ?o ; ex:q ?u . }}
    WITHIN 1 SECONDS FROM STREAM S <{NS}s> {{ SEQ(A) DEFINE GPM A ON S {{ ?s ex:v ?o }} }}""")
    a, v = URIRef(f"{NS}a"), URIRef(f"{NS}v")
    events = construct(query, {f"{NS}s": [(0, None, [(a, v, Literal("x"))])]})
    assert texts(events) == [(0, [(f"<{NS}a>", f"<{NS}p>", '"x"')])]


def test_a_triple_term_is_an_object_alone() -> None:
    query = f"""PREFIX ex: <{NS}> CONSTRUCT {{ ?t ex:p ?x . ?x ex:of ?t }} WITHIN 1 SECONDS
        FROM STREAM S <{NS}s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x ex:says ?t }} }}"""
    ann, term = URIRef(f"{NS}ann"), triple_term(URIRef(f"{NS}s"), URIRef(f"{NS}v"), Literal("1"))
    streams = {f"{NS}s": [(1000, f"{NS}e", ((ann, URIRef(f"{NS}says"), term),))]}
    example = Case(query, frozenset(), streams)
    graph = ((f"<{NS}ann>", f"<{NS}of>", nt(term)),)
    assert [m.answer.graph for m in spaseq.run(query, inputs(example), runtime="local")] == [graph]
    assert texts(construct(parse(query), streams)) == [(1000, [*graph])]
