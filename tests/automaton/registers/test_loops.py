"""Loops with numeric conditions in the register kernel: the same answers as registers in Python."""

from __future__ import annotations

import re
from random import Random

import pytest

from spaseq.algebra.answers import Answer
from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.compile import compile_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, letters, query
from tests.automaton.keyed_streams import (
    KEYED,
    ODD,
    agreed,
    integer,
    plans,
    solutions,
    stream,
)
from tests.sizes import SLOW, first_of, first_rows_of

STEPS = {
    **KEYED,
    "AVERAGE": "?average :k ?k ; :v ?vaverage FILTER(AVG(?vaverage) < 50)",
    "COUNTED": "?counted :k ?k ; :v ?vcounted FILTER(COUNT(?vcounted) < 4)",
    "DOUBLED": "?doubled :k ?k ; :v ?vdoubled FILTER(2 * SUM(?vdoubled) < 90)",
    "EXTREME": "?extreme :k ?k ; :v ?vextreme FILTER(?va <= MIN(?vextreme) && MAX(?vextreme) < 90)",
    "FIRST": "?first :k ?k ; :v ?vfirst FILTER(?vfirst >= FIRST(?vfirst) && LAST(?vfirst) > 5)",
    "HALF": "?half :k ?k ; :v ?vhalf "
    "FILTER(!BOUND(PREV(?vhalf)) && ?vhalf < 50 || ?vhalf > PREV(?vhalf))",
    "LIMITED": "?limited :k ?k ; :v ?vlimited FILTER(SUM(?vlimited) < 4 * ?va)",
    "PLAIN": "?plain :k ?k ; :v ?vplain FILTER(?vplain < 30)",
    "SUMMED": "?summed :k ?k ; :v ?vsummed FILTER(SUM(?vsummed) < 150)",
    "OVER": "?over :k ?k ; :v ?vover FILTER(?vover > ?va)",
    "HIGH": "?high :k ?k ; :v ?vhigh FILTER(?vhigh > 40)",
}

OWN = [
    ("A; R+[:]; C", "30 SECONDS"),
    ("A: R+[,]; C", "30 SECONDS"),
    ("A; R{2,4}[;5 SECONDS]; C", "30 SECONDS"),
    ("A; HALF+[:]; C", "20 SECONDS"),
    ("HALF+; A", "20 SECONDS"),
]
GREEDY = [
    ("A; R++; C", "40 SECONDS"),
    ("A: R++; C", "12 SECONDS"),
    ("A; R*+; C", "40 SECONDS"),
    ("A; PLAIN?+; C", "40 SECONDS"),
    ("A: R{1,2}+[,]; C", "40 SECONDS"),
    ("A; R++[; 3 SECONDS]: C", "20 SECONDS"),
    ("A; R++, C", "40 SECONDS"),
    ("R++; A", "20 SECONDS"),
    ("A; R++; G++; C", "20 SECONDS"),
    ("A; PLAIN++[,]; C", "30 SECONDS"),
    ("A; R++; B", "60 EVENTS"),
    ("N!; A; R++; C", "20 SECONDS"),
    ("A; (B | PLAIN)++; C", "20 SECONDS"),
]
LAST = [
    ("A; R++", "30 SECONDS"),
    ("A; R{1,3}+", "30 SECONDS"),
    ("A; R++[,]", "30 SECONDS"),
    ("A: R{2,4}+[:4 SECONDS]", "9 SECONDS"),
    ("A; R++ UNTIL OVER", "20 SECONDS"),
    ("A; PLAIN++", "12 SECONDS TUMBLING"),
    ("A, PLAIN*+", "30 SECONDS"),
    ("A; B; PLAIN?+", "20 SECONDS"),
    ("A; (B | PLAIN)++", "12 SECONDS"),
    ("R++", "10 SECONDS"),
    ("A; LIMITED++", "20 SECONDS"),
    ("A; PLAIN+; HIGH{1,2}+", "16 SECONDS"),
    ("A; R{2}; PLAIN{1,2}+[,] UNTIL HIGH", "30 SECONDS"),
]
"""Greedy loops in last place."""
UNTIL = [
    ("A; R+ UNTIL N; C", "40 SECONDS"),
    ("A; R+ UNTIL OVER; C", "40 SECONDS"),
    ("R+ UNTIL HIGH; A", "12 SECONDS"),
    ("A: R++ UNTIL OVER; C", "20 SECONDS"),
    ("A; R*+ UNTIL HIGH; C", "20 SECONDS"),
    ("A+; R*+ UNTIL HIGH; C", "12 SECONDS"),
    ("A+[,], R*+ UNTIL HIGH, C", "60 SECONDS"),
    ("A; PLAIN+ UNTIL OVER", "20 SECONDS"),
    ("A; R+ UNTIL OVER; C!", "20 SECONDS"),
    ("A; (B | PLAIN)+ UNTIL HIGH; C", "20 SECONDS"),
    ("A; (R+ UNTIL OVER; E)+; C", "60 SECONDS"),
]
RUNNING = [
    ("A; SUMMED+; C", "30 SECONDS"),
    ("A; COUNTED+; C", "30 SECONDS"),
    ("A: EXTREME+[:]; C", "12 SECONDS"),
    ("A; FIRST+; C", "20 SECONDS"),
    ("A; LIMITED++; C", "30 SECONDS"),
    ("SUMMED+; A", "30 SECONDS"),
    ("A; SUMMED+[,]; C", "30 SECONDS"),
    ("A; (SUMMED+; E)+", "60 SECONDS"),
    ("A; SUMMED{2,}; C", "20 SECONDS TUMBLING"),
    ("A; COUNTED{2,}; C", "60 EVENTS"),
]


