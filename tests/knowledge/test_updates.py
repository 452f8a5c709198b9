"""`Engine.update_kb`: graphs that a program changes while events are pushed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.errors import InputError, UsageError
from tests.knowledge.cases import Case, cases, graph_of, knowledge, nt, queries, shown, streams_of
from tests.knowledge.reference import GRAPH
from tests.sizes import sizes
from tests.thresholds import forced

OWNERS = "http://example/owners"
PROLOGUE = "PREFIX : <http://example/>\n"
READER = (
    f"{PROLOGUE}SELECT ?o FROM STREAM S :s FROM NAMED <{OWNERS}>\n"
    "WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?d :alarm ?x {0} GRAPH <http://example/owners> "
    "{{ ?d :owner ?o }} }} }}"
).format
ALARM = "<http://example/d> <http://example/alarm> <http://example/x> ."


def owned_by(*names: str) -> rdflib.Graph:
    lines = (f"<http://example/d> <http://example/owner> <http://example/{n}> ." for n in names)
    return rdflib.Graph().parse(data="\n".join(lines), format="nt")


def owners(matches: list[spaseq.Match]) -> list[tuple[int, str]]:
    """The second at which each match ends, and the owner's local name."""
    return [(int(m.trace[-1].time.timestamp()), m.bindings["o"].n3()[16:-1]) for m in matches]


@sizes(20, 40, 60)
def test_updates_agree_with_an_evaluation_event_by_event(examples: int) -> None:
    several = st.booleans(), st.booleans(), st.sampled_from(["least", "never"])
    settings(max_examples=examples, deadline=None)(given(cases(), *several)(check_updates))()


