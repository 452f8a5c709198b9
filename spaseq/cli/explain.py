"""`spaseq explain`: what a query becomes."""

from __future__ import annotations

from pathlib import Path

import click

from spaseq.cli.queries import FUNCTIONS, check_file
from spaseq.render.explain import explain_text


@click.command()
@FUNCTIONS
@click.argument("query", metavar="QUERY.rq", type=click.Path(path_type=Path))
def explain(query: Path) -> None:
    """Show a query's canonical text, AST, algebra, plan and automaton."""
    click.echo(explain_text(check_file(query)), nl=False)
