"""Graph patterns on batches of events, in cases that SPARQL 1.1 decides."""

from __future__ import annotations

import numpy as np
import pytest
import rdflib

import spaseq
from spaseq.algebra.groups import translate_group
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.graphs import paths
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.patterns.exists import Existence, with_alternatives
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.plan.pattern_plan import FASTEST, PatternEvaluation
from tests.gpm.graphs import batch_of, group_of, knowledge_of, solutions

P, Q, R = (f"<http://e/{name}>" for name in "pqr")
A, B, C = (f"<http://e/{name}>" for name in "abc")
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
ONE, TWO, ZERO_ONE = f'"1"{INTEGER}', f'"2"{INTEGER}', f'"01"{INTEGER}'
KB = "http://e/kb0"


def rows(*bindings: dict[str, str]) -> dict[frozenset[tuple[str, str]], int]:
    """A multiset of solutions."""
    found: dict[frozenset[tuple[str, str]], int] = {}
    for binding in bindings:
        key = frozenset(binding.items())
        found[key] = found.get(key, 0) + 1
    return found


def test_solutions_belong_to_their_event():
    events = [[(A, P, ONE)], [], [(A, P, TWO), (B, P, TWO)]]
    assert solutions("{ ?x :p ?y }", events) == [
        rows({"x": A, "y": ONE}),
        rows(),
        rows({"x": A, "y": TWO}, {"x": B, "y": TWO}),
    ]


def test_triples_of_different_events_do_not_join():
    assert solutions("{ ?x :p ?y ; :q ?z }", [[(A, P, ONE)], [(A, Q, TWO)]]) == [rows(), rows()]


def test_blank_nodes_of_different_events_do_not_join():
    events = [[("_:n", P, ONE)], [("_:n", Q, TWO)], [("_:n", P, ONE), ("_:n", Q, TWO)]]
    found = solutions("{ ?x :p ?y ; :q ?z }", events)
    assert found == [rows(), rows(), rows({"x": "_:n", "y": ONE, "z": TWO})]


def test_a_triple_that_stands_in_an_event_twice_counts_once():
    twice = [(A, P, ONE), (A, P, ONE)]
    assert solutions("{ ?x :p ?y }", [twice]) == [rows({"x": A, "y": ONE})]
    assert solutions("{ ?x ?p ?y }", [twice]) == [rows({"x": A, "p": P, "y": ONE})]


def test_joins_are_by_term_and_filters_by_value():
    event = [(A, P, ONE), (B, Q, ZERO_ONE)]
    assert solutions("{ ?x :p ?v . ?y :q ?v }", [event]) == [rows()]
    found = solutions("{ ?x :p ?v . ?y :q ?w FILTER(?v = ?w) }", [event])
    assert found == [rows({"x": A, "v": ONE, "y": B, "w": ZERO_ONE})]


def test_a_constant_is_found_by_its_term():
    events = [[(A, P, ONE)], [(A, P, ZERO_ONE)], [(A, P, B)]]
    assert solutions("{ ?x :p 1 }", events) == [rows({"x": A}), rows(), rows()]
    assert solutions("{ :a :p :b }", events) == [rows(), rows(), rows({})]


def test_a_variable_may_stand_in_several_places():
    event = [(A, A, A), (A, A, B), (A, P, A), (P, P, A)]
    assert solutions("{ ?x ?x ?x }", [event]) == [rows({"x": A})]
    assert solutions("{ ?x :p ?x }", [event]) == [rows({"x": A})]
    assert solutions("{ ?x ?x ?y }", [event]) == [
        rows({"x": A, "y": A}, {"x": A, "y": B}, {"x": P, "y": A})
    ]


def test_blank_nodes_of_the_pattern_are_no_variables_but_count():
    event = [(A, P, ONE), (A, P, TWO)]
    assert solutions("{ ?x :p [] }", [event]) == [rows({"x": A}, {"x": A})]


