"""Rows that are pushed to an engine with lifts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.errors import InputError, QueryError, RunError, UsageError
from spaseq.expr.extension import unregister

HEAD = "PREFIX ex: <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#>\n"
LIFT = (
    HEAD
    + """CONSTRUCT { GRAPH ?e { ?c ex:price ?price ; ex:row ?_line } ?e prov:generatedAtTime ?at }
WHERE {
  BIND (IRI(CONCAT("http://e/", STR(?id))) AS ?e)
  BIND (IRI(CONCAT("http://e/", ?name)) AS ?c)
  FILTER (?price > 0)
}"""
)
QUERY = """PREFIX ex: <http://e/>
SELECT ?c ?low ?high ?row WITHIN 10 SECONDS FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S { ?c ex:price ?low }
  DEFINE GPM B ON S, T { ?c ex:price ?high ; ex:row ?row FILTER (?high > ?low) }
}"""


def row(number: int, price: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": "a", "price": price, **more}


def engine(lifts: Mapping[str, str | Path] | None = None) -> spaseq.Engine:
    return spaseq.Engine(QUERY, lifts=lifts or {"S": LIFT})


def found(matches: list[spaseq.Match]) -> list[tuple[Any, ...]]:
    return [
        (*(m.bindings[v].to_python() for v in ("low", "high", "row")), m.trace[-1].event)
        for m in matches
    ]


def test_the_lift_makes_graph_name_and_time() -> None:
    engine_ = engine()
    engine_.push("S", row(1, 5, at=1000))
    engine_.push("http://e/s", row(2, 7, at=datetime.fromtimestamp(2, UTC)))
    assert found(engine_.close()) == [(5, 7, 2, "http://e/2")]


def test_a_given_time_counts_if_the_lift_makes_none() -> None:
    engine_ = engine()
    engine_.push("S", row(1, 5), 1000)
    engine_.push("S", row(2, 7, at=2000), 99_000)
    assert engine_.advance(2000)[0].end == datetime.fromtimestamp(2, UTC)


def test_rows_without_a_solution_are_no_events() -> None:
    engine_ = engine()
    for number, price in enumerate((5, 0, -1, None, 7)):
        engine_.push("S", row(number, price, at=number))
    assert engine_.filtered == 3
    assert found(engine_.close()) == [(5, 7, 5, "http://e/4")]


def test_a_lifted_stream_beside_another(tmp_path: Path) -> None:
    (tmp_path / "s.rq").write_text(LIFT)
    engine_ = engine({"http://e/s": tmp_path / "s.rq"})
    engine_.push("S", row(1, 5, at=1000))
    engine_.push(
        "T", '<http://e/a> <http://e/price> "6" .\n<http://e/a> <http://e/row> "x" .', 1500
    )
    integer = '"6"^^<http://www.w3.org/2001/XMLSchema#integer>'
    engine_.push(
        "T",
        f'<http://e/a> <http://e/price> {integer} ; <http://e/row> "x" .'.replace(
            " ; ", " .\n<http://e/a> "
        ),
        1600,
    )
    assert found(engine_.close()) == [(5, 6, "x", None)]


@pytest.mark.parametrize(
    ("bad", "time", "error"),
    [
        (row(2, 7), None, InputError),  # no time
        (row(2, 7, at="noon"), None, InputError),
        (row(2, 7, at=500), None, UsageError),  # it goes back
        (row("no iri <", 7, at=2000), None, InputError),
        (row(2, 7, at=2000, e=1), None, InputError),  # the lift binds ?e
        ([2, 7], None, UsageError),
        ('<http://e/a> <http://e/price> "6" .', 2000, UsageError),
        (row(2, 7), "noon", UsageError),
    ],
)
def test_a_refused_row_leaves_the_engine_as_it_was(bad: Any, time: Any, error: Any) -> None:
    engine_ = engine()
    engine_.push("S", row(1, 5, at=1000))
    with pytest.raises(error):
        engine_.push("S", bad, time)
    engine_.push("S", row(3, 7, at=3000))
    assert found(engine_.close()) == [(5, 7, 2, "http://e/3")]


def test_a_row_that_a_query_fails_on_is_not_counted() -> None:
    """The next row has the number that it would have had without the one that failed."""

    @spaseq.function("http://e/root")
    def root(value: float) -> float:
        if value == 6:
            raise OSError("no roots today")
        return value

    try:
        query = QUERY.replace("FILTER (?high > ?low)", "FILTER (ex:root(?high) > 0)")
        engine_ = spaseq.Engine(query, lifts={"S": LIFT})
        engine_.push("S", row(1, 5, at=1000))
        with pytest.raises(RunError, match="no roots"):
            engine_.push("S", row(2, 6, at=2000))
        engine_.push("S", row(3, 7, at=3000))
        assert found(engine_.close()) == [(5, 7, 2, "http://e/3")]
    finally:
        unregister("http://e/root")


def test_mistakes() -> None:
    with pytest.raises(QueryError):
        engine({"S": LIFT.replace("FILTER", "FILTR")})
    with pytest.raises(UsageError, match="no stream X"):
        engine({"X": LIFT})
    with pytest.raises(InputError, match=r"nowhere\.rq"):
        engine({"S": Path("nowhere.rq")})
    with pytest.raises(UsageError, match="needs a time"):
        engine().push("T", '<http://e/a> <http://e/price> "6" .')


# --- many at a time ---------------------------------------------------------------------------


def prices(count: int) -> list[dict[str, Any]]:
    """Prices that go up and down, two in each second; some are 0 or null."""
    given = [7 * n % 11 if n % 9 else None for n in range(count)]
    return [row(n, price, at=500 * n) for n, price in enumerate(given)]


def one_by_one(rows: list[dict[str, Any]]) -> tuple[list[tuple[Any, ...]], int]:
    engine_ = engine()
    matches = [match for each in rows for match in engine_.push("S", each)]
    return found(matches + engine_.close()), engine_.filtered


@pytest.mark.parametrize("size", [1, 16, 17, 63, 64, 300])
def test_many_rows_have_the_answers_of_single_ones(size: int) -> None:
    rows, engine_ = prices(300), engine()
    matches: list[spaseq.Match] = []
    for start in range(0, len(rows), size):
        matches += engine_.push_many([("S", each) for each in rows[start : start + size]])
    expected, filtered = one_by_one(rows)
    assert found(matches + engine_.close()) == expected
    assert engine_.filtered == filtered
    # the price is null for every ninth row, and 0 for every eleventh
    assert filtered == len({*range(0, 300, 9), *range(0, 300, 11)})
    assert len(expected) > 100


def test_many_rows_become_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    engine_ = engine()
    monkeypatch.setattr("spaseq.lift.pushed_rows.RowLifter.of_row", None)
    engine_.push_many([("S", each) for each in prices(100)])
    assert engine_.filtered == len({*range(0, 100, 9), *range(0, 100, 11)})


def test_bad_rows_among_many() -> None:
    rows = [("S", each) for each in prices(80)]
    rows[20:20] = [("S", row(1, 5)), ("S", row(1, 5, at=0)), ("S", 7), ("T", row(1, 5, at=9999))]  # type: ignore[list-item]
    engine_ = engine()
    with pytest.raises(spaseq.errors.BadEvents) as refused:
        engine_.push_many(rows)
    assert [(place, type(error)) for place, error in refused.value.bad] == [
        (20, InputError),  # no time
        (21, UsageError),  # it goes back
        (22, UsageError),  # no dict
        (23, UsageError),  # no lift
    ]
    expected, filtered = one_by_one(prices(80))
    assert found([*refused.value.matches, *engine_.close()]) == expected
    assert engine_.filtered == filtered


@pytest.mark.parametrize("groups", [1, 10])
def test_rows_beside_graphs_and_times_of_events(groups: int) -> None:
    integer = '"6"^^<http://www.w3.org/2001/XMLSchema#integer>'
    text = f'<http://e/a> <http://e/price> {integer} .\n<http://e/a> <http://e/row> "x" .'
    some: list[tuple[str, Any]] = []
    for group in range(groups):
        at = 20_000 * group
        some += [
            ("S", row(1, 5, at=at)),
            ("T", spaseq.Event(text, at + 1)),
            ("S", spaseq.Event(row(2, 4), at + 2)),  # the lift makes no time
            ("S", spaseq.Event(row(3, 8, at=at + 3), 0)),  # the lift's time counts
        ]
    engine_ = engine()
    matches = engine_.push_many(some) + engine_.close()
    assert found(matches) == [
        match
        for group in range(groups)
        for match in [(5, 6, "x", None), (4, 8, 3 * group + 3, "http://e/3")]
    ]
