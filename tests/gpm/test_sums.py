"""Sums of many whole numbers are made as values, and are the same terms and numbers."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import spaseq

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = [
    *(f'"{n}"^^<{XSD}integer>' for n in range(8)),
    *(f'"{n}"^^<{XSD}integer>' for n in ("007", "+7", "-0", "-12")),
    f'"{10**15 - 1}"^^<{XSD}integer>',
    f'"{10**15}"^^<{XSD}integer>',
]
OTHERS = [
    *(f'"{2**53 + n}"^^<{XSD}integer>' for n in range(3)),
    *(f'"7"^^<{XSD}{name}>' for name in ("int", "long", "byte", "decimal", "double", "float")),
    f'"7.0"^^<{XSD}decimal>',
    f'"7"^^<{XSD}nonNegativeInteger>',
    '"7"^^<http://e/integer>',
    '"seven"',
    "<http://e/7>",
]


def events(terms: list[str]) -> list[str]:
    """The triples of events, of two terms each."""
    random = Random(5)
    return [
        f"<http://e/s{i % 3}> <http://e/{'ab'[i % 2]}> {random.choice(terms)} .\n"
        f"<http://e/s{i % 3}> <http://e/u> {random.choice(terms)} .\n"
        for i in range(400)
    ]


def stream(path: Path, terms: list[str]) -> str:
    """The same events as N-Quads, a millisecond apart."""
    lines = []
    for i, event in enumerate(events(terms)):
        graph = f"<http://e/g{i}>"
        lines.append(event.replace(" .", f" {graph} ."))
        time = f'"{i}"^^<{XSD}integer>'
        lines.append(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} {graph} .\n")
    (path / "s.nq").write_text("".join(lines))
    return str(path / "s.nq")


@pytest.mark.parametrize(
    "terms", [NUMBERS[:-1], NUMBERS, NUMBERS + OTHERS], ids=["15", "16", "all"]
)
@pytest.mark.parametrize("sign", "+-")
def test_a_sum_is_the_term_that_a_single_event_gives(
    terms: list[str], sign: str, tmp_path: Path
) -> None:
    """Sums of single events are made one by one."""
    query = f"""PREFIX : <http://e/> SELECT ?v ?u ?d WITHIN 1 SECONDS FROM STREAM S <http://e/s>
        WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :a ?v ; :u ?u BIND (?v {sign} ?u AS ?d) }} }}"""
    path = stream(tmp_path, terms)
    together = [m.answer.bindings for m in spaseq.run(query, {"S": path}, runtime="local")]
    engine, found = spaseq.Engine(query), list[Any]()
    for i, event in enumerate(events(terms)):
        found += [m.answer.bindings for m in engine.push("S", event, i)]
    assert together == found
    assert len(found) == 200


@pytest.mark.parametrize("terms", [NUMBERS[:-1], NUMBERS + OTHERS], ids=["15", "all"])
def test_members_of_a_family_compare_sums_exactly(terms: list[str], tmp_path: Path) -> None:
    constants = ["0", "1", "-12", "7.0", "7e0", str(2**53), str(2**53 + 1), str(10**15 - 1)]
    queries = [
        f"""PREFIX : <http://e/> SELECT ?v ?w WITHIN 1 SECONDS FROM STREAM S <http://e/s>
        WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :a ?v FILTER (?v > {least}) }}
        DEFINE GPM B ON S {{ ?x :b ?w FILTER (?w < ?v - {fall}) }} }}"""
        for least in ("-99", "5")
        for fall in constants
    ]
    path, found = stream(tmp_path, terms), list[list[Any]]()
    for disable in ([], ["query-families"]):
        own = spaseq.run(queries, {"S": path}, runtime="local", disable=disable)
        found.append([(m.query, m.answer) for m in own])
    assert found[0] == found[1]
    assert len({query for query, _ in found[0]}) > len(constants)


def test_a_sum_joins_with_equal_terms(tmp_path: Path) -> None:
    query = """PREFIX : <http://e/> SELECT ?d WITHIN 1 SECONDS FROM STREAM S <http://e/s>
        WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x :a ?v ; :u ?u BIND (?v - ?u AS ?d) }
        DEFINE GPM B ON S { ?x :b ?d } }"""
    path = stream(tmp_path, NUMBERS[:8])
    found = [m.answer for m in spaseq.run(query, {"S": path}, runtime="local")]
    engine, one_by_one = spaseq.Engine(query), list[Any]()
    for i, event in enumerate(events(NUMBERS[:8])):
        one_by_one += [m.answer for m in engine.push("S", event, i)]
    one_by_one += [m.answer for m in engine.close()]
    assert [a.bindings for a in found] == [a.bindings for a in one_by_one]
    assert len(found) > 50