def test_patterns_without_a_common_variable_make_every_combination_within_an_event():
    event = [(A, P, ONE), (B, P, ONE), (A, Q, TWO)]
    assert solutions("{ ?x :p 1 . ?y :q 2 }", [event, []]) == [
        rows({"x": A, "y": A}, {"x": B, "y": A}),
        rows(),
    ]


def test_the_empty_pattern_matches_every_event_once():
    assert solutions("{}", [[], [(A, P, ONE)]]) == [rows({}), rows({})]


def test_no_events_have_no_solutions():
    assert solutions("{ ?x :p ?y FILTER(?y > 1) }", []) == []
    assert solutions("{}", []) == []


def test_a_filter_over_an_unbound_variable_is_false():
    assert solutions("{ ?x :p ?y FILTER(?z > 1) }", [[(A, P, ONE)]]) == [rows()]
    assert solutions("{ ?x :p ?y FILTER(!BOUND(?z)) }", [[(A, P, ONE)]]) != [rows()]


def test_a_filter_in_an_inner_group_does_not_see_the_outer_one():
    events = [[(A, P, ONE), (A, Q, TWO)]]
    assert solutions("{ ?x :p ?y { ?x :q ?z FILTER(?y < ?z) } }", events) == [rows()]
    assert solutions("{ ?x :p ?y . ?x :q ?z FILTER(?y < ?z) }", events) != [rows()]


@pytest.mark.parametrize(
    ("path", "count"),
    [(":p|:p", 2), (":p?", 1), (":p*", 1), (":p+", 1), ("(:p|:p)+", 1), ("!:q", 1), ("!:p", 0)],
)
def test_alternatives_count_twice_and_repetitions_once(path, count):
    [found] = solutions(f"{{ :a {path} :b }}", [[(A, P, B)]])
    assert found == ({frozenset(): count} if count else {})


def test_a_path_of_length_zero_joins_a_constant_that_is_nowhere_with_itself():
    assert solutions("{ :c :p* ?x }", [[(A, P, B)]]) == [rows({"x": C})]
    assert solutions("{ ?x :p? :c }", [[]]) == [rows({"x": C})]


def test_paths_stay_within_their_event():
    events = [[(A, P, B)], [(B, P, C)], [(A, P, B), (B, P, C)]]
    assert solutions("{ :a :p+ ?x }", events) == [
        rows({"x": B}),
        rows(),
        rows({"x": B}, {"x": C}),
    ]


# --- knowledge base ------------------------------------------------------------------------------


def test_a_graph_block_joins_event_and_knowledge_base():
    kb = {KB: [(A, Q, B), (A, Q, C), (B, Q, C)]}
    events = [[(A, P, ONE)], [(C, P, ONE)], [(B, P, ONE), (B, P, TWO)]]
    assert solutions("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }", events, kb) == [
        rows({"x": A, "y": ONE, "z": B}, {"x": A, "y": ONE, "z": C}),
        rows(),
        rows({"x": B, "y": ONE, "z": C}, {"x": B, "y": TWO, "z": C}),
    ]


def test_a_join_on_three_variables_with_the_knowledge_base():
    kb = {KB: [(A, P, ONE), (A, Q, ONE), (B, Q, TWO)]}
    events = [[(A, P, ONE), (B, P, TWO)], [(B, Q, TWO), (B, Q, ONE)]]
    assert solutions("{ ?x ?y ?z GRAPH :kb0 { ?x ?y ?z } }", events, kb) == [
        rows({"x": A, "y": P, "z": ONE}),
        rows({"x": B, "y": Q, "z": TWO}),
    ]


def test_parts_of_a_graph_block_that_share_no_variable_join_the_event_one_by_one():
    kb = {KB: [(f"<http://e/{i}>", Q, f'"{i}"') for i in range(3000)]}
    event = [("<http://e/7>", P, "<http://e/8>")]
    block = "GRAPH :kb0 { ?x :q ?m . ?y :q ?n FILTER(?m != ?n) FILTER(?n != '9') }"
    assert solutions(f"{{ ?x :p ?y {block} }}", [event, []], kb) == [
        rows({"x": "<http://e/7>", "y": "<http://e/8>", "m": '"7"', "n": '"8"'}),
        rows(),
    ]


