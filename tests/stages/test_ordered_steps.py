"""A run without the required steps in their order has no match, and is not evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

from spaseq.stages.hopeless_rows import leave_out_hopeless
from spaseq.stages.sorting import RowSorter
from tests.sizes import sizes
from tests.stages.test_hopeless_rows import plan_of, rows_of

Row = tuple[str, int, str]

CASES: list[tuple[str, list[Row], bool]] = [
    ("A; B", [("A", 1, "x"), ("B", 2, "x")], True),
    ("A; B", [("B", 1, "x"), ("A", 2, "x")], False),
    ("A; B", [("A", 1, "x"), ("B", 1, "x")], False),  # one event cannot be both
    ("A; B", [("A", 1, "x"), ("B", 2, "y")], False),
    ("A; B", [("A", 1, "x"), ("B", 11, "x")], True),
    ("A; B", [("A", 1, "x"), ("B", 12, "x")], False),
    ("A; B; A", [("A", 1, "x"), ("B", 2, "x"), ("A", 11, "x")], True),
    ("A; B; A", [("A", 1, "x"), ("B", 2, "x"), ("A", 12, "x")], False),
    ("A; B; A", [("A", 1, "x"), ("B", 2, "x")], False),
    ("A{3}", [("A", 1, "x"), ("A", 2, "x")], False),
    ("A{3,}", [("A", 1, "x"), ("A", 2, "x"), ("A", 3, "x")], True),
    ("A?; B*", [("B", 1, "x")], True),
    ("A; C!; B", [("C", 1, "x"), ("B", 2, "x")], False),
    ("(A & B); C", [("A", 1, "x"), ("B", 1, "x"), ("C", 1, "x")], True),  # C alone is looked at
    ("A; (B | C); B", [("B", 1, "x"), ("A", 2, "x")], False),
    ("(A; B){2}", [("A", 1, "x"), ("A", 2, "x"), ("B", 3, "x"), ("B", 4, "x")], False),
    ("(A; B){2}", [("A", 1, "x"), ("B", 2, "x"), ("A", 3, "x"), ("B", 4, "x")], True),
]


def left(sequence: str, rows: list[Row], k: list[int] | None = None) -> list[tuple[int, int, int]]:
    """(second, k, GPM) of the rows that stay in a sorter, in order; none if no match may come."""
    plan = plan_of(sequence)
    sorter, batch = RowSorter(plan.patterns.columns), rows_of(plan, rows)
    sorter.add(batch if k is None else replace(batch, k=np.array(k, np.int32)))
    if not leave_out_hopeless(plan, sorter):
        return []
    kept = sorter.keys(())
    return sorted(
        zip((kept.time // 1000).tolist(), kept.k.tolist(), kept.gpm.tolist(), strict=True)
    )


@pytest.mark.parametrize(("sequence", "rows", "expected"), CASES)
def test_the_order_of_required_steps(sequence: str, rows: list[Row], expected: bool) -> None:
    for order in (rows, rows[::-1]):
        assert bool(left(sequence, order)) == expected


def choices(steps: str, rows: list[tuple[str, int, str, int]]) -> Iterator[tuple[int, ...]]:
    """The numbers of rows, one for each step, that have the order of the steps."""
    for choice in product(range(len(rows)), repeat=len(steps)):
        chosen = [rows[number] for number in choice]
        instants = [(second, k) for _, second, _, k in chosen]
        if (
            "".join(gpm for gpm, *_ in chosen) == steps
            and len({key for _, _, key, _ in chosen}) == 1
            and all(a < b for a, b in pairwise(instants))
            and instants[-1][0] - instants[0][0] <= 10
        ):
            yield choice


@sizes(300, 1200, 20_000)
def test_rows_stay_that_some_choice_has(examples: int) -> None:
    found = 0
    for seed in range(examples):
        random = Random(seed)
        steps = "".join(random.choice("ABC") for _ in range(random.randint(2, 4)))
        rows = [
            (random.choice(steps), random.randrange(16), random.choice("xy"), random.randrange(2))
            for _ in range(random.randrange(9))
        ]
        names = sorted(set(steps))
        expected = sorted(
            (rows[number][1], rows[number][3], names.index(rows[number][0]))
            for number in {number for choice in choices(steps, rows) for number in choice}
        )
        sequence, key_k = "; ".join(steps), [row[3] for row in rows]
        assert left(sequence, [row[:3] for row in rows], key_k) == expected, (steps, rows)
        found += bool(expected)
    assert examples // 10 < found < examples


def test_rows_of_other_steps_stay_near_a_match() -> None:
    """B may end the wait for C, wherever it stands; D is far from all matches."""
    rows = [("A", 1, "x"), ("B", 0, "x"), ("C", 3, "x"), ("C", 0, "x"), ("B", 30, "x")]
    assert [second for second, _, _ in left("A; B!; C", rows)] == [0, 1, 3]


def test_nothing_leaves_beside_greedy_loops() -> None:
    rows = [(gpm, second, "x") for second, gpm in enumerate("ABABCB")]
    assert len(left("A; B++; C", rows)) == len(rows)
    assert len(left("A; B+; C", rows)) == len(rows) - 1
