"""AFTER MATCH in the evaluators of sets: partial matches whose events are used up are forgotten."""

from __future__ import annotations

from random import Random

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.options import StageOptions
from spaseq.plan.evaluators import consumes
from spaseq.plan.query_plan import EvaluatorName, QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, batch, letters, query, run, words
from tests.sizes import first_of

CHAIN: EvaluatorName = "compiled-chain"
COMPACT: EvaluatorName = "compiled-compact"
GPMS = {name: f"?x{name} :is ?{name.lower()} ; :k ?k" for name in "ABCD"}
SEQUENCES = ["A: B: C", "A; B; C", "A, B", "A: (B | C)+: D", "(A & B): C", "A: B++: C", "A+"]
SKIPS = ["CONSUME", "SKIP PAST LAST EVENT"]


def planned(text: str, evaluator: EvaluatorName) -> QueryPlan:
    return compile_query(text, options=CompileOptions(evaluator=evaluator))


@pytest.mark.parametrize("evaluator", [CHAIN, COMPACT])
def test_what_is_used_is_gone(evaluator: EvaluatorName) -> None:
    text = "a1 a2 b1 c1 c2 a3 b2 c3"
    gpms, events = letters(text)
    plan = planned(query("A: B: C", gpms, rest="AFTER MATCH CONSUME"), evaluator)
    assert consumes(plan)
    stage = SequenceStage(plan)
    stage.push(batch(plan, events[:4]))
    assert words(stage.advance(3000), text) == ["a1 b1 c1", "a2 b1 c1"]
    assert stage.live_runs() == 0
    stage.push(batch(plan, events[4:]))
    assert words([*stage.close()], text) == ["a3 b2 c3"]


def keyed(number: int) -> list[Event]:
    """Events of two streams, some at one instant, in three partitions."""
    random, events = Random(number), list[Event]()
    for i in range(30):
        time = i // 2 * 500
        for k in range(random.choice([1, 1, 2])):
            found: dict[str, list[Values]] = {}
            for name in random.sample("ABCD", random.choice([0, 1, 1, 2])):
                key = f'"{random.randrange(3)}"'
                found[name] = [{f"x{name}": f"<e{i}{k}>", name.lower(): f'"{i}"', "k": key}]
            events.append(Event(time, k, i % 2, found))
    return events


@pytest.mark.each_once
@pytest.mark.parametrize("skip", SKIPS)
@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("partition", ["", "PARTITION BY (?k)"])
@pytest.mark.parametrize("select", first_of(["*", "STRICT *"], 1))
def test_like_registers(skip: str, sequence: str, partition: str, select: str) -> None:
    gpms = {n: p if partition else p.split(" ;")[0] for n, p in GPMS.items()}
    text = query(sequence, gpms, "2 SECONDS", select, partition, f"AFTER MATCH {skip}")
    usual = planned(text, "registers")
    plain = set(sequence) <= {*"ABC:;, "}
    forms = [planned(text, name) for name in ((CHAIN, COMPACT) if plain else (COMPACT,))]
    assert all(map(consumes, forms)) and not consumes(usual)
    made = 0
    for number in range(6):
        expected, _ = run(usual, keyed(number))
        for plan in forms:
            assert run(plan, keyed(number), restart_after=number)[0] == expected
        made += len(expected)
    assert made > 3


@pytest.mark.parametrize("evaluator", [CHAIN, COMPACT])
def test_a_limit(evaluator: EvaluatorName) -> None:
    """The limit counts the answers that are not forbidden."""
    gpms, events = letters("a1 a2 a3 b1 b2 a4 b3", "AB")
    plan = planned(query("A: B", gpms, rest="AFTER MATCH CONSUME"), evaluator)
    stage = SequenceStage(plan, StageOptions(limit_per_event=2))
    stage.push(batch(plan, events))
    assert (len(stage.close()), stage.suppressed) == (3, 1)


@pytest.mark.parametrize(
    ("sequence", "more"),
    [
        ("C!; A: B", {}),  # not every match of the sets is an answer
        ("A: B", {"select": "NEXT *"}),
        ("A: B", {"rest": "AFTER MATCH SKIP TO NEXT EVENT"}),
    ],
)
def test_what_is_left_to_the_filter(sequence: str, more: dict[str, str]) -> None:
    text = query(sequence, letters("a")[0], **{"rest": "AFTER MATCH CONSUME", **more})
    assert not consumes(compile_query(text))
