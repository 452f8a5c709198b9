"""The W3C suites: every test in every present folder passes or is excluded with a reason."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.rdf.shared import needs_w3c
from tests.w3c.exclusions import NAMES, NOT_BY_ENGINE, why_excluded
from tests.w3c.manifests import SUITES, Test, suite_tests
from tests.w3c.running import outcome, ways

pytestmark = needs_w3c


LONG = "sparql10/distinct/no-distinct-9"
"""A test of many seconds: rdflib compares graphs with many equal results."""


def _folders() -> list[object]:
    """The tests of each folder in each way; thousands of tests of pytest would take a minute."""
    found = defaultdict[tuple[str, str], list[Test]](list)
    for test in suite_tests() if SUITES.is_dir() else ():
        for way in ways(test):
            found[LONG if test.id == LONG else test.id.rpartition("/")[0], way].append(test)
    return [
        pytest.param(
            tests, way, id=f"{name}-{way}", marks=[pytest.mark.slow] if name == LONG else []
        )
        for (name, way), tests in found.items()
    ]


@pytest.mark.parametrize(("tests", "way"), _folders())
def test_suite(tests: list[Test], way: str) -> None:
    failed = list[str]()
    for test in tests:
        found = outcome(test, way)
        if found.verdict not in ("passed", "excluded"):
            failed.append(f"{test.id}: {found.reason}\n{test.action and test.text()}")
    assert not failed, "\n\n".join(failed)


def test_every_exclusion_by_name_names_a_test() -> None:
    folders = {t.id.rpartition("/")[0] for t in suite_tests()}
    known = {t.id for t in suite_tests()}
    named = {**NAMES, **NOT_BY_ENGINE}
    assert all(named.values())
    assert {name for name in named if name.rpartition("/")[0] in folders} <= known


def test_at_least_98_percent_of_what_a_gpm_can_express_is_evaluated() -> None:
    queries = [t for t in suite_tests() if t.is_query]
    by_name = [t for t in queries if t.id in NAMES]
    expressible = [t for t in queries if why_excluded(t) is None] + by_name
    assert len(by_name) <= 0.02 * len(expressible)
