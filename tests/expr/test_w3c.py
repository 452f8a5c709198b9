"""The W3C suites of expressions: operators, equality, boolean values, regex, functions, casts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.expr.w3c import Case, cases

SHARED = Path(os.environ.get("SPASEQ_SHARED") or Path(__file__).parents[3] / "shared")
FOLDERS = [
    "sparql10/boolean-effective-value",
    "sparql10/bound",
    "sparql10/cast",
    "sparql10/expr-equals",
    "sparql10/expr-ops",
    "sparql10/regex",
    "sparql11/bind",
    "sparql11/cast",
    "sparql11/functions",
]
EXCLUDED: dict[str, str] = {}


def _all_cases() -> list[object]:
    return [
        pytest.param(case, id=f"{folder}/{case.name}")
        for folder in FOLDERS
        if (SHARED / "w3c" / folder).is_dir()
        for case in cases(SHARED / "w3c" / folder)
    ]


@pytest.mark.skipif(not (SHARED / "w3c").is_dir(), reason=f"no W3C suites in {SHARED}")
@pytest.mark.parametrize("case", _all_cases())
def test_suite(case: Case) -> None:
    if case.name in EXCLUDED:
        pytest.skip(EXCLUDED[case.name])
    got, expected = case.run()
    assert got == expected
