"""BIND and FILTER with bindings of earlier steps, on one event: as in columns, without them."""

from __future__ import annotations

from random import Random
from typing import NoReturn

import pytest

import spaseq
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_operators import CorrelatedEvent

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"

STEPS = {
    "difference": "?d :is ?w BIND (?w - ?v AS ?x)",
    "error": "?d :is ?w BIND (?w / (?v - ?v) AS ?x)",
    "two": "?d :is ?w BIND (?w - ?v AS ?x) BIND (?x * 2 AS ?y) FILTER (?y > ?v)",
    "time": "?d :is ?w BIND (SECONDS(NOW()) AS ?x)",
    "text": '?e :is ?w BIND (CONCAT(STR(?d), "-", STR(?e)) AS ?x)',
    "given": "?e :is ?w . ?e :at ?p BIND (?w > ?v AS ?x) FILTER (?x)",
    "bound": "?d :is ?w BIND (IF(BOUND(?v), ?w, ?v) AS ?x)",
    "graph": "?d :is ?w GRAPH :kb { ?d :owner ?o } BIND (?w + ?v AS ?x)",
    "optional": "?d :is ?w OPTIONAL { ?d :at ?p } BIND (?w - ?v AS ?x)",
    "exists": "?d :is ?w BIND (?w - ?v AS ?x) FILTER EXISTS { ?d :at ?v ; ?p ?o }",
    "exists-twice": "?e :is ?w FILTER NOT EXISTS { ?e :at ?p FILTER NOT EXISTS { ?d :is ?w } }",
    "exists-thrice": "?e :is ?w FILTER NOT EXISTS { ?e :at ?p FILTER NOT EXISTS "
    "{ ?d :is ?o FILTER NOT EXISTS { ?e :is ?n FILTER (?n > ?v) } } }",
    "exists-optional": "?e :is ?w FILTER EXISTS { ?e :at ?p "
    "OPTIONAL { ?d :is ?n } FILTER (COALESCE(?n, ?v) > ?w) }",
    "exists-unbound": "?e :is ?w OPTIONAL { ?e :at ?p FILTER (?v > 4) } "
    "FILTER NOT EXISTS { ?e :is ?n OPTIONAL { ?d :at ?p } FILTER (BOUND(?p) && ?n >= ?v) }",
    "exists-minus": "?e :is ?w FILTER NOT EXISTS { ?e :at ?p MINUS { ?d :at ?p } }",
    "exists-limit": "?e :is ?w FILTER EXISTS "
    "{ { SELECT ?d ?w { ?d :is ?n . ?e :is ?w } ORDER BY ?n LIMIT 1 } }",
    "exists-beside": "?e :is ?w FILTER NOT EXISTS "
    "{ ?e :at ?p FILTER (?v > 4 || EXISTS { ?d :at ?p }) }",
    "exists-path": "?e :is ?w FILTER EXISTS { ?d :at* ?p FILTER (?p != ?e) }",
    "random": "?d :is ?w BIND (?w + ?v * 0 * RAND() AS ?x)",
    "nested": "?d :is ?w { ?d :at ?p BIND (1 AS ?one) } BIND (?w - ?v AS ?x)",
    "pair": "?e :is ?w FILTER NOT EXISTS { GRAPH :kb { ?d :owner ?o . ?e :owner ?o } }",
    "optional-graph": "?e :is ?w OPTIONAL { GRAPH :kb { ?d :owner ?x FILTER (?v > 4) } }",
    "optional-table": "?e :is ?w OPTIONAL { VALUES (?v ?x) { (1 2) (UNDEF 3) } }",
    "minus": "?e :is ?w MINUS { ?e :is ?v ; :at :p0 }",
    "minus-graph": "?e :is ?w MINUS { GRAPH :kb { ?e :owner ?o FILTER (?v > 4) } }",
    "union": "{ ?e :is ?w FILTER (?w < ?v) } UNION { ?e :at ?w FILTER (?v > 4) }",
    "agreeing": "?e :is ?w OPTIONAL { ?e :at ?d } BIND (?w + 1 AS ?v)",
    "sub-select": "?e :is ?w { SELECT ?e (COUNT(?v) AS ?x) { ?e ?v ?o } GROUP BY ?e } "
    "OPTIONAL { ?e :at ?d }",
    "projected": "?e :is ?w { SELECT ?e ?v { ?e :is ?v } } OPTIONAL { ?e :at ?d }",
    "nested-graph": "?e :is ?w OPTIONAL { GRAPH ?g { ?d :owner ?x FILTER (?v > 4) } }",
    "graph-path": "?e :is ?w GRAPH :kb { ?d :owner* ?x }",
    "graph-path-back": "?e :is ?w GRAPH :kb { ?x :owner? ?d }",
    "graph-path-self": "?e :is ?w GRAPH :kb { ?d :owner* ?d }",
    "graph-path-after": "?d :at ?w . GRAPH :kb { ?v :owner* ?x . ?d :owner? ?y }",
    "empty-path": "?e :is ?w . ?d :at* ?x",
}
IN_COLUMNS = ("random", "nested-graph", "empty-path", "exists-path")


