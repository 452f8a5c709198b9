"""Which format of answers goes with which queries, and which columns its table has."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from spaseq.cli.option_groups import OutputOptions
from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.sinks import SINKS
from spaseq.sinks.table_sink import TIMES, TableSink


def check_format(form: str, plans: Sequence[QueryPlan]) -> None:
    """Check that a format can hold the answers of the queries of a run.

    Raises:
        UsageError: it cannot; the message names formats that can.
    """
    sink, answering = SINKS[form], _answering(plans)
    if sink.one_query and len(answering) > 1:
        raise UsageError(f"--format {form} holds the answers of one query; use jsonl for several")
    for plan in answering:
        title = plan.identity.title
        makes = "solutions" if plan.answers.template is None else "graphs"
        if sink.holds not in (makes, "all"):
            kind = "SELECT" if plan.answers.template is None else "CONSTRUCT"
            raise UsageError(
                f"--format {form} holds {sink.holds}, and the answers of {title} are {makes} "
                f"({kind}): use {', '.join(_suited(makes, len(answering)))}"
            )


def _answering(plans: Sequence[QueryPlan]) -> list[QueryPlan]:
    """The queries that give answers: all except those that maintain graphs."""
    return [plan for plan in plans if plan.maintained is None]


def _suited(makes: str, queries: int) -> list[str]:
    """The formats that hold the answers of some queries."""
    return [
        form
        for form, sink in SINKS.items()
        if sink.holds in (makes, "all") and (queries == 1 or not sink.one_query)
    ]


def check_columns(output: OutputOptions, plans: Sequence[QueryPlan]) -> None:
    """Check that --columns goes with the format, and names columns that there are.

    Raises:
        UsageError: it does not.
    """
    if output.columns is None:
        return
    if not issubclass(SINKS[output.form], TableSink):
        tables = ", ".join(form for form, sink in SINKS.items() if issubclass(sink, TableSink))
        raise UsageError(f"--columns goes with --format {tables}, not with {output.form}")
    columns_of(plans, output.columns)


def columns_of(plans: Sequence[QueryPlan], chosen: str | None) -> list[str]:
    """The columns of a table of answers: the columns of --columns, or else the variables of the
    first answering query.

    Raises:
        UsageError: there is no such column, or it is chosen twice.
    """
    projected = [plan.answers.projection for plan in _answering(plans)[:1]]
    variables = [item.name for items in projected for item in items]
    if chosen is None:
        return variables
    columns = [name.strip().removeprefix("?") for name in chosen.split(",")]
    if all(name.startswith("+") for name in columns):
        columns = variables + columns
    for number, name in enumerate(columns):
        if name.startswith("+") and name[1:] not in TIMES:
            raise UsageError(f"--columns {name}: beside variables there are +start and +end")
        if not name.startswith("+") and name not in variables:
            near = get_close_matches(name, variables, 1)
            hint = f"did you mean {near[0]}?" if near else f"variables: {', '.join(variables)}"
            raise UsageError(f"--columns {name}: the query projects no such variable; {hint}")
        if name.removeprefix("+") in [other.removeprefix("+") for other in columns[:number]]:
            raise UsageError(f"--columns {name}: the table has this column already")
    return columns
