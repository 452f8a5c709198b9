"""Libraries that commands and a small local run must not import."""

from __future__ import annotations

import os
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

UNUSED = (
    "spaseq.alert_templates",
    "spaseq.api.answers",
    "spaseq.api.push",
    "spaseq.automaton.registers.compiled.hand_over",
    "spaseq.automaton.registers.compiled.judged_matches",
    "spaseq.automaton.sets.compiled",
    "spaseq.connectors.base",
    "spaseq.diagnosis",
    "spaseq.first_steps",
    "spaseq.gpm.graphs.paths",
    "spaseq.gpm.graphs.virtual_bgp",
    "spaseq.gpm.patterns.window_operators",
    "spaseq.gpm.single_event",
    "spaseq.gpm.solutions.places",
    "spaseq.kb.endpoint",
    "spaseq.kb.http_request",
    "spaseq.lift.lift_plan",
    "spaseq.lift.table_files",
    "spaseq.lang.rspql",
    "spaseq.logs",
    "spaseq.query_tests",
    "spaseq.rdf.messages.read_messages",
    "spaseq.runtime.live",
    "spaseq.runtime.spark",
    "spaseq.serve",
    "spaseq.sinks.text_columns",
    "spaseq.stages.changing_knowledge",
    "spaseq.stages.maintained_graphs",
    "spaseq.stages.partial_stage",
    "spaseq.windows.window_operator",
)
"""What this run does not use: lifts, messages, windows, graphs that change, other evaluators."""

MOST_MODULES = 366
"""Each module of the package takes 0.3 ms and more."""


def test_a_run_imports_what_its_query_needs() -> None:
    report = (
        "print('modules:', *(m for m in sys.modules if m.startswith('spaseq')), file=sys.stderr)"
    )
    code = RUN.replace("import pandas", f"{report}; import pandas")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    modules = set(run.stderr.rpartition("modules:")[2].split())
    unused = {m for m in modules if m.startswith(tuple(f"{name}." for name in UNUSED))}
    assert unused | (modules & set(UNUSED)) == set()
    assert len(modules) <= MOST_MODULES


def test_no_heavy_library(tmp_path: Path) -> None:
    heavy = {"http.client", "importlib.metadata", "pandas", "pyspark", "rdflib", "rich"}
    loaded = f"{heavy} & sys.modules.keys()"
    code = RUN.replace("import pandas", f"assert not {loaded}, {loaded}; import pandas")
    nothing_compiled = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=nothing_compiled, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith('{"query":')


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_a_command_starts_no_threads_for_linear_algebra(
    given: dict[str, str], threads: str
) -> None:
    code = """
import atexit, os, sys
from spaseq.__main__ import program
assert "numpy" not in sys.modules
atexit.register(lambda: print("threads:", os.environ["OPENBLAS_NUM_THREADS"]))
sys.argv = ["spaseq", "--version"]
program()
"""
    others = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=others | given, capture_output=True, text=True, check=True
    )
    assert run.stdout.rpartition("threads:")[2].strip() == threads


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
