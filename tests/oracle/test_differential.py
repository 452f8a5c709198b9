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
from tests.oracle.model import TooBig
from tests.oracle.oracle import evaluate
from tests.oracle.report import coverage, disagreement, events_table
from tests.oracle.strategies import EVERYTHING, Case, case, cases

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
EXAMPLES = int(os.environ.get("SPASEQ_ORACLE_EXAMPLES", "10000"))

SUPPORTED = EVERYTHING
"""What the engine evaluates; `features=` of the examples."""


@dataclass
class Tally:
    """What a run exercised."""

    exercised: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    too_big: int = 0  # for the oracle
    not_supported: int = 0  # by the engine

    def add(self, case: Case, has_answers: bool) -> None:
        self.exercised.update(["(all)", *case.features])
        if has_answers:
            self.answered.update(["(all)", *case.features])


@dataclass(frozen=True)
class Disagreement:
    """Engine and oracle differ: in what way, and everything about it on one page."""

    kind: str
    text: str


def compare(case: Case, tally: Tally, cuts: int) -> Disagreement | None:
    """What engine and oracle disagree on, if anything; `cuts`: see `run_local`."""
    try:
        expected = evaluate(parse(case.query), case.streams, case.kb)
        found = run_local(case.query, case.streams, case.kb, cuts)
    except TooBig:
        tally.too_big += 1
        return None
    except QueryError as error:
        if all(d.code == "not-supported-yet" for d in error.diagnostics if d.severity == "error"):
            tally.not_supported += 1
            return None
        return Disagreement("the query is refused", f"{case.query}\n{error}")
    except Exception as error:
        page = f"{case.query}\n{events_table(case)}\n{traceback.format_exc()}"
        return Disagreement(f"{type(error).__name__}", page)
    if [comparable(a) for a in found] != [comparable(a) for a in expected]:
        return Disagreement("different answers", disagreement(case, expected, found, cuts))
    tally.add(case, bool(expected))
    return None


def run(count: int, features: frozenset[str], seed: str) -> Tally:
    """So many examples; the first disagreement is shrunk and fails the test."""
    tally = Tally()
    for number in range(count):
        choices = seeded(f"{seed}:{number}")
        cuts = 1 + number % 3
        if wrong := compare(case(choices, features), tally, cuts):
            smallest = shrunk(choices.made, features, cuts, wrong.kind)
            wrong = compare(smallest, tally, cuts) or wrong
            pytest.fail(f"example {seed}:{number}: {wrong.kind}\n{wrong.text}", False)
    return tally


def shrunk(made: list[int], features: frozenset[str], cuts: int, kind: str) -> Case:
    """A small case on which engine and oracle disagree in the same way."""

    def still_wrong(example: Case) -> bool:
        wrong = compare(example, Tally(), cuts)
        return wrong is not None and wrong.kind == kind

    made = shrink(made, lambda m: still_wrong(case(replayed(m), features)))
    smallest = case(replayed(made), features)
    while simpler := next(filter(still_wrong, smallest.with_fewer_events()), None):
        smallest = simpler
    return smallest


def test_some() -> None:
    tally = run(500, SUPPORTED, SEED)
    assert tally.exercised["(all)"] >= 420
    assert tally.answered["(all)"] >= 120


@given(cases(SUPPORTED))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_fresh(example: Case) -> None:
    """Examples that differ from run to run; Hypothesis shrinks and remembers those that fail."""
    wrong = compare(example, Tally(), 1)
    assert wrong is None, f"{wrong.kind}\n{wrong.text}"


@pytest.mark.slow
def test_many() -> None:
    tally = run(EXAMPLES, SUPPORTED, SEED)
    print(coverage(tally.exercised, tally.answered, SUPPORTED))
    print(f"too big for the oracle: {tally.too_big}")
    print(f"not supported by the engine: {tally.not_supported}")
    assert EXAMPLES < 10_000 or not [f for f in SUPPORTED if not tally.answered[f]]
