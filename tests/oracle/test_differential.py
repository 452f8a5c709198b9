"""The engine against the oracle, on generated queries and streams: equal answers in equal order.

A few hundred examples with a fixed seed, and 10,000 in a slow run (`pytest -m slow`), which prints
how often each feature was exercised. `SPASEQ_ORACLE_EXAMPLES` sets another number for the slow
run, `SPASEQ_ORACLE_SEED` another seed for both.
"""

from __future__ import annotations

import os
import traceback
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings

from spaseq.errors import QueryError
from spaseq.lang.parser import parse
from tests.oracle.choices import replayed, seeded, shrink
from tests.oracle.comparison import comparable
from tests.oracle.engine import run_local
from tests.oracle.model import Refused, TooBig
from tests.oracle.oracle import evaluate
from tests.oracle.report import coverage, disagreement, events_table
from tests.oracle.strategies import STEP_1, Case, case, cases

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
EXAMPLES = int(os.environ.get("SPASEQ_ORACLE_EXAMPLES", "10000"))

SUPPORTED = STEP_1
"""What the engine evaluates."""


@dataclass
class Tally:
    """What a run exercised."""

    exercised: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    too_big: int = 0

    def add(self, case: Case, has_answers: bool) -> None:
        self.exercised.update(["(all)", *case.features])
        if has_answers:
            self.answered.update(["(all)", *case.features])


def disagrees(case: Case, tally: Tally, cuts: int) -> str | None:
    """What engine and oracle disagree on, if anything."""
    try:
        expected = evaluate(parse(case.query), case.streams, case.kb)
    except TooBig:
        tally.too_big += 1
        return None
    try:
        found = run_local(case.query, case.streams, case.kb, cuts)
    except QueryError as error:
        return f"the engine refuses\n{case.query}\n{error}"
    except Exception:  # whatever it is, it is the engine's
        return f"the engine fails\n{case.query}\n{events_table(case)}\n{traceback.format_exc()}"
    if [comparable(a) for a in found] != [comparable(a) for a in expected]:
        return disagreement(case, expected, found, cuts)
    tally.add(case, bool(expected))
    return None


def run(count: int, features: frozenset[str], seed: str) -> Tally:
    """So many examples; the first disagreement is shrunk and fails the test."""
    tally = Tally()
    for number in range(count):
        choices = seeded(f"{seed}:{number}")
        cuts = 1 + number % 3
        if disagrees(case(choices, features), tally, cuts):
            smallest = shrunk(choices.made, features, cuts)
            pytest.fail(f"example {seed}:{number}\n{disagrees(smallest, tally, cuts)}", False)
    return tally


def shrunk(made: list[int], features: frozenset[str], cuts: int) -> Case:
    """A small case on which engine and oracle disagree still."""
    return case(replayed(shrink(made, lambda m: _still_wrong(m, features, cuts))), features)


def _still_wrong(made: list[int], features: frozenset[str], cuts: int) -> bool:
    try:
        return disagrees(case(replayed(made), features), Tally(), cuts) is not None
    except (Refused, QueryError):
        return False


def test_some() -> None:
    tally = run(500, SUPPORTED, SEED)
    assert tally.exercised["(all)"] >= 450
    assert tally.answered["(all)"] >= 150


@given(cases(SUPPORTED))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_fresh(example: Case) -> None:
    """Examples that differ from run to run; Hypothesis shrinks and remembers those that fail."""
    wrong = disagrees(example, Tally(), 1)
    assert wrong is None, wrong


@pytest.mark.slow
def test_many() -> None:
    tally = run(EXAMPLES, SUPPORTED, SEED)
    print(coverage(tally.exercised, tally.answered, SUPPORTED))
    print(f"too big for the oracle: {tally.too_big}")
    assert EXAMPLES < 10_000 or not [f for f in SUPPORTED if not tally.answered[f]]