def test_a_graph_that_is_not_loaded_has_no_solutions_not_even_the_empty_one():
    assert solutions("{ GRAPH :kb1 {} }", [[]], {KB: []}) == [rows()]
    assert solutions("{ GRAPH :kb0 {} }", [[]], {KB: []}) == [rows({})]


def test_a_knowledge_base_blank_node_is_none_of_the_event_s(tmp_path):
    from spaseq.kb.load import load_kb

    (tmp_path / "kb.ttl").write_text(f"_:n {Q} {ONE} .")
    kb = load_kb([(KB, tmp_path / "kb.ttl")])
    pattern = translate_group(group_of("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }"))
    found = GpmEvaluator(pattern, kb).evaluate(batch_of([[("_:n", P, ONE)]]))
    assert len(found.event) == 0


def test_one_evaluator_serves_many_batches():
    kb = knowledge_of({KB: [(A, Q, B), (B, Q, C)]})
    pattern = translate_group(group_of("{ ?x :p ?y GRAPH :kb0 { ?x :q ?z } }"))
    evaluator = GpmEvaluator(pattern, kb)
    for subject, other in ((A, B), (B, C), (A, B)):
        found = evaluator.evaluate(batch_of([[], [(subject, P, ONE)]]))
        assert found.event.tolist() == [1]
        assert {v: found.terms[c[0]] for v, c in found.columns.items()} == {
            "x": subject,
            "y": ONE,
            "z": other,
        }


# --- bindings ------------------------------------------------------------------------------------


def test_every_variable_has_a_column_and_codes_of_the_event_are_the_batch_s():
    batch = batch_of([[(A, P, ONE)]])
    pattern = translate_group(group_of("{ ?x :p ?y OPTIONAL { ?x :q ?z } BIND(7 AS ?w) }"))
    found = GpmEvaluator(pattern, knowledge_of({})).evaluate(batch)
    assert sorted(found.columns) == ["w", "x", "y", "z"]
    assert found.columns["z"].tolist() == [-1]
    assert found.columns["x"][0] < len(batch.terms) <= found.columns["w"][0]
    assert all(c.dtype == np.int32 for c in found.columns.values())
    assert found.event.dtype == np.int64


def test_patterns_may_share_the_partition_of_a_batch():
    batch = batch_of([[(A, P, ONE)], [(B, Q, TWO)]])
    index = VerticalPartition(batch)
    for text, event in (("{ ?x :p ?y }", 0), ("{ ?x :q ?y }", 1), ("{ ?x ?p 1 }", 0)):
        evaluator = GpmEvaluator(translate_group(group_of(text)), knowledge_of({}))
        assert evaluator.evaluate(index).event.tolist() == [event]
    assert batch.terms == batch_of([[(A, P, ONE)], [(B, Q, TWO)]]).terms


def test_patterns_with_constants_have_the_events_that_match():
    events = [[(A, P, ONE)], [(A, P, TWO), (B, Q, ONE)], [(A, Q, TWO)], [(B, P, TWO), (B, Q, TWO)]]
    index = VerticalPartition(batch_of(events))
    for text, expected in (
        ("{ ?x :p 1 }", [0]),
        ("{ ?x :p 2 ; :q ?y }", [3]),
        ("{ ?x :p 2 . ?y :q 1 }", [1]),
        ("{ ?x :p 7 }", []),
        ("{ { ?x :p 1 } UNION { ?x :q 1 } }", [0, 1]),
        ("{ ?x :p 2 MINUS { ?x :q 2 } }", [1]),
        ("{ ?z :p 1 OPTIONAL { ?z :q 2 } }", [0]),
        ("{ { SELECT (COUNT(*) AS ?n) { ?x :p 1 } } FILTER (?n = 0) }", [1, 2, 3]),
    ):
        evaluator = GpmEvaluator(translate_group(group_of(text)), knowledge_of({}))
        assert evaluator.evaluate(index).event.tolist() == expected, text


