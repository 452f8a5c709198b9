"""Copies of small cases with windows, in one run, against brute force."""

from __future__ import annotations

import pytest

from tests.windows.copies import check


def test_copies_of_a_few_cases() -> None:
    assert sum(check(seed, 200, "") for seed in (3, 4)) > 100


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(100, 106), marks=pytest.mark.thorough),
        pytest.param(range(106, 160), marks=pytest.mark.slow),
    ],
)
def test_copies_of_many_cases(seeds: range) -> None:
    forces = ("", "least", "never")
    found = sum(check(seed, 3000, forces[seed % 3]) for seed in seeds)
    assert found > 300 * len(seeds)
