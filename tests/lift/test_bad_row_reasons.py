"""A row that makes no event is reported with the fields that this is due to, and their cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import run_bounded
from tests.lift.lifting import lifted

XSD = "http://www.w3.org/2001/XMLSchema#"
LIFT = f"""PREFIX : <http://e/> PREFIX xsd: <{XSD}> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT {{ GRAPH ?e {{ :r :v ?v }} ?e prov:generatedAtTime ?t }} WHERE {{
  BIND (xsd:dateTime(CONCAT(?day, "T", ?hour, "Z")) AS ?t)
  BIND (CONCAT("http://e/", ?id) AS ?text) BIND (IRI(?text) AS ?e)
  BIND (xsd:integer(?n) AS ?v) }}"""
GOOD = "1,2024-01-01,12:00:00,7"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            "2,2024-13-01,12:00:00,7",
            'the event has no time: ?t has no value, field day is "2024-13-01", '
            'field hour is "12:00:00"',
        ),
        (
            "2,2024-01-01,,7",
            'the event has no time: ?t has no value, field day is "2024-01-01", '
            "field hour is empty",
        ),
        (
            ",2024-01-01,12:00:00,7",
            "the event's name is unbound: ?e has no value, field id is empty",
        ),
        (
            "2,2024-01-01,12:00:00,seven",
            'the event has no triple besides its time: ?v has no value, field n is "seven"',
        ),
    ],
)
def test_a_cast_that_fails(tmp_path: Path, row: str, reason: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"id,day,hour,n\n{GOOD}\n{row}\n")
    events, bad = lifted(path, LIFT)
    assert len(events) == 1
    assert [(b.line, b.reason) for b in bad] == [(3, reason)]


PLAIN = f"""PREFIX : <http://e/> PREFIX xsd: <{XSD}> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT {{ :g :v ?v ; prov:generatedAtTime ?at }} WHERE {{ }}"""


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"at": "noon", "v": 1}', 'unreadable time "noon" of field at'),
        ('{"v": 1}', "the event has no time: field at is empty"),
        ('{"at": 1000, "v": null}', "the event has no triple besides its time: field v is empty"),
    ],
)
def test_a_field_that_stands_in_the_template(tmp_path: Path, row: str, reason: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(row)
    assert [b.reason for b in lifted(path, PLAIN)[1]] == [reason]


def test_a_long_cell_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"id,day,hour,n\n1,2024-01-01,12:00:00,{'x' * 1000}\n")
    _, bad = lifted(path, LIFT)
    assert 'field n is "xxx' in bad[0].reason
    assert len(bad[0].reason) < 250


def test_a_run_shows_one_row_of_each_kind(tmp_path: Path) -> None:
    (tmp_path / "lift.rq").write_text(LIFT)
    (tmp_path / "q.rq").write_text(
        "SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s> "
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?o <http://e/v> ?v } }"
    )
    rows = "".join(f"{n},2024-13-{n},12:00:00,7\n" for n in range(10, 30))
    (tmp_path / "rows.csv").write_text(f"id,day,hour,n\n{GOOD}\n{rows}")
    command = ["run", "q.rq", "--stream", "S=rows.csv", "--lift", "lift.rq", "--runtime", "local"]
    done = run_bounded(command, cwd=tmp_path, memory=4 << 30)
    assert done.stderr.count("has no time") == 1, done.stderr
    assert 'rows.csv:3: the event has no time: ?t has no value, field day is "2024-13-10"' in (
        done.stderr
    )
