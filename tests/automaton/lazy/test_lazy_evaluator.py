"""The lazy evaluator agrees with the oracle and with registers, whatever the order of steps.

`SPASEQ_LAZY_EXAMPLES` sets the number of generated queries that are compared with the oracle.
`SPASEQ_LAZY_SEED` sets their seed.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import QueryError, UsageError
from spaseq.lang.parser import parse
from spaseq.plan.query_plan import QueryPlan
from tests.automaton.cases import Event, Values, batch, query
from tests.automaton.lazy.lazy_cases import FEATURES, orders, run_changing, run_in, solutions
from tests.oracle.choices import Choices, seeded
from tests.oracle.comparison import comparable
from tests.oracle.model import TooBig
from tests.oracle.oracle import evaluate
from tests.oracle.report import events_table
from tests.oracle.strategies import Case, case
from tests.sizes import first_of, sizes

EXAMPLES = int(os.environ.get("SPASEQ_LAZY_EXAMPLES", "100"))
SEED = os.environ.get("SPASEQ_LAZY_SEED", "1")


def agrees(example: Case) -> bool:
    """Check one query in every order; True if it was evaluated and had answers."""
    try:
        plan = compile_query(example.query, options=CompileOptions(evaluator="lazy"))
        expected = [
            comparable(a) for a in evaluate(parse(example.query), example.streams, example.kb)
        ]
    except (QueryError, UsageError, TooBig):  # refused, or too many paths or answers
        return False
    batches = solutions(plan, example.streams, example.kb)
    for order in orders(plan):
        found = [comparable(a) for a in run_in(order, plan, batches)]
        assert found == expected, f"in order {order}:\n{example.query}\n{events_table(example)}"
    found = [comparable(a) for a in run_changing(orders(plan), plan, batches)]
    assert found == expected, f"the order changing:\n{example.query}\n{events_table(example)}"
    return bool(expected)


@sizes(min(25, EXAMPLES), min(50, EXAMPLES), EXAMPLES)
def test_every_order_gives_the_oracles_answers(examples: int) -> None:
    answered: Counter[str] = Counter()
    for number in range(examples):
        example = case(seeded(f"lazy:{SEED}:{number}"), FEATURES, 12)
        if agrees(example):
            answered.update(["(all)", *example.features])
    assert answered["(all)"] >= examples // 4
    shown = {":", "AND", "&", "|", "?", "!", "!-first", "!-last", "gap", "stateful-filter"}
    shown |= {"WITHIN", "TUMBLING", "TUMBLING-FROM", "EVENTS", "PARTITION", "ties", "STRICT"}
    assert examples < 100 or not {feature for feature in shown if not answered[feature]}


@given(st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_fresh_examples(data: st.DataObject) -> None:
    """Examples that differ from run to run."""
    choices = Choices(lambda n: data.draw(st.integers(0, n - 1)))
    agrees(case(choices, FEATURES, 12))


# --- longer streams -------------------------------------------------------------------------------


NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
GPMS = {
    "A": "?a :key ?k ; :value ?va",
    "B": "?b :key ?k ; :value ?vb FILTER(?vb < ?va)",
    "C": "?c :key ?k ; :value ?vc FILTER(?vc >= ?va || ?vc = ?vb)",
    "D": "?d :key ?k ; :value ?vd FILTER(?vd != ?va)",
    "N": "?n :key ?k ; :value ?vn FILTER(?vn > ?va + 1)",
    "M": "?m :key ?k ; :value ?vm FILTER(?vm > ?vn && ?vm != ?vb)",
}
SEQUENCES = [
    "A : B : C",
    "A : B : C : D",
    "A : N! : B : C",
    "A : N! : B : M! : C",
    "N! : A : B",
    "A : B : N!",
    "A : (N : M)! : B",
    "(A AND B)",
    "(A AND B) : C",
    "A : (B AND D) : C",
    "(A : N! : B AND D)",
    "A :[2 SECONDS] B :[4 SECONDS] C",
    "A : (B & D)",
    "A : (B : C | D)",
    "A : B? : C",
]
"""Where C needs B, and M needs N, both are there or unbound."""


def long_stream(seed: int, names: list[str], most: int = 240) -> list[Event]:
    """Events on two streams; first the last step is rare, and later the first step."""
    random, time = Random(seed), 0
    events: list[Event] = []
    for i in range(most):
        time += random.choice([0, 500, 1000, 1000])
        stream = random.randrange(2)
        k = sum(e.time == time and e.stream == stream for e in events[-20:])
        weights = [2**j for j in range(len(names))]
        name = random.choices(names, weights if i > most // 2 else weights[::-1])[0]
        found: dict[str, list[Values]] = {}
        for solved in {name, random.choice(names)} if random.random() < 0.2 else {name}:
            values = {"k": random.choice(["<k1>", "<k1>", "<k2>"]), solved.lower(): f"<e{i}>"}
            values[f"v{solved.lower()}"] = NUMBER.format(random.randrange(5))
            found[solved] = [values]
        events.append(Event(time, k, stream, found))
    return events


@pytest.mark.parametrize(
    ("within", "partition"),
    [
        ("9 SECONDS", ""),
        ("12 SECONDS TUMBLING", "PARTITION BY (?k)"),
        ("15 EVENTS", "PARTITION BY (?k)"),
        ("15 EVENTS", ""),
    ],
)
@pytest.mark.parametrize("sequence", first_of(SEQUENCES, 5))
def test_rates_that_flip_on_a_longer_stream(sequence: str, within: str, partition: str) -> None:
    """Many windows pass, so expired solutions are dropped; registers give the expected answers."""
    if "EVENTS" in within and (sequence[-1] == "!" or sequence[1] == "!"):
        within = "8 SECONDS"  # the language refuses other windows here
    used = {name: pattern for name, pattern in GPMS.items() if name in sequence}
    text = query(sequence, used, within, partition=partition)
    events = long_stream(SEQUENCES.index(sequence), sorted(used))
    eager, plan = (
        compile_query(text, options=CompileOptions(evaluator=name))
        for name in ("registers", "lazy")
    )
    expected = run_in(None, eager, [batch(eager, events)])
    assert expected
    rows = [batch(plan, events)]
    assert run_in(None, plan, rows) == expected
    assert run_changing(orders(plan), plan, rows) == expected
    assert run_in(orders(plan)[-1], plan, rows) == expected


# --- regressions ----------------------------------------------------------------------------------


def lazy(sequence: str, within: str = "10 SECONDS") -> QueryPlan:
    used = {n: f"?x{n} :is ?{n.lower()}" for n in "ABN" if n in sequence}
    return compile_query(query(sequence, used, within), options=CompileOptions(evaluator="lazy"))


def ids(plan: QueryPlan, events: list[Event]) -> list[str]:
    """The answers as the names of their events with their seconds."""
    found = run_in(None, plan, [batch(plan, events)])
    return [" ".join(f"{t.gpm}{t.time // 1000}" for t in a.trace) for a in found]


def events_of(words: str) -> list[Event]:
    """`A3` is a solution of A at 3 s; `A3'` the same on the second stream."""
    return [
        Event(1000 * int(w[1:].strip("'")), 0, int("'" in w), {w[0]: [{f"x{w[0]}": f"<e{w}>"}]})
        for w in words.split()
    ]


def test_a_negation_in_last_place_behind_alternatives_with_the_same_steps() -> None:
    """The A at 3 s, after N, is the later of the two events; in A : B only B could be."""
    plan = lazy("((A AND B) | (A : B)) : N!")
    assert ids(plan, events_of("B1 N2 A3")) == ["B1 A3"]
    assert ids(plan, events_of("B1 A3 N4")) == []


def test_a_window_of_fewer_events_than_one_instant_has() -> None:
    plan = lazy("A : B?", "1 EVENTS")
    assert ids(plan, events_of("A1 A1' A2")) == ["A2"]