# --- sub-SELECT ----------------------------------------------------------------------------------


def test_aggregates_are_taken_over_each_event_by_itself():
    events = [[(A, P, ONE), (B, P, TWO)], [], [(A, P, TWO)]]
    assert solutions("{ { SELECT (COUNT(*) AS ?n) (SUM(?y) AS ?s) { ?x :p ?y } } }", events) == [
        rows({"n": TWO, "s": f'"3"{INTEGER}'}),
        rows({"n": f'"0"{INTEGER}', "s": f'"0"{INTEGER}'}),
        rows({"n": ONE, "s": TWO}),
    ]


def test_limits_hold_for_each_event_by_itself():
    events = [[(A, P, ONE), (B, P, TWO)], [(C, P, TWO), (A, P, ONE)]]
    found = solutions("{ { SELECT ?x { ?x :p ?y } ORDER BY DESC(?y) LIMIT 1 } }", events)
    assert found == [rows({"x": B}), rows({"x": C})]


# --- GRAPH, EXISTS and BNODE ---------------------------------------------------------------------


def test_graph_variables_range_over_the_graphs_that_the_query_names():
    text = """PREFIX : <http://e/> SELECT ?g ?y WITHIN 1 HOURS FROM STREAM S <http://e/s>
        FROM NAMED <http://e/kb0>
        SEQ(A) { DEFINE GPM A ON S { ?x :p ?v GRAPH ?g { ?x :q ?y } } }"""
    kb = {name: rdflib.Graph() for name in ("http://e/kb0", "http://e/kb1")}
    for number, graph in enumerate(kb.values()):
        graph.add((rdflib.URIRef(A[1:-1]), rdflib.URIRef(Q[1:-1]), rdflib.Literal(number)))
    engine = spaseq.Engine(text, kb)
    engine.push("S", f"{A} {P} {ONE} .", 1)
    [answer] = engine.close()
    assert answer.bindings["g"].n3() == "<http://e/kb0>"
    assert answer.bindings["y"].to_python() == 0


@pytest.mark.parametrize(
    ("exists", "expected"),
    [
        ("{ ?z :q ?w OPTIONAL { ?z :r ?y } }", True),
        ("{ ?x :q ?w MINUS { ?x :r ?y } }", False),
        ("{ ?x :q ?w { SELECT ?x { ?x :p ?v } ORDER BY ?v LIMIT 1 } }", True),
        ("{ ?x :q ?w FILTER NOT EXISTS { ?x :r ?y } }", False),
        ("{ ?x :q ?w BIND(?y + 1 AS ?u) FILTER(?u = 2) }", True),
        ("{ ?y :nowhere* ?u }", True),
        ("{ ?x :q ?w { ?x :q ?u FILTER(?w > ?u) } }", False),
        ("{ BIND(?y + 1 AS ?u) FILTER(?u = 2 && ?x = :a) }", True),
        ("{ BIND(?y + 1 AS ?u) FILTER(?u = 2 && ?x = :b) }", False),
        ("{ BIND(?y + 1 AS ?u) FILTER EXISTS { ?x :r 1 } }", True),
        ("{ { ?x :r ?w FILTER(?w > ?y) } UNION { ?z :q ?w FILTER(?w > ?y) } }", True),
        ("{ { ?x :r ?w FILTER(?w > ?y) } UNION { ?x :q ?w FILTER(?w < ?y) } }", False),
        ("{ ?x :q ?w { ?x :r ?w } UNION { ?z :q ?v FILTER(?v > ?y && ?z != ?x) } }", True),
    ],
)
def test_exists_has_the_values_of_the_solution_substituted_at_any_depth(exists, expected):
    event = [(A, P, ONE), (A, Q, TWO), (A, R, ONE), (B, Q, TWO)]
    found = solutions(f"{{ ?x :p ?y FILTER EXISTS {exists} }}", [event])
    assert found == [rows({"x": A, "y": ONE}) if expected else rows()]


