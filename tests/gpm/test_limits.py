"""Limits on the solutions, the time and the memory of graph patterns on single events."""

from __future__ import annotations

import numpy as np
import pytest

from spaseq.algebra.groups import translate_group
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.limits import Limits
from tests.gpm.graphs import Triple, batch_of, group_of, knowledge_of
from tests.hostile import run_bounded
from tests.thresholds import Force

P, Q = "<http://e/p>", "<http://e/q>"
FEW = Limits(solutions=100, timeout_s=20)


def star(size: int) -> list[Triple]:
    return [(f"<http://e/s{i}>", P, f"<http://e/o{i}>") for i in range(size)]


SMALL, LARGE = star(3), star(40)
KB = {"http://e/kb0": [(f"<http://e/k{i}>", Q, f"<http://e/l{i}>") for i in range(40)]}

TOO_MANY = {
    "cross product": "{ ?a :p ?b . ?c :p ?d }",
    "cross product of filtered": "{ ?a :p ?b . ?c :p ?d FILTER(?a != ?c) }",
    "union": "{ { ?a :p ?b } UNION { ?a :p ?b } UNION { ?a :p ?b } }",
    "optional": "{ ?a :p ?b OPTIONAL { ?c :p ?d } }",
    "sub-SELECT": "{ ?a :p ?b { SELECT ?c { ?c :p ?d } } }",
    "VALUES": "{ ?a :p ?b VALUES ?x { 1 2 3 } VALUES ?y { 4 5 6 } }",
    "MINUS": "{ ?a :p ?b . ?c :p ?d MINUS { ?a :p ?d } }",
    "group of a product": "{ { SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?c :p ?d } } }",
    "knowledge base": "{ ?a :p ?b GRAPH <http://e/kb0> { ?k :q ?l } }",
}


@pytest.mark.parametrize("pattern", TOO_MANY.values(), ids=list(TOO_MANY))
def test_an_event_with_too_many_solutions_has_none_and_the_others_have_theirs(pattern: str) -> None:
    events = [SMALL, LARGE, SMALL, SMALL, LARGE, SMALL]
    evaluator = GpmEvaluator(translate_group(group_of(pattern)), knowledge_of(KB), limits=FEW)
    if pattern == TOO_MANY["knowledge base"]:
        events = [star(1), star(3), star(1), star(1), star(3), star(1)]
    found = evaluator.evaluate(batch_of(events))
    assert set(found.event.tolist()) == {0, 2, 3, 5}
    assert [*evaluator.take_exceeding()] == [1, 4]
    free = GpmEvaluator(translate_group(group_of(pattern)), knowledge_of(KB))
    whole = free.evaluate(batch_of(events))
    kept = ~np.isin(whole.event, [1, 4])
    assert found.event.tolist() == whole.event[kept].tolist()
    for name, codes in found.columns.items():
        texts = [found.terms[c] for c in codes.tolist()]
        assert sorted(texts) == sorted(whole.terms[c] for c in whole.columns[name][kept].tolist())


def test_the_reason_names_the_limit() -> None:
    evaluator = GpmEvaluator(
        translate_group(group_of(TOO_MANY["cross product"])), knowledge_of({}), limits=FEW
    )
    evaluator.evaluate(batch_of([LARGE]))
    assert evaluator.take_exceeding() == {
        0: "a graph pattern has more than 100 intermediate solutions (--max-solutions)"
    }
    assert evaluator.take_exceeding() == {}


def test_a_part_over_the_knowledge_base_alone_has_its_own_bound() -> None:
    kb = {"http://e/kb0": [(f"<http://e/k{i}>", Q, f"<http://e/l{i}>") for i in range(400)]}
    pattern = "{ ?a :p ?b GRAPH <http://e/kb0> { { ?k :q ?l . ?m :q ?n } UNION { ?k :p ?l } } }"
    evaluator = GpmEvaluator(translate_group(group_of(pattern)), knowledge_of(kb), limits=FEW)
    for _ in range(2):
        assert not len(evaluator.evaluate(batch_of([SMALL, SMALL])).event)
        exceeding = evaluator.take_exceeding()
        assert [*exceeding] == [0, 1]
        assert "the part that reads no event" in exceeding[0]


