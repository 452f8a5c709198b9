"""Query files of the command line."""

from __future__ import annotations

from pathlib import Path

import click

from spaseq.api import read_query
from spaseq.compile import Checked, check_query
from spaseq.errors import Diagnostic, QueryError
from spaseq.plan.nodes import QueryPlan

QUERY_FILES = click.argument(
    "queries", nargs=-1, required=True, metavar="QUERY.rq...", type=click.Path(path_type=Path)
)


def check_file(path: Path) -> Checked:
    """A query file, parsed and checked.

    Raises:
        InputError: it cannot be read.
    """
    return check_query(read_query(path), path.stem, str(path))


def plan_files(paths: tuple[Path, ...]) -> tuple[QueryPlan, ...]:
    """The plans of query files; warnings go to stderr.

    Raises:
        QueryError: with all errors of all files.
    """
    checked = [check_file(path) for path in paths]
    errors: list[Diagnostic] = [d for c in checked for d in c.errors]
    if errors:
        raise QueryError(errors)
    for diagnostic in (d for c in checked for d in c.warnings):
        click.echo(diagnostic.render(), err=True)
    return tuple(c.plan for c in checked if c.plan is not None)