def test_the_operands_of_a_union_in_exists_are_joined_each_by_itself() -> None:
    union = "{ { ?x :q ?w FILTER(?w > ?y) } UNION { GRAPH :kb { ?x :r ?w FILTER(?w < ?y) } } }"
    for text in (f"EXISTS {union}", f"NOT EXISTS {{ ?x :p ?z {{ GRAPH :kb {union} }} }}"):
        [condition] = group_of(f"{{ FILTER({text}) }}").elements
        assert isinstance(condition, ast.Filter)
        divided = exists_uses(with_alternatives(condition.expr, None))
        assert [Existence.of(use, None).substituted for use in divided] == 2 * [frozenset()]


@pytest.mark.parametrize(
    ("graph", "kept"),
    [
        ("EXISTS { GRAPH :kb0 { ?x :q ?z FILTER(?y = 9 || EXISTS { ?z :r ?w }) } }", [A]),
        ("NOT EXISTS { GRAPH :kb0 { ?x :q ?z FILTER(?y = 9 || NOT EXISTS { ?z :r ?w }) } }", [A]),
        ("EXISTS { GRAPH :kb0 { ?x :q ?z FILTER(?y = 2 || EXISTS { ?z :r ?w }) } }", [A, B]),
    ],
)
def test_exists_inside_a_graph_inside_exists_looks_into_the_graph(
    graph: str, kept: list[str]
) -> None:
    kb = {KB: [(A, Q, C), (C, R, ONE), (B, Q, B)]}
    [found] = solutions(f"{{ ?x :p ?y FILTER {graph} }}", [[(A, P, ONE), (B, P, TWO)]], kb)
    assert sorted(dict(row)["x"] for row in found) == kept


def test_a_label_has_one_blank_node_in_a_solution_and_another_in_the_next():
    event = [(A, P, ONE), (B, P, TWO)]
    text = '{ ?x :p ?y BIND(BNODE("l") AS ?a) BIND(BNODE("l") AS ?b) BIND(BNODE("m") AS ?c) }'
    [found] = solutions(text, [event])
    nodes = [dict(row) for row in found]
    assert all(row["a"] == row["b"] != row["c"] for row in nodes)
    assert len({row["a"] for row in nodes}) == 2


def test_operands_are_evaluated_on_the_events_that_match_so_far(monkeypatch) -> None:
    sizes = []
    original = paths.path_solutions

    def watched(source, pattern, events, given):
        sizes.append(events)
        return original(source, pattern, events, given)

    monkeypatch.setattr("spaseq.gpm.graphs.paths.path_solutions", watched)
    pattern = translate_group(group_of('{ ?x :is "hot" . ?x :next+ ?y }'))
    cold = [("<e:1>", "<http://e/next>", "<e:2>")]
    hot = [("<e:1>", "<http://e/is>", '"hot"'), *cold]
    for evaluation, seen in ((FASTEST, 1), (PatternEvaluation(), 4)):
        found = GpmEvaluator(pattern, knowledge_of({}), evaluation=evaluation).evaluate(
            batch_of([cold, cold, hot, cold])
        )
        assert found.event.tolist() == [2]
        assert [found.terms[c] for c in found.columns["y"]] == ["<e:2>"]
        assert sizes.pop() == seen


def test_a_filter_in_a_group_inside_an_optional_sees_that_group_alone():
    event = [(A, P, ONE), (A, Q, TWO)]
    found = solutions("{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?y = 1) } }", [event])
    assert found == [rows({"x": A, "y": ONE, "z": TWO})]
    found = solutions("{ ?x :p ?y OPTIONAL { { ?x :q ?z FILTER(?y = 1) } } }", [event])
    assert found == [rows({"x": A, "y": ONE})]
