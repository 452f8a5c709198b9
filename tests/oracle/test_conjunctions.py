"""The engine against the oracle on queries with `&` and AND, most of them on events of one time.

Every evaluator that can run a query runs it. In the first test no step looks at another's event,
and the kernel of sets can run every query. The second test has conditions between events.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from tests.oracle.agreement import Tally, compare
from tests.oracle.choices import seeded
from tests.oracle.engine import parsed
from tests.oracle.strategies import STEP_1, Case, case
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")

PLAIN = frozenset(STEP_1 - {"stateful-filter", "equality-join", "PREV"}) | {
    ":", "!-first", "!-last", "EVENTS", "TUMBLING", "NEXT", "LAST", "STRICT",
}  # fmt: skip
CORRELATED = PLAIN | STEP_1 | {"gap", "MAX", "own-operator", "greedy", "until"}


def cases(features: frozenset[str], seed: str) -> Iterator[Case]:
    """Cases with `&` or AND, without end."""
    for number in count():
        choices = seeded(f"conjunctions {seed}:{number}")
        example = case(choices, features, most_events=8)
        if example.features & {"&", "AND"}:
            yield crowded(example) if choices.chance(2) else example


def crowded(example: Case) -> Case:
    """The case with more events at one time."""
    streams = {
        iri: [(time // 3000 * 3000, name, triples) for time, name, triples in events]
        for iri, events in example.streams.items()
    }
    return replace(example, streams=streams)


def run(features: frozenset[str], examples: int, seed: str, needed: str = "registers") -> Tally:
    """Compare this number of examples that an evaluator can run."""
    tally = Tally()
    for number, example in enumerate(cases(features, seed)):
        if tally.compared >= examples:
            break
        if needed not in parsed(example.query)[1]:
            continue
        if wrong := compare(example, tally, Random(number)):
            pytest.fail(f"example {number}: {wrong.kind}\n{wrong.text}", pytrace=False)
    return tally


@sizes(100, 1000)
def test_without_conditions(examples: int) -> None:
    tally = run(PLAIN, examples, SEED, "compiled-compact")
    for conjunction in ("&", "AND"):
        assert tally.by[conjunction, "compiled-compact"] >= examples // 20
        assert tally.by[conjunction, "compact"] >= examples // 20


@sizes(50, 500)
def test_with_conditions(examples: int) -> None:
    tally = run(CORRELATED, examples, SEED)
    assert tally.answered["&"] >= examples // 20
    assert tally.answered["AND"] >= examples // 20
