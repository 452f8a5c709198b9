"""Tests of several sizes: a few examples by default, many if thorough, most if slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

THOROUGH = pytest.mark.thorough
SLOW = pytest.mark.slow


def sizes(few: int, many: int, most: int | None = None) -> pytest.MarkDecorator:
    """Parametrise a test with `examples`, the number of examples it tries."""
    numbers = [few, pytest.param(many, marks=THOROUGH)]
    if most is not None:
        numbers.append(pytest.param(most, marks=SLOW))
    return pytest.mark.parametrize("examples", numbers)


def first_of(values: Sequence[Any], few: int) -> list[Any]:
    """Values of a parameter: the first few, and the others for the thorough run only."""
    return [*values[:few], *(pytest.param(value, marks=THOROUGH) for value in values[few:])]


def first_rows_of(rows: Sequence[Sequence[Any]], few: int) -> list[Any]:
    """The same for rows of several parameters."""
    return [*rows[:few], *(pytest.param(*row, marks=THOROUGH) for row in rows[few:])]
