"""Every row of LANGUAGE section 4, on both runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from tests.language import tables

RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]


def answers(query: str, values: str, runtime: str, directory: Path) -> list[str]:
    """The values of each answer's events, in the order of answers."""
    path = directory / "stream.nq"
    path.write_text(tables.nquads(values))
    matches = spaseq.run(query, {"S": path}, runtime=runtime)
    return [
        " ".join(values.split()[int(t.event.removeprefix("http://example/g"))] for t in m.trace)
        for m in matches
    ]


def expected(row: tables.Row) -> list[str]:
    return row.answers.split(" · ") if row.answers else []


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("row", tables.NUMBERS, ids=lambda r: r.id)
def test_numbers(row: tables.Row, runtime: str, tmp_path: Path) -> None:
    found = answers(tables.number_query(row), row.values, runtime, tmp_path)
    assert sorted(found) == sorted(expected(row))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("row", tables.LETTERS, ids=lambda r: r.id)
def test_letters(row: tables.Row, runtime: str, tmp_path: Path) -> None:
    found = answers(tables.letter_query(row), row.values, runtime, tmp_path)
    assert sorted(found) == sorted(expected(row))
