"""`spaseq.run(lifts=...)`, and what a DataFrame without a lift is told."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pytest

import spaseq
from spaseq.errors import UsageError

LIFT = """PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { <http://e/x> <http://e/v> ?v ; prov:generatedAtTime ?at } WHERE { }"""
QUERY = """SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/v> ?v } }"""
ROWS = [{"v": 7, "at": 0}, {"v": 9, "at": 1000}]


def values(answers: Iterator[spaseq.Match]) -> list[object]:
    return [match.bindings["v"].to_python() for match in answers]


@pytest.mark.parametrize("rows", [ROWS, pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS), iter(ROWS)])
def test_rows_with_a_lift(rows: object) -> None:
    found = spaseq.run(QUERY, {"S": rows}, runtime="local", lifts={"S": LIFT})  # type: ignore[dict-item]
    assert values(iter(found)) == [7, 9]


def test_a_lift_for_no_stream() -> None:
    with pytest.raises(UsageError, match="T is no stream of this call; S are"):
        spaseq.run(QUERY, {"S": ROWS}, runtime="local", lifts={"T": LIFT})  # type: ignore[dict-item]


@pytest.mark.parametrize("table", [pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS)])
def test_a_table_without_a_lift_is_told_what_to_write(table: object) -> None:
    with pytest.raises(UsageError, match=r"spaseq\.Lifted\(data, lift\), or lifts="):
        list(spaseq.run(QUERY, {"S": table}, runtime="local"))  # type: ignore[dict-item]


@pytest.mark.parametrize("given", [ROWS, iter(ROWS)], ids=["list", "iterator"])
def test_rows_without_a_lift_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match=r"a dict is a row, .*lifts=\{NAME: lift\}"):
        list(spaseq.run(QUERY, {"S": given}, runtime="local"))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("lift", "reason"),
    [
        ("cars.lift.rq", "looks like a path: say pathlib"),
        (None, "text or a pathlib.Path, not NoneType"),
    ],
)
def test_what_is_no_lift(lift: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        list(spaseq.run(QUERY, {"S": spaseq.Lifted(ROWS, lift)}, runtime="local"))
