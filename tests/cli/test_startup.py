"""Libraries that commands and a small local run must not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from spaseq.cli.main import COMMANDS, cli

CASE = Path(__file__).parents[2] / "streams" / "traffic"

RUN = f"""
import sys
from spaseq.cli import main
streams = [a for i in "1234" for a in ("--stream", f"S{{i}}={CASE}/sensor-{{i}}.nq")]
try:
    main(["run", "{CASE}/query.rq", *streams, "--kb", "{CASE}/kb.ttl", "--runtime", "local"])
except SystemExit as end:
    assert end.code == 0
import pandas, pyarrow
assert pyarrow.array(pandas.Series([1, 2])).to_pylist() == [1, 2]
"""


def test_no_heavy_library() -> None:
    loaded = "{'pandas', 'pyspark', 'rdflib', 'rich'} & sys.modules.keys()"
    code = RUN.replace("import pandas", f"assert not {loaded}, {loaded}; import pandas")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith('{"query":')


HEAVY = ("numba", "numpy", "pandas", "pyarrow", "pyspark", "rdflib")


def loaded(code: str) -> set[str]:
    """The heavy libraries that a Python process has imported after running some code."""
    report = f"import sys; {code}; print('loaded:', *(n for n in {HEAVY} if n in sys.modules))"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(run.stdout.rpartition("loaded:")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["check", "--help"],
        ["check", f"{CASE}/query.rq"],
        ["fmt", f"{CASE}/query.rq"],
        ["explain", f"{CASE}/query.rq"],
    ],
    ids=" ".join,
)
def test_commands_that_run_no_query_import_no_heavy_library(arguments: list[str]) -> None:
    code = f"from spaseq.cli.main import cli; cli.main({arguments}, standalone_mode=False)"
    assert loaded(code) == set()


def test_the_package_alone_imports_no_heavy_library() -> None:
    assert loaded("import spaseq; dir(spaseq)") == set()


def test_the_planner_imports_no_kernel() -> None:
    code = "import spaseq.compile; kernels = [m for m in sys.modules if '.kernels' in m]"
    assert loaded(f"{code}; assert not kernels, kernels") == set()


def test_a_command_ends_without_a_last_collection_of_all_objects() -> None:
    # Handlers run in reverse order, so this one sees what the command left to collect.
    report = "atexit.register(lambda: print('left:', len(gc.get_objects())))"
    code = f"import atexit, gc, sys; {report}; from spaseq.cli import main; main(['--version'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout.rpartition("left:")[2]) < 1000


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_first_line_of_each_command(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help is not None
    line = command.help.partition("\n\n")[0]
    assert line.startswith(COMMANDS[name].rstrip("."))
