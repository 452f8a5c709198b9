"""SELECT STRICT on compiled registers: each step takes the next instant of the partition."""

from __future__ import annotations

from random import Random

import pytest

from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.compile import compile_query
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, query, run
from tests.automaton.cases import plans as every_plan
from tests.automaton.keyed_streams import (
    ODD,
    agreed,
    integer,
    plans,
    solutions,
    stream,
    used,
)
from tests.sizes import first_of


def strict(sequence: str, within: str = "40 SECONDS", rest: str = "") -> str:
    return query(sequence, used(sequence), within, "STRICT *", "PARTITION BY (?k)", rest)


@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("A; B", "40 SECONDS"),
        ("A: B: C", "40 SECONDS"),
        ("A; N!; B", "40 SECONDS"),
        ("A; R+; C?", "40 SECONDS"),
        ("A: G{1,3}", "5 EVENTS"),
        ("A;[1 SECONDS] B: C?", "10 SECONDS TUMBLING"),
        ("A, B: C", "40 SECONDS"),
        ("A; (B AND C)", "40 SECONDS"),
        ("A; (B; C AND N)", "40 SECONDS"),
    ],
)
def test_long_streams(sequence: str, within: str, keys: int) -> None:
    compiled, python = plans(strict(sequence, within))
    events = stream(sorted(used(sequence)), 500, keys, 5, ties=True)
    assert agreed(compiled, python, events) or keys > 1  # few match then


def test_having_and_after_match() -> None:
    """HAVING comes before the selection, AFTER MATCH behind it."""
    text = strict("A: B", rest="AFTER MATCH SKIP PAST LAST EVENT") + " HAVING (?va > 20)"
    compiled, python = plans(text)
    events = stream("AB", 300, 1, 5)
    expected = run(python, events)[0]
    assert len(expected) > 10
    assert run(compiled, events)[0] == expected


@pytest.mark.parametrize("odd", first_of(sorted(ODD), 2))
def test_the_evaluator_in_python_goes_on(odd: str) -> None:
    compiled, python = plans(strict("A: R+; C?"))
    events = stream("ARC", 120, 1, 2)
    for i in range(120, 200):
        name = "ARC"[i % 7 % 3]
        value = ODD[odd] if i % 5 == 0 else integer(7 * i % 100)
        given = solutions(Random(i), name, value, 1)
        events.append(Event(events[-1].time + 1000, 0, 0, {name: given}))
    assert agreed(compiled, python, events, pieces=[30], restarts=[])


@pytest.mark.parametrize("sequence", ["A; B", "A: B"])
def test_the_planner_chooses_it(sequence: str) -> None:
    stage = SequenceStage(compile_query(strict(sequence)))
    assert isinstance(stage._sequencer, RunSequencer)


@pytest.mark.parametrize("between", [False, True])
def test_a_conjunction_takes_the_next_instants(between: bool) -> None:
    def event(time: int, stream: int, name: str, value: int) -> Event:
        return Event(time, 0, stream, {name: solutions(Random(1), name, integer(value), 1)})

    events = [event(0, 0, "A", 50), event(1000, 0, "B", 60), event(1000, 1, "C", 40)]
    if between:
        events.insert(1, event(500, 0, "B", 60))
    compiled, python = plans(strict("A; (B & C)"))
    assert len(agreed(compiled, python, events, restarts=[0])) == int(not between)


def test_operands_that_may_alternate() -> None:
    evaluator = compile_query(strict("A; (B; C AND C; B)")).sequence.evaluator
    assert evaluator.name == "registers"
    assert "what comes next in an operand of AND depends on the other one" in evaluator.reason


def pairs(count: int, keys: bool = False) -> list[Event]:
    """An A each hour, and a B half a second later; with `keys`, each pair has a key of its own."""
    hour, events = 3_600_000, list[Event]()
    for i in range(count):
        key = f"<k{i if keys else 0}>"
        events.append(Event(hour * i, 0, 0, {"A": [{"a": "<a>", "k": key}]}))
        events.append(Event(hour * i + 500, 0, 0, {"B": [{"b": "<b>", "k": key}]}))
    return events


@pytest.mark.parametrize("sequence", ["A; B", "(A; N!; B)+", "A; B++", "A; (B | A; B)"])
def test_more_instants_than_the_evaluators_keep(sequence: str) -> None:
    """Each match is judged while the instants of its window are known."""
    gpms = {n: f"?{n.lower()} :k ?k" for n in "ABN" if n in sequence}
    text = query(sequence, gpms, "10 SECONDS", "STRICT *", rest="AFTER MATCH SKIP PAST LAST EVENT")
    for plan in every_plan(text).values():
        assert len(run(plan, pairs(600))[0]) == 600


def test_partitions_that_are_dropped_in_a_batch() -> None:
    gpms = {"A": "?a :k ?k", "B": "?b :k ?k", "N": "?n :k ?k FILTER(?n != ?a)"}
    text = query("(N, B)!; A; B", gpms, "10 SECONDS", "STRICT *", "PARTITION BY (?k)")
    for plan in every_plan(text).values():
        assert len(run(plan, pairs(200, keys=True))[0]) == 200


def test_loops_that_may_be_empty() -> None:
    """`D, E{0,2}+` without any E is D alone."""
    gpms = {"D": "?d :is ?x", "E": "?e :is ?y"}
    text = query("D, E{0,2}+", gpms, "10 SECONDS", "STRICT *")
    events = [Event(3_600_000 * i, 0, 0, {"D": [{"d": "<d>", "x": "<x>"}]}) for i in range(1500)]
    for plan in every_plan(text).values():
        assert len(run(plan, events)[0]) == 1500
