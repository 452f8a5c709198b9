"""A run without the required steps in their order has no match, and is not evaluated."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

from spaseq.stages.ordered_steps import has_steps_in_order
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


def is_possible(sequence: str, rows: list[Row], k: list[int] | None = None) -> bool:
    plan = plan_of(sequence)
    sorter = RowSorter(plan.patterns.columns)
    batch = rows_of(plan, rows)
    sorter.add(batch if k is None else replace(batch, k=np.array(k, np.int32)))
    return has_steps_in_order(plan, sorter)


@pytest.mark.parametrize(("sequence", "rows", "expected"), CASES)
def test_the_order_of_required_steps(sequence: str, rows: list[Row], expected: bool) -> None:
    for order in (rows, rows[::-1]):
        assert is_possible(sequence, order) == expected


def has_choice(steps: str, rows: list[tuple[str, int, str, int]]) -> bool:
    """Whether some choice of a row for each step fits, of all choices."""
    for choice in product(rows, repeat=len(steps)):
        instants = [(second, k) for _, second, _, k in choice]
        if (
            "".join(gpm for gpm, *_ in choice) == steps
            and len({key for _, _, key, _ in choice}) == 1
            and all(a < b for a, b in pairwise(instants))
            and instants[-1][0] - instants[0][0] <= 10
        ):
            return True
    return False


@sizes(300, 3000, 20_000)
def test_drawn_rows_have_a_choice_that_fits(examples: int) -> None:
    found = 0
    for seed in range(examples):
        random = Random(seed)
        steps = "".join(random.choice("ABC") for _ in range(random.randint(2, 4)))
        rows = [
            (random.choice(steps), random.randrange(16), random.choice("xy"), random.randrange(2))
            for _ in range(random.randrange(9))
        ]
        expected = has_choice(steps, rows)
        told = is_possible("; ".join(steps), [row[:3] for row in rows], [row[3] for row in rows])
        assert told == expected, (steps, rows)
        found += expected
    assert examples // 10 < found < examples
