"""Copies of small cases, far apart or with keys of their own, have the answers of each case alone.

The default test runs few cases in this process. The slow one runs 300 by the command line, a fifth
of them with 200,000 events and the others with 20,000; that takes more than an hour.
`SPASEQ_COPIES` sets another number; 3,000 take more than half a day.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.oracle.copies.campaign import Tallied, check, check_together, samples, wish
from tests.oracle.copies.command import Road
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "copies")
CASES = int(os.environ.get("SPASEQ_COPIES", "300"))
BIG = CASES // 5
"""The first cases are ten times larger; half of them have keys of their own."""


def run(numbers: Iterable[int], events: int, road: Road, random: bool = False) -> Tallied:
    """Run the cases of these numbers, and print what was run; five differences end it.

    Thresholds are as usual, or forced at random.
    """
    tally = Tallied()
    for number in numbers:
        size = events * 10 if road.process and number < BIG else events
        road = replace(road, thresholds=f"random:{number}" if random else "")
        (sample,) = samples(f"{SEED}:{number}", [wish(number, size, road)])
        check(sample, tally)
        if len(tally.wrong) == 5:
            break
    print(f"\n{tally.table()}")
    if tally.wrong:
        pytest.fail("\n\n".join(tally.wrong), pytrace=False)
    return tally


@sizes(6, 12, 60)
def test_some_copies(examples: int) -> None:
    tally = run(range(examples), 600 if examples < 10 else 4_000, Road(process=False))
    assert tally.cases["own keys"] == tally.cases["same keys"] == examples // 2
    assert tally.cases["between each other"] >= examples // 10
    assert tally.answers > 100 * examples


@sizes(6, 12, 30)
def test_copies_with_forced_thresholds(examples: int) -> None:
    """What other sizes choose has the same answers, with batches of a few rows too."""
    tally = run(range(1000, 1000 + examples), 300, Road(process=False), random=True)
    assert len(tally.crossed) >= 12


@pytest.mark.thorough
@pytest.mark.spark(apart=True)
def test_copies_on_spark() -> None:
    """All cases are in one run, as on a cluster: an own process, with its own session."""
    tally = Tallied()
    check_together(range(12), 2_000, Road("spark"), tally)
    assert not tally.wrong, "\n\n".join(tally.wrong)
    assert tally.answers > 1_000


@pytest.mark.slow
def test_many_copies() -> None:
    run(range(CASES), 20_000, Road())


@pytest.mark.slow
@pytest.mark.spark(apart=True)
def test_many_copies_on_spark() -> None:
    tally = Tallied()
    for first in range(0, CASES // 10, 12):
        check_together(range(first, first + 12), 20_000, Road("spark"), tally)
        assert not tally.wrong, "\n\n".join(tally.wrong)
    print(f"\n{tally.table()}")
