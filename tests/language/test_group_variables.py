"""PREV, and group variables in later steps (docs/meaning.md#group-variables)."""

from __future__ import annotations

import pytest

import spaseq
from tests.language.test_original import event
from tests.language.test_tables import RUNTIMES

QUERY = """PREFIX : <http://example/>
SELECT {select} WITHIN 1 HOURS FROM STREAM S1 <http://example/s1>
WHERE {{ SEQ(A, B+, C)
  DEFINE GPM A ON S1 {{ ?a :price ?pa FILTER(?pa >= 90) }}
  DEFINE GPM B ON S1 {{ ?b :price ?pb FILTER({b}) }}
  DEFINE GPM C ON S1 {{ ?c :price ?pc FILTER({c}) }} }}"""

PRICES = [90, 5, 4, 3, 50]


def run(select: str, b: str, c: str, runtime: str) -> list[list[object]]:
    stream = [event(p, i) for i, p in enumerate(PRICES)]
    matches = spaseq.run(QUERY.format(select=select, b=b, c=c), {"S1": stream}, runtime=runtime)
    return [[t.to_python() for t in m.bindings.values()] for m in matches]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    "falls",
    [
        "!BOUND(PREV(?pb)) || ?pb < PREV(?pb)",
        "?pb < COALESCE(PREV(?pb), ?pa)",
    ],
)
def test_prev_is_the_repetition_before_and_unbound_in_the_first(falls: str, runtime: str) -> None:
    select = "?pb ?pc (LIST(?pb) AS ?all) (COUNT(?pb) AS ?n) (FIRST(?pb) AS ?first)"
    found = run(select, falls, "?pc > ?pb", runtime)
    assert found == [[3, 50, [5, 4, 3], 3, 5]]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_aggregates_in_a_later_filter(runtime: str) -> None:
    assert run("?pc", "?pb < 10", "?pc > AVG(?pb) && COUNT(?pb) = 3", runtime) == [[50]]
    assert run("?pc", "?pb < 10", "COUNT(?pb) = 2", runtime) == [[3]]
    assert run("?pc", "?pb < 10", "COUNT(?pb) = 4", runtime) == []


@pytest.mark.parametrize(
    "pattern", ["?s :twin ?b . ?s :twin ?a", "?s :twin ?b OPTIONAL { ?s :twin ?a }"]
)
def test_steps_of_a_repetition_that_join_have_one_value(pattern: str) -> None:
    engine = spaseq.Engine(
        "PREFIX : <http://example/> SELECT ?a (LIST(?a) AS ?all) (COUNT(?a) AS ?n) "
        "WITHIN 1 HOURS FROM STREAM S1 <http://example/s1> WHERE { SEQ((A; B)+) "
        f"DEFINE GPM A ON S1 {{ ?x :name ?a }} DEFINE GPM B ON S1 {{ {pattern} }} }}"
    )
    found = []
    for i, (name, predicate) in enumerate([(1, "name"), (1, "twin"), (2, "name"), (2, "twin")]):
        triple = f'<http://example/o> <http://example/{predicate}> "{name}" .'
        found += engine.push("S1", triple, time=1000 * i)
    found += engine.close()
    values = [[t.to_python() for t in m.bindings.values()] for m in found]
    assert sorted(values, key=str) == [["1", ["1"], 1], ["2", ["1", "2"], 2], ["2", ["2"], 1]]
