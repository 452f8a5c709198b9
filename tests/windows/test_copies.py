"""Copies of small cases with windows, in one run, against brute force."""

from __future__ import annotations

import pytest

from tests.windows.copies import check


def test_copies_of_a_few_cases() -> None:
    assert sum(check(seed, 200, "") for seed in (3, 4)) > 100


@pytest.mark.thorough
def test_copies_of_many_cases() -> None:
    forces = ("", "least", "never")
    assert sum(check(seed, 3000, forces[seed % 3]) for seed in range(100, 160)) > 20_000
