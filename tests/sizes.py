"""Tests of two sizes: a few examples by default, many in the thorough run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

THOROUGH = pytest.mark.thorough


def sizes(few: int, many: int) -> pytest.MarkDecorator:
    """Parametrise a test with `examples`, the number of examples it tries."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=THOROUGH)])


def first_of(values: Sequence[Any], few: int) -> list[Any]:
    """Values of a parameter: the first few, and the others for the thorough run only."""
    return [*values[:few], *(pytest.param(value, marks=THOROUGH) for value in values[few:])]
