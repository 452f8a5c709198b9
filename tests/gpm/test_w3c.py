"""The W3C query evaluation suites, each test's pattern as a GPM."""

from __future__ import annotations

import pytest

from tests.gpm.w3c import Case, cases, same
from tests.rdf.shared import SHARED, needs_w3c

pytestmark = needs_w3c

SPARQL_10 = """basic bnode-coreference boolean-effective-value bound cast dataset distinct
    expr-equals expr-ops graph i18n optional regex triple-match"""
SPARQL_11 = "bind bindings cast exists functions property-path"

EXCLUDED: dict[str, str] = {}
"""Tests that are not passed, by folder/name, with the reason."""


def _cases() -> list[Case]:
    folders = [SHARED / "w3c/sparql10" / f for f in SPARQL_10.split()]
    folders += [SHARED / "w3c/sparql11" / f for f in SPARQL_11.split()]
    return [c for folder in folders if folder.is_dir() for c in cases(folder)]


@pytest.mark.parametrize("case", _cases(), ids=lambda c: f"{c.folder.name}/{c.name}")
def test_w3c(case: Case) -> None:
    if (reason := EXCLUDED.get(f"{case.folder.name}/{case.name}")) is not None:
        pytest.skip(reason)
    found, expected = case.run()
    reduced = "REDUCED" in (case.folder / case.query).read_text()
    assert same(found, expected, as_sets=reduced), f"{found}\n{expected}"