def used(sequence: str) -> dict[str, str]:
    names = set(re.findall(r"[A-Z]+", re.sub(r"\[.*?\]|UNTIL", "", sequence)))
    return {name: STEPS[name] for name in sorted(names)}


def loop_query(sequence: str, within: str) -> str:
    partition = "PARTITION BY (?k)" if "," in sequence or "EVENTS" in within else ""
    return query(sequence, used(sequence), within, partition=partition)


def answers_of_both(compiled: QueryPlan, python: QueryPlan, events: list[Event]) -> list[Answer]:
    """The answers, which are the same by both evaluators, in pieces and after a restart."""
    return agreed(compiled, python, events, pieces=[37, *[1] * 8], restarts=[len(events) // 2])


@pytest.mark.parametrize(
    "size", [*first_of([(200, 1), (400, 3)], 1), pytest.param((400, 1), marks=SLOW)], ids=str
)
@pytest.mark.parametrize(
    ("sequence", "within"),
    [row for rows in (OWN, GREEDY, LAST, UNTIL, RUNNING) for row in first_rows_of(rows, 4)],
)
def test_long_streams(sequence: str, within: str, size: tuple[int, int]) -> None:
    """`size` is the number of events and the number of keys."""
    length, keys = size
    if sequence == "A; (R+ UNTIL OVER; E)+; C":
        length = 400  # fewer have no answers
    compiled, python = plans(loop_query(sequence, within))
    events = stream(sorted(used(sequence)), length, keys, 5, ties=True)
    assert answers_of_both(compiled, python, events)


@pytest.mark.parametrize(
    "sequence", ["A; R++; C", "A; R++", "A; R+ UNTIL OVER; C", "A; SUMMED+; C"]
)
def test_the_planner_chooses_it(sequence: str) -> None:
    stage = SequenceStage(compile_query(loop_query(sequence, "40 SECONDS")))
    assert isinstance(stage._sequencer, RunSequencer)


@pytest.mark.each_once
@pytest.mark.parametrize("odd", sorted(ODD))
@pytest.mark.parametrize(
    "sequence",
    [
        "A; R++; C",
        "A; PLAIN++[,]; C",
        "A; R{1,3}+",
        "A; PLAIN++[,]",
        "A; R++ UNTIL OVER",
        "A; R+ UNTIL OVER; C",
        "A; R++ UNTIL OVER; C",
        "N!; A; R++; C",
        "A; R+ UNTIL OVER; C!",
        "A; SUMMED+; C",
        "A; EXTREME+; C",
    ],
)
def test_the_evaluator_in_python_goes_on(sequence: str, odd: str) -> None:
    """Numbers that float64 cannot compare or add come late; a run may have met UNTIL before."""
    within = "6 SECONDS" if "!" in sequence else "90 SECONDS"
    compiled, python = plans(loop_query(sequence, within))
    names = sorted(used(sequence))
    events = stream(names, 120, 1, 2)
    for i in range(120, 220):
        name = names[i % 7 % len(names)]
        value = ODD[odd] if i % 5 == 0 else integer(7 * i % 100)
        given = solutions(Random(i), name, value, 1)
        events.append(Event(events[-1].time + 1000, 0, 0, {name: given}))
    assert answers_of_both(compiled, python, events)


@pytest.mark.parametrize(
    ("values", "limit", "count"),
    [
        (['"0.1"^^xsd:decimal', '"0.2"^^xsd:decimal'], '"0.3"^^xsd:decimal', 2),
        (['"0.1"^^xsd:double', '"0.2"^^xsd:double'], '"0.3"^^xsd:double', 1),
        (['"9007199254740992"^^xsd:integer', '"1"^^xsd:integer'], '"9007199254740992"', 1),
        (['"0.1"^^xsd:float', '"0.2"^^xsd:float'], '"0.3"^^xsd:float', 2),
        (['"-0.0"^^xsd:double', '"3"^^xsd:integer'], '"3"', 2),
        (['"NaN"^^xsd:double', '"3"^^xsd:integer'], '"3"', 1),
    ],
)
def test_sums_that_float64_rounds(values: list[str], limit: str, count: int) -> None:
    """`SUM(?vb) <= limit` after one or two repetitions."""
    xsd = "http://www.w3.org/2001/XMLSchema#"
    typed = limit if "^^" in limit else f"{limit}^^xsd:integer"
    full = re.sub(r"xsd:(\w+)", rf"<{xsd}\1>", typed)
    gpms = {"A": "?a :is ?n", "B": f"?b :v ?vb FILTER(SUM(?vb) <= {full})"}
    compiled, python = plans(query("A; B+", gpms))
    events = [Event(0, 0, 0, {"A": [{"a": "<a>", "n": integer(1)}]})]
    for i, value in enumerate(values, 1):
        term = re.sub(r"xsd:(\w+)", rf"<{xsd}\1>", value)
        events.append(Event(1000 * i, 0, 0, {"B": [{"b": f"<b{i}>", "vb": term}]}))
    assert len(answers_of_both(compiled, python, events)) == count


TABLE = {
    "A; B+; C": "ab1c ab1b2c ab1b2b3c",
    "A; B+[:]; C": "ab1c ab1b2c ab1b3c ab1b2b3c",
    "A: B+[,]; C": "ab1c ab2c ab3c ab1b2c",
    "A; B++; C": "ab1b2b3c",
    "A: B++[,]; C": "ab1b2c ab2c ab3c",
    "A; B?+; C": "ab1c",
    "A; B+ UNTIL X; C": "ab1c ab1b2c",
    "A; B++ UNTIL X; C": "ab1b2c",
}


@pytest.mark.parametrize(("sequence", "answers"), TABLE.items())
def test_the_table_of_loops(sequence: str, answers: str) -> None:
    """Every sequence of the table in docs/meaning.md#loops that has no bracket with `|`."""
    gpms, events = letters("a b1 b2 x b3 c", "ABCX")
    compiled, python = plans(query(sequence, {n: g for n, g in gpms.items() if n in sequence}))
    found = answers_of_both(compiled, python, events)
    assert len(found) == len(answers.split())


@pytest.mark.parametrize("sequence", ["A; (R; SUMMED)+", "A; AVERAGE+; C", "A; DOUBLED+; C"])
def test_filters_of_whole_runs_are_evaluated_in_python(sequence: str) -> None:
    text = loop_query(sequence, "20 SECONDS")
    evaluator = compile_query(text).sequence.evaluator
    assert evaluator.name == "compiled-registers"
    assert "Python evaluates FILTERs for each partial match" in evaluator.reason
    compiled, python = plans(text)
    names = [name for name in ("A", "R", "SUMMED", "AVERAGE", "DOUBLED", "C") if name in sequence]
    assert agreed(compiled, python, stream(names, 160, 2, 4, ties=True), restarts=[80])
