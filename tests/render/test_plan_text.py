"""The plan as text: conditions, windows and IRIs stand as the query has them."""

from __future__ import annotations

import pytest

from spaseq.api.explain import explain

QUERY = """PREFIX : <http://e/>
SELECT ?x ?b WITHIN {window} FROM STREAM S <http://e/s> WHERE {{
  SEQ(A; B+)
  DEFINE GPM A ON S {{ ?x :a ?a FILTER (?a > 1 && ?a < 9) }}
  DEFINE GPM B ON S {{ ?x :a ?b {more} FILTER (?b > COALESCE(PREV(?b), ?a) || ?b = :none) }}
}} HAVING (COUNT(?b) > 2)"""


def lines(window: str = "15 MINUTES", more: str = "") -> list[str]:
    text = str(explain(QUERY.format(window=window, more=more)))
    return [" ".join(line.split()) for line in text.splitlines()]


def test_conditions_are_written_out() -> None:
    shown = lines()
    for line in (
        "reads :a",
        "filter ?a > 1",
        "filter ?a < 9",
        "if ?b > COALESCE(PREV(?b), ?a) || ?b = :none",
        "having COUNT(?b) > 2",
        "shared by A, B: ?x :a ?a",
    ):
        assert line in shown, line


def test_conditions_of_a_pattern_that_is_evaluated_late() -> None:
    shown = lines(more="OPTIONAL { ?x :c ?c FILTER (?c > ?a) }")
    assert "if ?b > COALESCE(PREV(?b), ?a) || ?b = :none" in shown


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        ("900 SECONDS", "15 MINUTES"),
        ("90 SECONDS", "90 SECONDS"),
        ("36 HOURS", "36 HOURS"),
        ("2 DAYS TUMBLING", "2 DAYS TUMBLING"),
        ("5000 EVENTS", "5,000 EVENTS"),
    ],
)
def test_windows_have_units(window: str, shown: str) -> None:
    assert f"window {shown}" in lines(window)
