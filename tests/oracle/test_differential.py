"""The engine against the oracle, on generated queries and streams: equal answers in equal order.

Every evaluator that can run a query runs it: on events that arrive at once, on events in pieces,
with restarts, and with a limit on answers. There are some examples with a fixed seed, more in a
thorough run, and some fresh ones. A slow run (`pytest -m slow`) has 10,000 and 1,000, and finally
prints how often it exercised each feature. `SPASEQ_ORACLE_EXAMPLES` sets another number for the
slow run, and `SPASEQ_ORACLE_SEED` another seed for both.
"""

from __future__ import annotations

import os
from itertools import count
from random import Random
from time import time_ns

import pytest

from tests.oracle.agreement import ARRIVALS, Disagreement, Tally, compare
from tests.oracle.choices import replayed, seeded, shrink
from tests.oracle.draw_sequences import LOOPS
from tests.oracle.engine import COUNTING, EVALUATORS
from tests.oracle.report import coverage
from tests.oracle.strategies import ANY_LOOP, EVERYTHING, FUNCTIONS, Case, case
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
EXAMPLES = int(os.environ.get("SPASEQ_ORACLE_EXAMPLES", "10000"))

FAILURES = 5
"""Number of disagreements after which a run stops."""

ROWS = (
    EVERYTHING
    | {ANY_LOOP}
    | {f"{name}()" for name in FUNCTIONS}
    | {*ARRIVALS, *(f"on {e}" for e in (*EVALUATORS, *COUNTING))}
)
"""Features that a long run must exercise on examples with answers."""

COMPILED = (
    ("!-first", "compiled-chain"),
    ("!-first", "compiled-compact"),
    ("!-first", "compiled-registers"),
    ("!-last", "compiled-compact"),
    ("!-last", "compiled-registers"),
    ("STRICT", "compiled-registers"),
    ("MAX", "compiled-chain"),
    ("&", "compiled-compact"),
    ("AND", "compiled-compact"),
    ("MAX", "compiled-compact"),
    ("|", "compiled-registers"),
    ("|-of-steps", "compiled-registers"),
)
"""Features that a long run must exercise on a compiled evaluator, with answers."""


FORMS_TEXT = """
    , ; : + * ? {n,m} | nested repeated-bracket stateful-filter PREV WITHIN several-keys TUMBLING
    PARTITION MAX own-operator greedy until running
"""
FORMS = frozenset(FORMS_TEXT.split())
"""Features of sequences that compiled evaluators run, and of nothing that keeps them from it."""


def run(
    compared: int, seed: str, weigh: bool = False, features: frozenset[str] = EVERYTHING
) -> Tally:
    """Compare this number of examples; disagreements are shrunk and fail the test."""
    tally, failures = Tally(weigh=weigh), list[str]()
    for number in count():
        if tally.compared >= compared or len(failures) == FAILURES:
            break
        choices, chance = seeded(f"{seed}:{number}"), f"{seed}/{number}"
        if wrong := compare(case(choices, features), tally, Random(chance)):
            smallest = shrunk(choices.made, chance, wrong.kind, features)
            wrong = compare(smallest, Tally(), Random(chance)) or wrong
            failures.append(f"example {seed}:{number}: {wrong.kind}\n{wrong.text}")
            print(failures[-1], flush=True)
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)
    return tally


def shrunk(made: list[int], chance: str, kind: str, features: frozenset[str]) -> Case:
    """A small case on which engine and oracle disagree in the same way."""

    def still_wrong(example: Case) -> bool:
        wrong: Disagreement | None = compare(example, Tally(), Random(chance))
        return wrong is not None and wrong.kind == kind

    made = shrink(made, lambda m: still_wrong(case(replayed(m), features)))
    smallest = case(replayed(made), features)
    while simpler := next(filter(still_wrong, smallest.with_fewer_events()), None):
        smallest = simpler
    return smallest


@sizes(15, 30, 500)
def test_some(examples: int) -> None:
    tally = run(examples, SEED)
    assert tally.answered["(all)"] >= examples * 0.24
    for evaluator in EVALUATORS:
        assert tally.answered[f"on {evaluator}"] >= examples // 50


@sizes(15, 25, 500)
def test_compiled_forms(examples: int) -> None:
    """Sequences with little beside what compiled evaluators run."""
    tally = run(examples, f"forms{SEED}", features=FORMS)
    for evaluator in ("compiled-registers", "compiled-compact"):
        assert tally.answered[f"on {evaluator}"] >= examples // 10


@sizes(8, 12, 100)
def test_fresh(examples: int) -> None:
    """Examples differ from run to run; a failure shows the seed, for use with `test_some`."""
    run(examples, f"fresh{time_ns()}")


@pytest.mark.slow
def test_many() -> None:
    tally = run(EXAMPLES, SEED, weigh=True)
    print(f"\n{coverage(tally, ROWS)}")
    assert tally.exercised[ANY_LOOP] >= tally.compared / 3
    if EXAMPLES >= 10_000:
        assert not [row for row in ROWS if not tally.answered[row]]
        assert not [form for form in COMPILED if not tally.by[form]]
        assert not [feature for feature in LOOPS if not tally.mattered[feature]]


@pytest.mark.slow
def test_many_fresh() -> None:
    run(EXAMPLES // 10, f"fresh{time_ns()}")