def test_a_batch_that_runs_too_long_is_evaluated_in_parts(
    monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    """A search without solutions ends, too; other events of the batch keep theirs."""
    monkeypatch.setattr("spaseq.gpm.graphs.event_bgp.STEPS", 1_000)
    force("budget_parts=2")
    pattern = translate_group(group_of("{ ?a ?x ?b . ?c ?y ?d . ?e ?z ?f . ?g ?u ?h . ?a :q ?h }"))
    endless = [*star(47), ("<http://e/z>", Q, "<http://e/none>")]
    evaluator = GpmEvaluator(pattern, knowledge_of({}), limits=Limits(timeout_s=0.2))
    good = [("<http://e/s>", Q, "<http://e/o>")]
    found = evaluator.evaluate(batch_of([good, good, endless, good]))
    assert set(found.event.tolist()) >= {0, 1, 3}
    assert evaluator.take_exceeding().keys() <= {2}


def test_memory_that_ends_is_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    evaluator = GpmEvaluator(translate_group(group_of("{ ?a :p ?b }")), knowledge_of({}))
    monkeypatch.setattr(evaluator, "_evaluated", full)
    assert not len(evaluator.evaluate(batch_of([SMALL, SMALL])).event)
    assert evaluator.take_exceeding() == dict.fromkeys((0, 1), "there is not enough memory for it")


PUSH = """
import spaseq
bad = []
query = '''PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S %s }'''
engine = spaseq.Engine(query, on_bad=bad.append, limits=spaseq.Limits(timeout_s=20))
hostile = "\\n".join(f"<http://e/s{i}> <http://e/p> <http://e/o{i}> ." for i in range(2000))
good = '<http://e/s> <http://e/p> <http://e/o> .'
found = []
for time, graph in enumerate([good, hostile, good]):
    found += engine.push("S", graph, 1000 * time)
found += engine.close()
print([m.answer.end[0] for m in found], [b.reason[:16] for b in bad], [b.over_limit for b in bad])
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pattern",
    [
        "{ ?a :p ?b . ?c :p ?d . ?e :p ?f . ?g :p ?h }",
        "{ { ?a :p ?b } { ?c :p ?d FILTER(?c != ?d) } OPTIONAL { ?e :p ?f . ?g :p ?h } }",
        "{ ?a :p ?b { SELECT (COUNT(*) AS ?n) { ?c :p ?d . ?e :p ?f . ?g :p ?h } } }",
    ],
    ids=["triples", "joins", "sub-SELECT"],
)
def test_the_engine_goes_on_after_a_hostile_event(pattern: str) -> None:
    done = run_bounded(PUSH % pattern, seconds=200)
    assert done.stdout == "[0, 2000] ['exceeds a limit:'] [True]\n", done.stderr


HONEST = """
from tests.gpm.graphs import batch_of, group_of, knowledge_of
from spaseq.algebra.groups import translate_group
from spaseq.gpm.evaluator import GpmEvaluator
pairs = [(i, j) for i in range(6) for j in range(2)]
event = [(f"<http://e/s{i}>", "<http://e/p>", f"<http://e/o{j}>") for i, j in pairs]
pattern = "{ ?a :p ?b . ?c :p ?d OPTIONAL { ?c :p ?e } }"
evaluator = GpmEvaluator(translate_group(group_of(pattern)), knowledge_of({}))
found = evaluator.evaluate(batch_of([event] * 8_000))
print(len(found.event), evaluator.take_exceeding())
"""


@pytest.mark.thorough
def test_a_batch_with_more_solutions_than_its_bound_is_answered_in_one_gigabyte() -> None:
    """8,000 events with 288 solutions each: more than a batch may have, far less than an event."""
    done = run_bounded(HONEST, seconds=200)
    assert done.stdout == "2304000 {}\n", done.stderr[-1000:]
