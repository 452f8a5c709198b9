"""`spaseq check`: all errors and warnings of query files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaseq.cli.option_groups import Chosen, OptionGroup, grouped_command
from spaseq.cli.queries import FUNCTIONS, QUERY_FILES, QueryOptions, check_file


@grouped_command(OptionGroup("Options", (FUNCTIONS,)))
@QUERY_FILES
@click.option("--json", "as_json", is_flag=True, help="One JSON array of findings on stdout.")
def check(queries: tuple[Path, ...], as_json: bool, chosen: Chosen) -> int:
    """Check query files without running them.

    Every error and warning is reported with its place, what was expected and the nearest valid
    name. Exit status 1 if there is an error.
    """
    chosen[QueryOptions].load()
    findings = [d for path in queries for d in check_file(path).diagnostics]
    errors = sum(d.severity == "error" for d in findings)
    if as_json:
        click.echo(json.dumps([d.to_json() for d in findings], indent=2))
    else:
        for finding in findings:
            click.echo(finding.render())
        files = f"{len(queries)} quer{'y' if len(queries) == 1 else 'ies'}"
        click.echo(f"{files}: {errors} error(s), {len(findings) - errors} warning(s)", err=True)
    return 1 if errors else 0
