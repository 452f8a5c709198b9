"""Whatever reads the names of lifted events gives the names that the lift makes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import spaseq
from spaseq.api.match import Match
from spaseq.cli.main import cli
from tests.lift.test_many_rows import BODY, LIFT, SELECT, Row, expected, rows_of
from tests.sizes import THOROUGH

ROWS = 300
STREAM = "http://e/s"
NAMES = {row.at: f"http://e/event/{row.id}" for row in rows_of(ROWS)}
"""The name of an event by its time (ms)."""


@pytest.fixture
def lifted() -> spaseq.Lifted:
    return spaseq.Lifted(pa.Table.from_pylist([vars(row) for row in rows_of(ROWS)]), LIFT)


def names_of(matches: Iterable[Match]) -> list[tuple[str, ...]]:
    """The names in the traces, sorted; each must be the name at its event's time."""
    found = []
    for match in matches:
        for event in match.trace:
            assert event.event == NAMES[round(event.time.timestamp() * 1000)]
        found.append(tuple(str(event.event) for event in match.trace))
    return sorted(found)


def loop(accepts: Callable[[int, int], bool]) -> list[tuple[str, ...]]:
    """The names of the pairs whose values are accepted."""
    return sorted(names for (_, low, high), names in expected(ROWS) if accepts(low, high))


def test_a_data_frame(lifted: spaseq.Lifted) -> None:
    table = spaseq.run(SELECT, {"S": lifted}, runtime="local").to_arrow()
    traces = [tuple(item["event"] for item in trace) for trace in table["trace"].to_pylist()]
    assert sorted(traces) == loop(lambda low, high: True)


def _files(directory: Path, texts: Sequence[str]) -> list[Path]:
    """Files q0.rq, q1.rq and so on."""
    paths = [directory / f"q{number}.rq" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize(
    "runtime", ["local", pytest.param("spark", marks=[pytest.mark.spark, THOROUGH])]
)
def test_a_family_of_queries(lifted: spaseq.Lifted, runtime: str, tmp_path: Path) -> None:
    bounds = [10 * n for n in range(9)]
    texts = [SELECT.replace("?low }", f"?low FILTER (?low > {bound}) }}") for bound in bounds]
    found = list(spaseq.run(_files(tmp_path, texts), {"S": lifted}, runtime=runtime))
    for number, bound in enumerate(bounds):
        own = names_of(match for match in found if match.query == f"q{number}")
        assert own == loop(lambda low, high, bound=bound: low > bound) != []


def test_queries_of_no_family(lifted: spaseq.Lifted, tmp_path: Path) -> None:
    more = ["?low > 20", "20 < ?low", "?low >= 21", "!(?low <= 20)", "?low > 20 && ?low > 19"]
    more += ["?low > 20 && 19 < ?low", "?low + 1 > 21", "?low - 1 >= 20", "2 * ?low > 40"]
    texts = [SELECT.replace("?low }", f"?low FILTER ({test}) }}") for test in more]
    found = list(spaseq.run(_files(tmp_path, texts), {"S": lifted}, runtime="local"))
    for number in range(len(texts)):
        own = names_of(match for match in found if match.query == f"q{number}")
        assert own == loop(lambda low, high: low > 20) != []


def test_a_registered_stream(lifted: spaseq.Lifted, tmp_path: Path) -> None:
    rises = f"""PREFIX ex: <http://e/> REGISTER STREAM <http://e/rises> AS
        CONSTRUCT {{ ?c ex:rose ?high }} {BODY}"""
    reads = """PREFIX ex: <http://e/> SELECT ?c ?high WITHIN 1 SECONDS
        FROM STREAM R <http://e/rises> FROM STREAM S <http://e/s>
        WHERE { SEQ((A & R)) DEFINE GPM A ON S { ?c ex:value ?high }
                DEFINE GPM R ON R { ?c ex:rose ?high } }"""
    files = _files(tmp_path, [rises, reads])
    found = list(spaseq.run(files, {"S": lifted}, runtime="local"))
    last = [next(e for e in m.trace if e.stream == STREAM) for m in found if m.query == "q1"]
    rose = {high for _, high in loop(lambda low, high: True)}
    assert {str(event.event) for event in last} == rose
    assert all(e.event == NAMES[round(e.time.timestamp() * 1000)] for e in last)


def test_partial_matches(lifted: spaseq.Lifted) -> None:
    never = SELECT.replace("SEQ(A : B)", "SEQ(A : B : C)").replace(
        "DEFINE GPM A", "DEFINE GPM C ON S { ?c ex:value -1 } DEFINE GPM A"
    )
    partial: list[Match] = []
    run = spaseq.run(never, {"S": lifted}, runtime="local", on_partial=partial.append)
    assert list(run) == []
    assert names_of(p for p in partial if len(p.trace) == 2) == loop(lambda low, high: True)


def test_why_an_event_is_in_no_answer(tmp_path: Path) -> None:
    command = _command(tmp_path, "why", "--event", "http://e/event/10200")
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    assert "event/10200> at 1970-01-01T00:00:14 in S" in result.output


@THOROUGH
def test_a_checkpoint(tmp_path: Path) -> None:
    """A second run goes on with the rows that the first one holds."""
    command = _command(tmp_path, "run", "--runtime", "local", "--follow")
    out = tmp_path / "out.jsonl"
    command += ["--checkpoint", str(tmp_path / "state"), "--out", str(out)]
    half = rows_of(ROWS)[: ROWS // 2], rows_of(ROWS)[ROWS // 2 :]
    found: list[tuple[str, ...]] = []
    for number, rows in enumerate(half):
        _write(tmp_path / "rows" / f"{number}.csv", rows)
        pairs = [names for _, names in expected(ROWS) if names[1] < NAMES[half[1][0].at] or number]
        with subprocess.Popen([sys.executable, "-m", "spaseq", *command]) as run:
            until = time.monotonic() + 60
            while len(found) < len(pairs) - 20 and time.monotonic() < until and run.poll() is None:
                time.sleep(0.1)
                lines = out.read_text().splitlines() if out.exists() else []
                traces = [json.loads(line)["trace"] for line in lines]
                found = [tuple(item["event"] for item in trace) for trace in traces]
            run.send_signal(signal.SIGTERM)
        assert run.returncode == 143
    assert len(found) == len({*found})
    assert {*found} <= {names for _, names in expected(ROWS)}
    last = NAMES[rows_of(ROWS)[-1].at]  # nothing completes the last event
    assert {names for _, names in expected(ROWS) if names[1] != last} - {*found} == set()


def _command(directory: Path, name: str, *more: str) -> list[str]:
    """A command over a query, a lift and a directory of CSV files with the rows."""
    (directory / "q.rq").write_text(SELECT)
    (directory / "lift.rq").write_text(LIFT)
    (directory / "rows").mkdir()
    if name == "why":
        _write(directory / "rows" / "0.csv", rows_of(ROWS))
    command = [name, str(directory / "q.rq"), "--stream", f"S={directory / 'rows'}/*.csv"]
    command += ["--lift", f"S={directory / 'lift.rq'}", "--types", "S=value=integer,at=integer"]
    return [*command, *more]


def _write(path: Path, rows: Iterable[Row]) -> None:
    lines = [f"{r.id},{r.sensor},{r.value},{r.at}" for r in rows]
    path.write_text("\n".join(["id,sensor,value,at", *lines, ""]))
