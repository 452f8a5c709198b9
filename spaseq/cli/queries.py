"""Query files of the command line, and the options that say how they are planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from spaseq.api.queries import check_queries, plans_of
from spaseq.cli.messages import tell
from spaseq.cli.option_groups import PartOption
from spaseq.compile import Checked
from spaseq.expr.extension import load_functions
from spaseq.options import REGIMES, PlanningOptions
from spaseq.plan.rules import NAMES
from spaseq.records import record

F = TypeVar("F", bound=Callable[..., Any])


def query_files(required: bool) -> Callable[[F], F]:
    """The argument of a command that takes query files."""
    kind: click.Path = click.Path(path_type=Path)
    metavar = "QUERY.rq..." if required else "[QUERY.rq...]"
    return click.argument("queries", nargs=-1, required=required, metavar=metavar, type=kind)


QUERY_FILES = query_files(required=True)


@record
class QueryOptions:
    """The inputs to load before queries are read."""

    functions: tuple[str, ...] = ()

    def load(self) -> None:
        """Load the modules of extension functions.

        Raises:
            InputError: a module does not load.
        """
        for module in self.functions:
            load_functions(module)


FUNCTIONS = PartOption(
    QueryOptions,
    "--functions",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="A Python module that registers extension functions with @spaseq.function(IRI). A file is "
    "sent to Spark's workers as it is; a module must be importable there. Repeatable.",
)

ONTOLOGY = PartOption(
    PlanningOptions,
    "--ontology",
    multiple=True,
    metavar="FILE",
    help="An ontology to entail by (Turtle, RDF/XML, ...). Repeatable.",
)

ENTAILMENT = PartOption(
    PlanningOptions,
    "--entailment",
    type=click.Choice(REGIMES),
    help="Patterns match what events and knowledge entail with the ontology: subclasses, "
    "subproperties, domains and ranges, equivalents, inverses.",
)

DISABLE = PartOption(
    PlanningOptions,
    "--disable",
    multiple=True,
    metavar="RULE",
    help="Do without a rule of the planner; answers stay the same. Repeatable. RULE is one of "
    f"{', '.join(NAMES)}.",
)


def check_file(path: Path, planning: PlanningOptions = PlanningOptions()) -> Checked:
    """A query file, parsed and checked.

    Raises:
        InputError: it cannot be read.
    """
    return next(check_queries(path, planning))


def checked_files(paths: Sequence[Path], planning: PlanningOptions) -> list[Checked]:
    """Query files without errors; warnings go to stderr.

    Raises:
        QueryError: with all errors of all files.
    """
    checked = list(check_queries(paths, planning))
    plans_of(checked)
    for diagnostic in (d for each in checked for d in each.warnings):
        tell(diagnostic.render())
    return checked
