"""`spaseq explain`: what a query becomes."""

from __future__ import annotations

from pathlib import Path

import click

from spaseq.cli.queries import FUNCTIONS, RULE_SWITCHES, check_file, entailing
from spaseq.kb.ontology import entailing_schema
from spaseq.render.explain import explain_text


@click.command()
@FUNCTIONS
@entailing
@RULE_SWITCHES
@click.argument("query", metavar="QUERY.rq", type=click.Path(path_type=Path))
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Solutions of its graph patterns per second, to say how much memory the query needs.",
)
def explain(
    query: Path,
    ontologies: tuple[str, ...],
    entailment: str | None,
    disable: tuple[str, ...],
    rate: float | None,
) -> None:
    """Show a query's canonical text, AST, algebra, plan and automaton."""
    schema = entailing_schema(ontologies, entailment)
    click.echo(explain_text(check_file(query, schema, disable), rate), nl=False)
