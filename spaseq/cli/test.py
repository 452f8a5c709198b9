"""`spaseq test`: runs the tests of queries, without a server."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spaseq.cli.messages import tell
from spaseq.cli.option_groups import Chosen, OptionGroup, grouped_command
from spaseq.cli.queries import FUNCTIONS, QueryOptions
from spaseq.errors import UsageError

if TYPE_CHECKING:
    from spaseq.query_tests.case_nodes import QueryTestFile
    from spaseq.query_tests.case_run import TestOutcome

FAILED = 1
NO_PATH = 4
NO_TESTS = 5


@grouped_command(OptionGroup("Queries", (FUNCTIONS,)))
@click.argument("paths", nargs=-1, metavar="[PATH...]", type=click.Path(path_type=Path))
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the outcomes as JUnit XML.",
)
def test(paths: tuple[Path, ...], junit: Path | None, chosen: Chosen) -> int:
    """Run the tests of queries in *.test.toml files.

    A test has events, step by step, and the answers that each step makes final.

    \b
    A PATH is a file, or a directory with files below it; by default the current directory.
      spaseq test queries/
      spaseq test silent.test.toml --junit report.xml

    \b
    A test file names its query, and has tests of steps:
      query = "silent.rq"
      [[test]]
      name = "one device falls silent"
      [[test.step]]
      stream = "Beats"
      at = 0
      events = "[] :beat :d1 ."
      answers = []
      [[test.step]]
      wait = "5 SECONDS"
      answers = [{ d = ":d1" }]

    \b
    Exit status: 0 all passed, 1 some failed, 2 a file has mistakes, 4 there is no such path,
    5 there are no tests.
    """  # fmt: skip
    # `spaseq --help` need not wait for these imports.
    from spaseq.query_tests.case_file import found_files, read_test_files
    from spaseq.query_tests.case_run import summary_line

    begun = time.perf_counter()
    chosen[QueryOptions].load()
    try:
        places = found_files(paths or (Path(),))
    except UsageError as error:
        tell(f"spaseq: {error}")
        return NO_PATH
    by_file = _outcomes(read_test_files(places))
    everything = [outcome for each in by_file.values() for outcome in each]
    click.echo(summary_line(everything, time.perf_counter() - begun))
    if junit is not None:
        from spaseq.query_tests.case_run import write_junit

        write_junit(junit, by_file)
    if not everything:
        return NO_TESTS
    return FAILED if any(outcome.failure for outcome in everything) else 0


def _outcomes(files: Iterable[QueryTestFile]) -> dict[Path, list[TestOutcome]]:
    """Run the tests of files, and print a line for each file, and the failures."""
    from spaseq.query_tests.case_run import failures, heading, outcomes, progress_line

    by_file: dict[Path, list[TestOutcome]] = {}
    for file in files:
        by_file[file.path] = list(outcomes(file))
        click.echo(progress_line(file.path, by_file[file.path]))
    lines = [line for path, each in by_file.items() for line in failures(path, each)]
    for line in (heading("FAILURES"), *lines) if lines else ():
        click.echo(line)
    return by_file
