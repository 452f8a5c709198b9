"""Runs a scenario by the command line, and compares every answer with the loop's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner

from spaseq.cli.main import cli
from tests.loops.outputs import TABLES, Told, read, told
from tests.loops.scenarios import Found, Scenario
from tests.loops.tables import Table


def run(
    scenario: Scenario,
    tables: Sequence[Table],
    form: str,
    output: str,
    runtime: str,
    directory: Path,
    process: bool,
) -> Path:
    """Run the scenario's queries over the tables as files of a form; gives the answers' file."""
    words = ["run"]
    for name, text in scenario.queries.items():
        (directory / f"{name}.rq").write_text(text, encoding="utf-8")
        words.append(str(directory / f"{name}.rq"))
    out = directory / f"answers.{output}"
    words += ["--runtime", runtime, "--format", output, "--out", str(out), "--strict"]
    if output in TABLES:
        words += ["--columns", ",".join([*scenario.variables, "+start", "+end"])]
    for table in tables:
        path, lift = table.write(form, directory)
        words += ["--stream", f"<{table.iri}>={path}"]
        words += ["--lift", f"<{table.iri}>={lift}"] if lift else []
    if scenario.kb is not None:
        (directory / "kb.nt").write_text(scenario.kb(len(tables[0].rows)), encoding="utf-8")
        words += ["--kb", f"http://t/rooms={directory / 'kb.nt'}"]
    if process:
        done = subprocess.run(
            [sys.executable, "-m", "spaseq", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
    else:
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    return out


def difference(found: Sequence[Told], expected: Sequence[Told]) -> str | None:
    """What differs, in a few lines."""
    if list(found) == list(expected):
        return None
    missing, surplus = set(expected) - set(found), set(found) - set(expected)
    lines = [f"{len(found)} answers, not {len(expected)}"]
    lines += [f"missing ({len(missing)}) {row}" for row in sorted(missing, key=str)[:2]]
    lines += [f"surplus ({len(surplus)}) {row}" for row in sorted(surplus, key=str)[:2]]
    return "\n".join(lines if missing or surplus else [*lines, "the order differs"])


def expected(found: Sequence[Found], scenario: Scenario, traced: bool) -> list[Told]:
    return [told(a, scenario.variables, traced) for a in sorted(found, key=Found.order)]


def answers(path: Path, output: str, scenario: Scenario) -> list[Told]:
    return read(path, output, scenario.variables)
