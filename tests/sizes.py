"""Tests of generated examples in two sizes: a few by default, many in the thorough run."""

from __future__ import annotations

import pytest


def sizes(few: int, many: int) -> pytest.MarkDecorator:
    """Parametrise a test with `examples`, the number of examples it tries."""
    thorough = pytest.param(many, marks=pytest.mark.thorough)
    return pytest.mark.parametrize("examples", [few, thorough])