def check_updates(drawn: Case, early: bool, as_text: bool, terms: str) -> None:
    """`early`: changes are told long before they hold."""
    case, found = replace(drawn, maintainers=()), list[spaseq.Match]()
    due = sorted(case.replaced, key=lambda change: change[0])
    with forced(f"unused_terms={terms}"), spaseq.Engine(queries(case), knowledge(case)) as engine:

        def update(until: int) -> None:
            while due and due[0][0] <= until:
                time, triples = due.pop(0)
                given: object = graph_of(triples)
                if as_text:
                    given = f"DELETE WHERE {{ ?s ?p ?o }} ; INSERT DATA {{ {nt(triples)} }}"
                engine.update_kb(GRAPH, given, time * 1000)

        update(100 if early else -1)
        given_events = streams_of(case)
        places = [(iri, event) for iri, events in given_events.items() for event in events]
        for iri, event in sorted(places, key=lambda each: each[1].time):
            update(int(event.time) // 1000)
            found += engine.push(iri, event.graph, event.time)
        found += engine.close()
    assert shown(found) == case.expected()


def test_the_table_of_the_language() -> None:
    text = PROLOGUE + "DELETE WHERE { ?d :owner ?o } ; INSERT DATA { :d :owner :%s }"
    engine = spaseq.Engine(READER(""), {OWNERS: owned_by("eve")})
    found = engine.push("S", ALARM, 5000)
    engine.update_kb(OWNERS, text % "ann", 10_000)
    found += engine.push("S", ALARM, 15_000)
    engine.update_kb(OWNERS, text % "bob", 20_000)
    found += engine.push("S", ALARM, 20_000) + engine.push("S", ALARM, 25_000) + engine.close()
    assert owners(found) == [(5, "eve"), (15, "ann"), (20, "bob"), (25, "bob")]


def test_a_correlated_pattern_sees_the_graph_of_its_own_event() -> None:
    query = (
        f"{PROLOGUE}SELECT ?o WITHIN 1 HOURS FROM STREAM S :s FROM NAMED <{OWNERS}>\n"
        "WHERE { SEQ(A; B) DEFINE GPM A ON S { ?d :alarm ?x } "
        f"DEFINE GPM B ON S {{ ?d :alarm ?y GRAPH <{OWNERS}> {{ ?d :owner ?o }} "
        f"FILTER EXISTS {{ GRAPH <{OWNERS}> {{ ?d :owner ?p FILTER (?p != ?x) }} }} }} }}"
    )
    engine = spaseq.Engine(query, {OWNERS: owned_by("eve")})
    found = engine.push("S", ALARM, 1000) + engine.push("S", ALARM, 2000)
    engine.update_kb(OWNERS, owned_by("x"), 3000)
    engine.update_kb(OWNERS, owned_by("bob"), 5000)
    for time in (3000, 4000, 5000):
        found += engine.push("S", ALARM, time)
    found += engine.close()
    assert owners(found) == [(2, "eve"), *3 * [(5, "bob")]]


def test_a_window_sees_the_graph_of_its_close() -> None:
    query = (
        f"{PROLOGUE}SELECT ?o FROM STREAM S :s FROM NAMED <{OWNERS}>\n"
        "FROM WINDOW W ON S RANGE 10 SECONDS SLIDE 10 SECONDS\n"
        f"WHERE {{ SEQ(A) DEFINE GPM A ON W {{ ?d :alarm ?x GRAPH <{OWNERS}> "
        "{ ?d :owner ?o } } }"
    )
    engine = spaseq.Engine(query, {OWNERS: owned_by("eve")})
    found = engine.push("S", ALARM, 5000)
    engine.update_kb(OWNERS, owned_by("ann"), 8000)
    engine.update_kb(OWNERS, owned_by("bob"), 20_001)
    found += engine.push("S", ALARM, 15_000) + engine.push("S", ALARM, 25_000) + engine.close()
    assert owners(found) == [(10, "ann"), (20, "ann"), (30, "bob")]


def test_queries_that_come_later_see_all_changes() -> None:
    engine = spaseq.Engine(READER(""), {OWNERS: owned_by("eve")})
    engine.push("S", ALARM, 1000)
    engine.update_kb(OWNERS, owned_by("ann"))
    engine.add(READER(". ?d :alarm ?z"), name="later")
    found = engine.push("S", ALARM, 2000) + engine.push("S", ALARM, 3000) + engine.close()
    assert owners([m for m in found if m.query == "later"]) == [(2, "ann"), (3, "ann")]


@pytest.mark.parametrize("count", [1, 40])
def test_families_see_changes(count: int) -> None:
    """Queries that differ in a constant are evaluated together."""
    alike = [READER(f"FILTER (?x != :n{number})") for number in range(count)]
    engine = spaseq.Engine(alike, {OWNERS: owned_by("eve")})
    found = engine.push("S", ALARM, 1000)
    engine.update_kb(OWNERS, owned_by("ann"), 3000)
    engine.update_kb(OWNERS, owned_by("bob", "zoe"), 5000)
    for time in (2000, 3000, 4000, 5000):
        found += engine.push("S", ALARM, time)
    found += engine.close()
    one = [(1, "eve"), (2, "eve"), (3, "ann"), (4, "ann"), (5, "bob"), (5, "zoe")]
    assert Counter(owners(found)) == Counter(one * count)


def test_files_and_datasets_replace_a_graph(tmp_path: Path) -> None:
    path = tmp_path / "owners.ttl"
    path.write_text("@prefix : <http://example/> . :d :owner :ann .")
    engine = spaseq.Engine(READER(""), {OWNERS: owned_by("eve")})
    engine.update_kb(OWNERS, path)
    found = engine.push("S", ALARM, 1000)
    quad = [ox.NamedNode(f"http://example/{name}") for name in ("d", "owner", "bob")]
    engine.update_kb(OWNERS, ox.Dataset([ox.Quad(*quad)]))
    found += engine.push("S", ALARM, 2000) + engine.close()
    assert owners(found) == [(1, "ann"), (2, "bob")]


@pytest.mark.parametrize(
    ("iri", "change", "time", "says"),
    [
        ("http://example/owner", "CLEAR DEFAULT", None, "did you mean <http://example/owners>"),
        (OWNERS, "CLEAR DEFAULT", 1000, "events of that time were pushed"),
        (OWNERS, "INSERT DATA { ", None, "the update is wrong"),
        (OWNERS, "INSERT DATA { GRAPH <http://g> { <a:a> <a:a> 1 } }", None, "line 1: GRAPH"),
        (OWNERS, "\nLOAD <http://example/x>", None, "line 2: LOAD"),
        (OWNERS, 5, None, "int is no change"),
    ],
)
def test_what_is_refused_changes_nothing(
    iri: str, change: object, time: int | None, says: str
) -> None:
    engine = spaseq.Engine(READER(""), {OWNERS: owned_by("eve")})
    engine.push("S", ALARM, 1000)
    with pytest.raises((UsageError, InputError), match=says):
        engine.update_kb(iri, change, time)
    assert owners(engine.push("S", ALARM, 2000) + engine.close())[-1] == (2, "eve")


def test_words_in_texts_and_names_are_no_keywords() -> None:
    engine = spaseq.Engine(READER(""), {OWNERS: owned_by("eve")})
    text = "PREFIX graph: <http://graph/> INSERT DATA { graph:load graph:with ' GRAPH ', \"LOAD\" }"
    engine.update_kb(OWNERS, text)
    engine.update_kb(OWNERS, f"DELETE {{ ?graph ?p ?o }} WHERE {{ ?graph ?p ?o }} # {text}")
    assert not engine.push("S", ALARM, 2000) + engine.close()