def query(step: str, projected: str = "?d ?v ?w ?x") -> str:
    """A query whose second step is correlated: its variables are not only read as values."""
    step = f"{step} FILTER (BOUND(?x) || true)"
    return (
        f"PREFIX : <{E}> SELECT {projected} WITHIN 5 SECONDS "
        f"FROM STREAM S <{E}s> FROM NAMED <{E}kb>\n"
        f"WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?d :is ?v }} DEFINE GPM B ON S {{ {step} }} }}"
    )


def events(seed: int) -> list[spaseq.Event]:
    draw, found = Random(seed), []
    for number in range(40):
        lines = [
            f'<{E}d{draw.randrange(3)}> <{E}is> "{draw.randrange(9)}"^^<{XSD}integer> .'
            for _ in range(draw.randrange(1, 3))
        ]
        if not draw.randrange(4):  # of another event, as far as joins see
            lines.append(f'_:d <{E}is> "{draw.randrange(9)}"^^<{XSD}integer> .')
        lines.append(f"<{E}d{draw.randrange(3)}> <{E}at> <{E}p{draw.randrange(2)}> .")
        found.append(spaseq.Event("\n".join(lines), number * 700))
    return found


def answers(step: str, seed: int) -> list[str]:
    kb = {f"{E}kb": spaseq_graph()}
    run = spaseq.run(query(step), {f"{E}s": events(seed)}, kb, runtime="local")
    return [f"{match.trace} {sorted(match.bindings.items())}" for match in run]


def spaseq_graph() -> object:
    import rdflib

    return rdflib.Graph().parse(data=f"<{E}d0> <{E}owner> <{E}ann>, <{E}bob> .", format="turtle")


@pytest.mark.each_once
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("seed", range(3))
def test_the_answers_are_those_of_columns(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, used = STEPS[name], set[bool]()
    made = CorrelatedEvent.of

    def noted(*given: object) -> CorrelatedEvent | None:
        own = made(*given)  # type: ignore[arg-type]
        used.add(own is not None)
        return own

    monkeypatch.setattr(CorrelatedEvent, "of", noted)
    found = answers(step, seed)
    assert used == {name not in IN_COLUMNS}
    monkeypatch.setattr(CorrelatedEvent, "of", lambda *given: None)
    assert answers(step, seed) == found
    assert found or name in ("exists", "two")


@pytest.mark.each_once
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("seed", range(3))
def test_a_pushed_event_needs_no_columns(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = STEPS[name]
    expected = answers(step, seed)

    def matched_in_columns(*given: object) -> NoReturn:
        raise AssertionError("the event was matched in columns")

    monkeypatch.setattr(PatternStage, "match", matched_in_columns)
    engine = spaseq.Engine(query(step), {f"{E}kb": spaseq_graph()})
    pushed = [engine.push(f"{E}s", event.graph, event.time) for event in events(seed)]
    found = [match for some in (*pushed, engine.close()) for match in some]
    assert [f"{match.trace} {sorted(match.bindings.items())}" for match in found] == expected
