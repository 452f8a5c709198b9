"""`spaseq fmt`: canonical text."""

from __future__ import annotations

from pathlib import Path

import click

from spaseq.cli.queries import QUERY_FILES, check_file
from spaseq.errors import QueryError
from spaseq.lang.format import format_query
from spaseq.lang.scan import head_lines


@click.command()
@QUERY_FILES
@click.option("-w", "--write", is_flag=True, help="Rewrite the files instead of printing them.")
def fmt(queries: tuple[Path, ...], write: bool) -> None:
    """Print query files in canonical form. Comments after the first clause are lost."""
    for path in queries:
        checked = check_file(path)
        syntax = [d for d in checked.errors if d.code in ("syntax", "undeclared-prefix")]
        if checked.query is None or syntax:
            raise QueryError(syntax or checked.errors)
        heading = "".join(f"{line}\n" for line in head_lines(checked.source.text))
        text = heading + format_query(checked.query)
        if write:
            path.write_text(text, encoding="utf-8")
        else:
            click.echo(text, nl=False)
