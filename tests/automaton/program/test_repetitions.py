"""Repetitions with large bounds are counted: neither time nor memory depends on the bounds."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.api.explain import explain
from spaseq.automaton.program.compiler import FEW_STATES, MOST_STATES
from spaseq.compile import CompileOptions, check_query, compile_query
from spaseq.plan.query_plan import QueryPlan
from tests.automaton.cases import letters, query, run, words
from tests.sizes import first_of

HUGE = 10**30
STREAM = "a1 b1 b2 c1 b3 b4 c2"
EXPECTED = ["a1 b1 b2 c1", "a1 b1 b2 b3 c2", "a1 b1 b2 b3 b4 c2"]


def text(sequence: str, **rest: str) -> str:
    return query(sequence, letters("")[0], **rest)


def plan(sequence: str, evaluator: str | None = None, **rest: str) -> QueryPlan:
    return compile_query(text(sequence, **rest), options=CompileOptions(evaluator=evaluator))


def answers(sequence: str, stream: str, evaluator: str | None = None, **rest: str) -> list[str]:
    found, _ = run(plan(sequence, evaluator, **rest), letters(stream)[1])
    return sorted(words(found, stream))


def test_small_bounds_are_unrolled() -> None:
    """Unrolled, states cost planning and memory."""
    small = plan(f"A; B{{1,{FEW_STATES - 2}}}; C")
    assert not small.sequence.program.bounds
    assert small.sequence.evaluator.name == "compiled-compact"
    large = plan(f"A; B{{1,{FEW_STATES}}}; C").sequence
    assert large.program.bounds
    assert len(large.program.automaton.states) == 4
    assert large.evaluator.name == "compiled-compact"


def test_the_register_kernel_runs_counted_repetitions() -> None:
    for count, counted in [(FEW_STATES - 2, False), (FEW_STATES, True)]:
        bounded = plan(f"A;[5 SECONDS] B{{1,{count}}}; C").sequence
        assert bool(bounded.program.bounds) == counted
        assert not counted or bounded.evaluator.name == "compiled-registers"


@pytest.mark.parametrize("evaluator", ["compiled-compact", "compiled-registers", "registers"])
def test_answers_of_counted_repetitions(evaluator: str) -> None:
    for sequence, stream, expected in [
        (f"A; B{{2,{HUGE}}}; C", STREAM, EXPECTED),
        (f"A; B{{2,{HUGE}}}; C", "a1 b1 c1", []),
        (f"A; B{{0,{HUGE}}}; C", "a1 b1 c1", ["a1 b1 c1", "a1 c1"]),
        (f"A; B{{{HUGE}}}; C", STREAM, []),
        (f"A; B{{{HUGE},}}; C", STREAM, []),
        (f"A, (B{{1,2}} | C){{2,{HUGE}}}", "a1 b1 c1", ["a1 b1 c1"]),
        (f"(A; B{{1,{HUGE}}}){{2,{HUGE}}}", "a1 b1 a2 b2", ["a1 b1 a2 b2"]),
    ]:
        assert answers(sequence, stream, evaluator) == sorted(expected)


def test_a_count_ends_at_its_bound() -> None:
    """The bound is large enough to be counted, and small enough to be reached."""
    stream = " ".join(["a0", *(f"b{i}" for i in range(MOST_STATES + 20)), "c0"])
    found = answers(f"A; B{{{MOST_STATES},{MOST_STATES + 9}}}; C", stream)
    assert sorted(len(word.split()) - 2 for word in found) == [
        *range(MOST_STATES, MOST_STATES + 10)
    ]


def test_a_counted_greedy_loop_in_last_place() -> None:
    """One with an upper bound may be full before its window closes."""
    full = " ".join(["a0", *(f"b{i}" for i in range(FEW_STATES))])
    sequence = f"A; B{{2,{FEW_STATES}}}+"
    assert plan(sequence).sequence.program.bounds
    assert answers(sequence, full) == [full]
    assert answers(sequence, "a0 b1 b2 b3") == ["a0 b1 b2 b3"]
    assert answers(sequence, "a0 b1") == []


def test_counted_repetitions_in_pairs_and_negated_steps() -> None:
    assert answers(f"(A AND B{{2,{HUGE}}}); C", "b1 a1 b2 c1") == ["b1 a1 b2 c1"]
    assert answers(f"A; (B{{2,{HUGE}}})!; C", "a1 b1 c1") == ["a1 c1"]
    assert answers(f"A; (B{{2,{HUGE}}})!; C", "a1 b1 b2 c1") == []


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "STRICT"])
def test_selection_among_counted_repetitions(strategy: str) -> None:
    unbounded = answers("A; B{2,}; C", STREAM, select=f"{strategy} *")
    assert answers(f"A; B{{2,{HUGE}}}; C", STREAM, select=f"{strategy} *") == unbounded


def test_a_counted_loop_with_aggregates_and_conditions() -> None:
    patterns = "DEFINE GPM A ON S { ?a <http://e/a> ?x } DEFINE GPM B ON S {"
    patterns += " ?b <http://e/b> ?y FILTER (?y > ?x && (!BOUND(PREV(?y)) || ?y > PREV(?y))) }"
    engine = spaseq.Engine(
        "SELECT ?x (COUNT(?y) AS ?n) (SUM(?y) AS ?s) WITHIN 1 HOURS AFTER MATCH SKIP TO NEXT EVENT"
        f" FROM STREAM S <http://e/s> SEQ(A; B{{2,{HUGE}}}) {{ {patterns} }}"
    )
    found = []
    for time, (kind, value) in enumerate([("a", 1), ("b", 0), ("b", 3), ("b", 2), ("b", 7)]):
        integer = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        event = f"<http://e/o> <http://e/{kind}> {integer} ."
        found += engine.push("S", event, time=1000 * time)
    found += engine.close()
    assert [(a.bindings["n"].to_python(), a.bindings["s"].to_python()) for a in found] == [(2, 10)]


def test_the_state_of_a_counted_plan_is_told_from_that_of_an_unrolled_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = plan("A; B{2,3}", "registers").signature.fingerprint
    monkeypatch.setattr("spaseq.automaton.program.compiler.MOST_STATES", 0)
    assert plan("A; B{2,3}", "registers").signature.fingerprint != before


def test_the_automaton_is_drawn_with_counters() -> None:
    counted, unrolled = (
        str(explain(text("A; B{2,1000000}; C"))),
        str(explain(text("A; B{2,60}; C"))),
    )
    drawn = "counter of repetition 0: again below 1,000,000, exit from 2 on\nstate 0: start\n"
    assert drawn in counted
    assert "drawn with counters; unrolled, as it runs, it has 63 states" in unrolled
    assert "after B#1" in unrolled
    assert "after B#2" not in unrolled


@pytest.mark.parametrize(
    "sequence", first_of(["A; " + "B?; " * 500 + "C", "; ".join(["A", "B", "C"] * 7000)], 1)
)
def test_a_sequence_that_is_too_large_is_an_error_with_its_place(sequence: str) -> None:
    (found,) = check_query(text(sequence)).errors
    assert found.code == "too-large"
    assert found.message.startswith("the automaton of this sequence has more than 20,000 edges: ")
    assert found.span.end - found.span.start == len(sequence)
