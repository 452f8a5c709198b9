"""Which format of answers goes with which queries."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.sinks import SINKS


def check_format(form: str, plans: Sequence[QueryPlan]) -> None:
    """Check that a format can hold the answers of the queries of a run.

    Raises:
        UsageError: it cannot; the message names formats that can.
    """
    sink = SINKS[form]
    if sink.one_query and len(plans) > 1:
        raise UsageError(f"--format {form} holds the answers of one query; use jsonl for several")
    for plan in plans:
        title = plan.identity.title
        makes = "solutions" if plan.answers.template is None else "graphs"
        if sink.holds not in (makes, "all"):
            kind = "SELECT" if plan.answers.template is None else "CONSTRUCT"
            raise UsageError(
                f"--format {form} holds {sink.holds}, and the answers of {title} are {makes} "
                f"({kind}): use {', '.join(_suited(makes, len(plans)))}"
            )


def _suited(makes: str, queries: int) -> list[str]:
    """The formats that hold the answers of some queries."""
    return [
        form
        for form, sink in SINKS.items()
        if sink.holds in (makes, "all") and (queries == 1 or not sink.one_query)
    ]
