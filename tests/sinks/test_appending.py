"""Documents that a resumed run appends to."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import UsageError
from spaseq.sinks import begins_now

COLUMNS = ["road", "+start"]


def test_a_new_file_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert begins_now(str(path), "csv", COLUMNS)
    path.touch()
    assert begins_now(str(path), "csv", COLUMNS)


@pytest.mark.parametrize("rows", ["", "a1,2020-01-01T00:00:00Z\r\n"])
def test_a_table_goes_on(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("road,start\r\n" + rows, newline="")
    assert not begins_now(str(path), "csv", COLUMNS)


@pytest.mark.parametrize("other", [["road"], ["+start", "road"], ["road", "+start", "+end"]])
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_other_columns_are_refused(form: str, other: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a"
    end = {"csv": "road,start\r\n", "tsv": "?road\t?start\n"}[form]
    path.write_text(end + "x", newline="")
    with pytest.raises(UsageError, match="needs the same --columns"):
        begins_now(str(path), form, other)
    assert not begins_now(str(path), form, COLUMNS)


def test_half_a_beginning_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("road,st")
    assert begins_now(str(path), "csv", COLUMNS)
    assert path.read_text() == ""


def test_a_format_without_a_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    assert not begins_now(str(path), "jsonl", COLUMNS)
