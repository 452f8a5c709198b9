"""Right queries with one mistake in the input or in one GPM: the report names it first."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.diagnosis.right_queries import CARDS, DATA, SLOW, STOCKS, Right

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")


class Mistake(NamedTuple):
    """One change of a right query, and the first cause that the report names.

    `at` begins at the place of the cause in the changed query.
    """

    right: Right
    old: str
    new: str
    kind: str
    gpm: str
    step: int
    at: str
    term: str | None = None
    suggestion: str | None = None


MISTAKES = (
    Mistake(
        SLOW,
        "?o2 :avgSpeed",
        "?o2 :avgSped",
        *("predicate-never-occurs", "B", 3, "?o2 :avgSped", ":avgSped", ":avgSpeed"),
    ),
    Mistake(
        SLOW,
        "PREFIX : <http://aarhus.example/>",
        "PREFIX : <http://aarhus.example#>",
        *("predicate-never-occurs", "A", 1, ":avgSpeed ?v1"),
        *(":avgSpeed", "<http://aarhus.example/avgSpeed>"),
    ),
    Mistake(
        SLOW,
        ":vehicleCount ?n",
        ":vehicleCuont ?n",
        *("predicate-never-occurs", "B", 3, ":vehicleCuont ?n", ":vehicleCuont", ":vehicleCount"),
    ),
    Mistake(
        SLOW,
        "a sosa:Observation",
        "a sosa:Observaton",
        *("constant-never-occurs", "A", 1, "?o1 a", "sosa:Observaton", "sosa:Observation"),
    ),
    Mistake(
        SLOW,
        "s/BRUUNS>",
        "s/BRUNS>",
        *("constant-never-occurs", "P", 2, "?p sosa:made", "<http://aarhus.example/s/BRUNS>"),
        "<http://aarhus.example/s/BRUUNS>",
    ),
    Mistake(
        SLOW,
        "DEFINE GPM P ON S2",
        "DEFINE GPM P ON S1",
        *("wrong-stream", "P", 2, "S1 {\n    ?p"),
        *("S1", "S2"),
    ),
    Mistake(
        SLOW,
        "DEFINE GPM B ON S1",
        "DEFINE GPM B ON S2",
        *("wrong-stream", "B", 3, "S2 {\n    ?o2"),
        *("S2", "S1"),
    ),
    Mistake(
        SLOW,
        "; :vehicleCount ?n",
        ". ?v2 :vehicleCount ?n",
        *("pattern-never-matches", "B", 3, "?v2 :vehicleCount"),
    ),
    Mistake(
        SLOW,
        "?s a :TrafficSensor",
        "?s a :TrafficSenser",
        *("constant-never-occurs", "A", 1, "?s a :TrafficSenser"),
        *(":TrafficSenser", ":TrafficSensor"),
    ),
    Mistake(
        SLOW,
        ":street ?street",
        ":stret ?street",
        *("predicate-never-occurs", "A", 1, ":stret ?street", ":stret", ":street"),
    ),
    Mistake(
        SLOW,
        "?s a :TrafficSensor ; :street ?street",
        "?o1 a :TrafficSensor ; :street ?street",
        *("kb-empty", "A", 1, "GRAPH", "?o1"),
    ),
    Mistake(SLOW, "?v1 < 25", "?v1 < 2.5", *("filter-false", "A", 1, "FILTER(?v1", "2.5")),
    Mistake(
        SLOW,
        '"Silkeborgvej"',
        '"Silkeborg vej"',
        *("filter-false", "A", 1, "FILTER(?v1", '"Silkeborg vej"', '"Silkeborgvej"'),
    ),
    Mistake(
        SLOW,
        "?parked > 10",
        '?parked > "10"',
        *("filter-error", "P", 2, "FILTER(?parked", '"10"', "10"),
    ),
    Mistake(SLOW, "?n >= 0", "?nn >= 0", *("filter-error", "B", 3, "FILTER(?nn", "?nn", "?n")),
    Mistake(SLOW, "?v1 < 25 ", "?v1 < 25 && ?v1 > 85 ", *("filter-false", "A", 1, "FILTER(?v1")),
    Mistake(
        CARDS,
        "ex:amount ?a1",
        "ex:ammount ?a1",
        *("predicate-never-occurs", "A", 1, "?card ex:amm", "ex:ammount", "ex:amount"),
    ),
    Mistake(
        CARDS,
        '?bank :country "DK"',
        '?bank :country "DK"@da',
        *("constant-never-occurs", "B", 2, "?bank :country", '"DK"@da', '"DK"'),
    ),
    Mistake(
        CARDS,
        "?card :issuedBy ?bank",
        "?id :issuedBy ?bank",
        *("kb-empty", "B", 2, "GRAPH", "?id"),
    ),
    Mistake(CARDS, "?a2 > 200", "?a2 > 20000", *("filter-false", "B", 2, "FILTER(?a2", "20000")),
    Mistake(
        CARDS,
        "?a1 < 5)",
        "?a2 < 5)",
        *("filter-error", "A", 1, "FILTER(?a2 < 5)", "?a2"),
    ),
    Mistake(
        STOCKS,
        "t/MSFT>",
        "t/MSTF>",
        *("constant-never-occurs", "A", 2, "VALUES", "<http://stocks.example/t/MSTF>"),
        "<http://stocks.example/t/MSFT>",
    ),
    Mistake(
        STOCKS,
        "{ ?b :ticker ?t ; :close ?c2 }",
        "{ ?b :ticker ?t ; :closes ?c2 }",
        *("predicate-never-occurs", "B", 3, ":closes ?c2", ":closes", ":close"),
    ),
    Mistake(
        STOCKS, "?c2 > 20)", "?v > 20 && !BOUND(?v))", *("filter-false", "B", 3, "FILTER(?v > 20")
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.new[:30]}-{m.kind}")
def test_the_first_cause_is_the_mistake(mistake: Mistake) -> None:
    query = mistake.right.changed(mistake.old, mistake.new)
    before = query[: query.index(mistake.at)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    report = mistake.right.why(mistake.old, mistake.new)
    assert report.answers == 0
    cause = report.causes[0]
    assert (cause.kind, cause.gpm, cause.step) == (mistake.kind, mistake.gpm, mistake.step)
    assert (cause.line, cause.column) == (line, column)
    if mistake.term is not None:
        assert cause.term == mistake.term
    if mistake.suggestion is not None:
        assert cause.suggestion == mistake.suggestion
    assert cause.term is None or cause.suggestion != cause.term
    assert report.as_text() and report.as_json()


@pytest.mark.parametrize("right", [SLOW, CARDS, STOCKS], ids=["slow", "cards", "stocks"])
def test_a_right_query_has_no_cause(right: Right) -> None:
    report = right.why()
    assert report.answers > 0 and not report.causes
