"""Computed literals: bounded by the limit, alone and together, wherever they are computed."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.aggregates import as_list, group_concat
from spaseq.expr.functions.strings import concatenation, encode_for_uri, replaced, upper
from spaseq.limits import Limits
from spaseq.rdf.inputs.stream_options import BadInput
from tests.hostile import run_bounded

SMALL = Limits(literal_bytes=100)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: concatenation(*["a" * 30] * 4),
        lambda: concatenation("é" * 51),
        lambda: encode_for_uri("é" * 20),
        lambda: upper("ß" * 60),
        lambda: replaced("a" * 50, "a", "bcd"),
        lambda: replaced("a" * 50, "(a+)", "$1$1$1"),
        lambda: group_concat(", ")(['"abcdefghij"'] * 12),
        lambda: as_list(['"abcdefghij"'] * 12),
    ],
)
def test_a_longer_literal_exceeds_the_limit(compute) -> None:  # type: ignore[no-untyped-def]
    with spending(Budget(SMALL)), pytest.raises(LimitExceeded, match="100 bytes"):
        compute()
    assert compute() is not None


def test_a_literal_of_just_the_limit_is_made() -> None:
    with spending(Budget(SMALL)):
        assert concatenation("a" * 50, "b" * 50) == "a" * 50 + "b" * 50
        assert group_concat("")(['"é"'] * 50) == f'"{"é" * 50}"'


DOUBLE = " ".join(f"BIND(CONCAT(?x{i}, ?x{i}) AS ?x{i + 1})" for i in range(40))
QUERY = f"""PREFIX : <http://e/> SELECT ?s WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s :p ?x0 {DOUBLE} }} }}"""
EVENT = '<http://e/{}> <http://e/p> "{}" .'


def test_doubling_a_literal_makes_its_event_bad() -> None:
    bad: list[BadInput] = []
    engine = spaseq.Engine(QUERY, on_bad=bad.append, limits=Limits(literal_bytes=10**6))
    found = engine.push("S", EVENT.format("a", ""), 0)
    found += engine.push("S", EVENT.format("b", "xx"), 1)
    found += engine.push("S", EVENT.format("c", ""), 2)
    found += engine.close()
    assert [m.bindings["s"].n3() for m in found] == ["<http://e/a>", "<http://e/c>"]
    (one,) = bad
    assert "a computed literal has more than 1,000,000 bytes" in one.reason
    assert one.over_limit


@pytest.mark.parametrize(
    "condition", ["STRLEN(CONCAT(?x, ?x)) > 1", "CONTAINS(REPLACE(?x, 'x', 'yy'), 'y')"]
)
def test_filters_of_single_events_obey_the_limits_of_the_run(condition: str) -> None:
    bad: list[BadInput] = []
    query = f"""PREFIX : <http://e/> SELECT ?s WITHIN 1 HOURS FROM STREAM S <http://e/s>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s :p ?x FILTER({condition}) }} }}"""
    engine = spaseq.Engine(query, on_bad=bad.append, limits=SMALL)
    found = engine.push("S", EVENT.format("a", "x" * 20), 0)
    found += engine.push("S", EVENT.format("b", "x" * 80), 1)
    found += engine.close()
    assert len(found) == 1 and len(bad) == 1


@pytest.mark.parametrize(
    ("head", "filter_b", "answers"),
    [
        ("SELECT (CONCAT(?x, ?y) AS ?z)", "", 1),
        ("SELECT ?x", "FILTER(CONCAT(?x, ?y) != '')", 0),
    ],
    ids=["answer", "sequence"],
)
def test_expressions_over_several_events_are_errors(head: str, filter_b: str, answers: int) -> None:
    bad: list[BadInput] = []
    query = f"""PREFIX : <http://e/> {head} WITHIN 1 HOURS FROM STREAM S <http://e/s>
    WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?s :p ?x }}
    DEFINE GPM B ON S {{ ?s :q ?y {filter_b} }} }}"""
    engine = spaseq.Engine(query, on_bad=bad.append, limits=SMALL)
    found = engine.push("S", EVENT.format("a", "x" * 60), 0)
    found += engine.push("S", EVENT.format("a", "y" * 60).replace("/p>", "/q>"), 1)
    found += engine.close()
    assert len(found) == answers
    assert all("z" not in m.bindings for m in found)
    (one,) = bad
    assert "100 bytes" in one.reason


MANY = """
import spaseq
bad = []
query = '''PREFIX : <http://e/> SELECT ?s WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?s :p ?x . ?t :q ?y %s } }'''
engine = spaseq.Engine(query, on_bad=bad.append)
long = '<http://e/s> <http://e/p> "' + "x" * 4_000_000 + '" .\\n'
hostile = long + "\\n".join(f'<http://e/t{i}> <http://e/q> "{i}" .' for i in range(5_000))
good = '<http://e/s> <http://e/p> "x" .\\n<http://e/t> <http://e/q> "1" .'
found = []
for time, graph in enumerate([good, hostile, good]):
    found += engine.push("S", graph, 1000 * time)
found += engine.close()
print([m.answer.end[0] for m in found], [b.reason[:16] for b in bad])
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "tail",
    [
        "BIND(CONCAT(?x, ?y) AS ?z)",
        "FILTER(STRLEN(CONCAT(?x, ?y)) > 1)",
        "BIND(REPLACE(?x, 'x', CONCAT(?y, ?x)) AS ?z)",
        "{ SELECT ?s (GROUP_CONCAT(?v) AS ?z) { ?s :p ?v . ?u :q ?w } GROUP BY ?s }",
        "{ SELECT ?s (GROUP_CONCAT(CONCAT(?v, ?w)) AS ?z) { ?s :p ?v . ?u :q ?w } GROUP BY ?s }",
    ],
)
def test_many_long_literals_make_their_event_bad(tail: str) -> None:
    """5,000 literals of 4 MB are 20 GB."""
    done = run_bounded(MANY % tail, seconds=200)
    assert done.stdout == "[0, 2000] ['exceeds a limit:']\n", done.stderr[-2000:]
