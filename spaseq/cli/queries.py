"""Query files of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from spaseq.algebra.schema import Schema
from spaseq.api.queries import read_query
from spaseq.compile import Checked, check_query
from spaseq.errors import Diagnostic, QueryError
from spaseq.expr.extension import load_functions
from spaseq.kb.ontology import REGIMES
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules import NAMES

QUERY_FILES = click.argument(
    "queries", nargs=-1, required=True, metavar="QUERY.rq...", type=click.Path(path_type=Path)
)

FUNCTIONS = click.option(
    "--functions",
    multiple=True,
    metavar="MODULE|FILE.py",
    expose_value=False,
    callback=lambda _, __, places: _load(places),
    help="A Python module that registers extension functions with @spaseq.function(IRI). A file is "
    "sent to Spark's workers as it is; a module must be importable there. Repeatable.",
)


def _load(places: tuple[str, ...]) -> None:
    for place in places:
        load_functions(place)


def entailing(command: Callable[..., None]) -> Callable[..., None]:
    """The options --ontology and --entailment."""
    command = click.option(
        "--ontology",
        "ontologies",
        multiple=True,
        metavar="FILE",
        help="An ontology to entail by (Turtle, RDF/XML, ...). Repeatable.",
    )(command)
    return click.option(
        "--entailment",
        type=click.Choice(REGIMES),
        help="Patterns match what events and knowledge entail with the ontology: subclasses, "
        "subproperties, domains and ranges, equivalents, inverses.",
    )(command)


RULE_SWITCHES = click.option(
    "--disable",
    multiple=True,
    metavar="RULE",
    help="Do without a rule of the planner; answers stay the same. Repeatable. RULE is one of "
    f"{', '.join(NAMES)}.",
)


def check_file(path: Path, schema: Schema | None = None, disable: Iterable[str] = ()) -> Checked:
    """A query file, parsed and checked; `schema` is what its patterns are entailed by, `disable`
    names rules to do without.

    Raises:
        InputError: it cannot be read.
    """
    return check_query(read_query(path), path.stem, str(path), schema=schema, disable=disable)


def plan_files(
    paths: tuple[Path, ...], schema: Schema | None = None, disable: Iterable[str] = ()
) -> tuple[QueryPlan, ...]:
    """The plans of query files; warnings go to stderr.

    Raises:
        QueryError: with all errors of all files.
    """
    checked = [check_file(path, schema, disable) for path in paths]
    errors: list[Diagnostic] = [d for c in checked for d in c.errors]
    if errors:
        raise QueryError(errors)
    for diagnostic in (d for c in checked for d in c.warnings):
        click.echo(diagnostic.render(), err=True)
    return tuple(c.plan for c in checked if c.plan is not None)
