"""Queries as people first write them give what a plain loop over the rows finds.

The default tests have 4,000 rows, the thorough ones 12,000, and the slow ones 200,000 with 20,000
keys, from every kind of file, on both runtimes, in every output format, by the command line.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.loops.outputs import FORMATS, GRAPHS, TABLES, graphs, value
from tests.loops.running import answers, difference, expected, run
from tests.loops.scenarios import SCENARIOS
from tests.loops.tables import FORMATS as FILES
from tests.loops.tables import NS, milliseconds
from tests.loops.tables import TABLES as LIFTED

SINGLE = [name for name, scenario in SCENARIOS.items() if len(scenario.queries) == 1]
TURN = {name: FILES[i % len(FILES)] for i, name in enumerate(SCENARIOS)}
"""The kind of file that each scenario's default test reads."""


def check(
    name: str, rows: int, form: str, output: str, runtime: str, directory: Path, process: bool
) -> int:
    """Compare one run with the loop; gives the number of answers."""
    scenario = SCENARIOS[name]
    tables = scenario.tables(rows)
    found = scenario.loop(tables)[name]
    path = run(scenario, tables, form, output, runtime, directory, process)
    wanted = expected(found, scenario, output not in TABLES)
    wrong = difference(answers(path, output, scenario), wanted)
    assert wrong is None, f"{name}, {form}, {output}, {runtime}: {wrong}"
    return len(wanted)


def check_alarms(rows: int, form: str, runtime: str, directory: Path, process: bool) -> int:
    """The derived stream is compared with the loop, and so is what the second query counts."""
    scenario = SCENARIOS["alarms"]
    tables = scenario.tables(rows)
    loop = scenario.loop(tables)
    path = run(scenario, tables, form, "jsonl", runtime, directory, process)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    derived = [
        (
            milliseconds(line["end"]),
            *((t["subject"]["value"], t["object"]["value"]) for t in line["graph"]),
            tuple(i["event"] for i in line["trace"]),
        )
        for line in lines
        if line["query"] == f"{NS}stream/alarms"
    ]
    assert derived == [
        (
            a.end[0],
            (a.values["room"], str(a.values["celsius"])),
            tuple(event for _, _, event in a.trace),
        )
        for a in loop["alarm"]
    ]
    counted = [
        (milliseconds(line["end"]), *(line["bindings"][v]["value"] for v in scenario.variables))
        for line in lines
        if line["query"] == "alarms"
    ]
    assert counted == [
        (a.end[0], *(str(a.values[v]) for v in scenario.variables))
        for a in sorted(loop["alarms"], key=lambda a: a.order())
    ]
    return len(counted)


def check_graphs(
    rows: int, form: str, output: str, runtime: str, directory: Path, process: bool
) -> None:
    """The derived stream alone, written as a stream."""
    scenario = SCENARIOS["alarms"]
    tables = scenario.tables(rows)
    alone = replace(scenario, queries={"alarm": scenario.queries["alarm"]})
    path = run(alone, tables, form, output, runtime, directory, process)
    triples = [(s, o) for s, p, o in graphs(path, output) if p == f"{NS}alarm"]
    loop = scenario.loop(tables)["alarm"]
    assert triples == [(a.values["room"], value(a.values["celsius"])) for a in loop]


@pytest.mark.parametrize("name", SINGLE)
def test_some_rows(name: str, tmp_path: Path) -> None:
    assert check(name, 4_000, TURN[name], "jsonl", "local", tmp_path, False) > 10


def test_some_alarms(tmp_path: Path) -> None:
    assert check_alarms(4_000, "csv", "local", tmp_path, False) > 10


@pytest.mark.thorough
@pytest.mark.parametrize("name", SINGLE)
def test_more_rows(name: str, tmp_path: Path) -> None:
    for i, output in enumerate(FORMATS):
        form = FILES[i % len(FILES)]
        assert check(name, 12_000, form, output, "local", tmp_path, False) > 50


@pytest.mark.thorough
def test_more_alarms(tmp_path: Path) -> None:
    for form, output in zip(FILES, GRAPHS, strict=True):
        assert check_alarms(12_000, form, "local", tmp_path, False) > 50
        check_graphs(12_000, form, output, "local", tmp_path, False)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("name", SINGLE)
def test_more_rows_on_spark(spark: Any, name: str, tmp_path: Path) -> None:
    assert check(name, 12_000, TURN[name], "jsonl", "spark", tmp_path, False) > 50


@pytest.mark.thorough
@pytest.mark.spark
def test_more_alarms_on_spark(spark: Any, tmp_path: Path) -> None:
    assert check_alarms(12_000, "csv", "spark", tmp_path, False) > 50


@pytest.mark.slow
@pytest.mark.parametrize("form", LIFTED)
def test_lifts_of_30000_rows(form: str, tmp_path: Path) -> None:
    """Every table, read by a lift, in every output format."""
    for name in ("rise", "burst"):
        for output in FORMATS:
            assert check(name, 30_000, form, output, "local", tmp_path, True) > 500
    for output in GRAPHS:
        check_graphs(30_000, form, output, "local", tmp_path, True)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["local", "spark"])
@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("name", SINGLE)
def test_many_rows(name: str, form: str, runtime: str, tmp_path: Path) -> None:
    for output in FORMATS:
        assert check(name, 200_000, form, output, runtime, tmp_path, True) > 500


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["local", "spark"])
@pytest.mark.parametrize("form", FILES)
def test_many_alarms(form: str, runtime: str, tmp_path: Path) -> None:
    assert check_alarms(200_000, form, runtime, tmp_path, True) > 500
    for output in GRAPHS:
        check_graphs(200_000, form, output, runtime, tmp_path, True)
