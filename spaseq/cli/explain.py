"""`spaseq explain`: what a query becomes."""

from __future__ import annotations

from pathlib import Path

import click

from spaseq.cli.option_groups import Chosen, OptionGroup, grouped_command
from spaseq.cli.queries import DISABLE, ENTAILMENT, FUNCTIONS, ONTOLOGY, QueryOptions, check_file
from spaseq.message_text import visible, without_passwords
from spaseq.options import PlanningOptions
from spaseq.render.explain import explain_text


@grouped_command(OptionGroup("Options", (FUNCTIONS, ONTOLOGY, ENTAILMENT, DISABLE)))
@click.argument("query", metavar="QUERY.rq", type=click.Path(path_type=Path))
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Solutions of its graph patterns per second, to say how much memory the query needs.",
)
def explain(query: Path, rate: float | None, chosen: Chosen) -> None:
    """Show a query's canonical text, AST, algebra, plan and automaton."""
    chosen[QueryOptions].load()
    text = explain_text(check_file(query, chosen[PlanningOptions]), rate)
    click.echo(visible(without_passwords(text)), nl=False)
