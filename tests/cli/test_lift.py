"""`spaseq lift`, and `spaseq check` of lifts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spaseq.cli.main import cli
from spaseq.errors import InputError, QueryError, UsageError
from tests.lift.lifting import PREFIXES

LIFT = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?e :v ?a }} ?e prov:generatedAtTime ?t }} WHERE {{
  BIND (IRI(CONCAT("http://e/", ?id)) AS ?e) BIND (xsd:integer(?at) AS ?t) FILTER (?a != "no") }}"""


def run(
    tmp_path: Path, *more: str, lift: str = LIFT, rows: str = "id,at,a\n1,5,x\n2,6\n3,7,no\n"
) -> Result:
    (tmp_path / "a.lift.rq").write_text(lift)
    (tmp_path / "t.csv").write_text(rows)
    arguments = ["lift", str(tmp_path / "a.lift.rq"), str(tmp_path / "t.csv"), *more]
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def test_graphs_bad_rows_and_counts(tmp_path: Path) -> None:
    done = run(tmp_path, "--bad", str(tmp_path / "bad.jsonl"))
    assert done.exception is None
    assert done.stdout == (
        "<http://e/1> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        '<http://e/1> <http://e/v> "x" <http://e/1> .\n'
    )
    assert "1 events, 1 rows filtered, 1 bad" in done.stderr
    bad = json.loads((tmp_path / "bad.jsonl").read_text())
    assert (bad["line"], bad["reason"]) == (3, "2 cells, but the header has 3")


@pytest.mark.parametrize(
    ("error", "more", "lift"),
    [
        (QueryError, (), LIFT.replace("FILTER", "FILTR")),
        (InputError, (), LIFT.replace("?a", "?other")),
        (UsageError, ("--types", "a=intger"), LIFT),
        (InputError, ("nowhere.csv",), LIFT),
    ],
)
def test_refusals(error: type, more: tuple[str, ...], lift: str, tmp_path: Path) -> None:
    assert type(run(tmp_path, *more, lift=lift).exception) is error


def test_only_bad_rows(tmp_path: Path) -> None:
    assert type(run(tmp_path, rows="id,at,a\n1\n").exception) is InputError


def test_check_of_a_lift(tmp_path: Path) -> None:
    path = tmp_path / "a.lift.rq"
    for text, status in ((LIFT, 0), (LIFT.replace("FILTER", "FILTR"), 1)):
        path.write_text(text)
        done = CliRunner().invoke(cli, ["check", str(path)], standalone_mode=False)
        assert done.return_value == status
    assert "did you mean: FILTER" in done.stdout


def test_times_in_seconds_are_written_as_date_times(tmp_path: Path) -> None:
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    lift = "CONSTRUCT { <e:s> <e:p> ?v ; <http://www.w3.org/ns/prov#generatedAtTime> ?t } "
    (tmp_path / "lift.rq").write_text(lift + f"WHERE {{ BIND(<{integer}>(?at) AS ?t) }}")
    (tmp_path / "rows.csv").write_text("v,at\n1,1700000000\n")
    paths = [str(tmp_path / "lift.rq"), str(tmp_path / "rows.csv")]
    done = CliRunner().invoke(cli, ["lift", *paths, "--time-unit", "s"])
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[0]
    assert '"2023-11-14T22:13:20Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>' in first
