"""Query evaluation tests over copies of their event: all copies have the suite's result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rdf.shared import needs_w3c
from tests.w3c.exclusions import why_excluded
from tests.w3c.manifests import SUITES, Test, suite_tests
from tests.w3c.repeated import wrong
from tests.w3c.running import ways

pytestmark = needs_w3c


def _all() -> list[object]:
    if not SUITES.is_dir():
        return []
    return [
        pytest.param(test, id=test.id)
        for test in suite_tests()
        if {"engine", "construct"} & set(ways(test))
        and why_excluded(test, "engine") is None
        and why_excluded(test) is None
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("test", _all()[::8])
def test_some_copies(test: Test, tmp_path: Path) -> None:
    assert wrong(test, 70, tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize("test", _all())
def test_3000_copies(test: Test, tmp_path: Path) -> None:
    assert wrong(test, 3_000, tmp_path) is None
