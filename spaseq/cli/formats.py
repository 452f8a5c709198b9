"""Which format of answers goes with which queries."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.sinks import GRAPHS, TABLES


def check_format(form: str, plans: Sequence[QueryPlan]) -> None:
    """Whether a format can hold the answers of the queries of a run.

    Raises:
        UsageError: it cannot.
    """
    if form in TABLES and len(plans) > 1:
        raise UsageError(f"--format {form} holds the answers of one query; use jsonl for several")
    for plan in plans:
        if form in TABLES and plan.template is not None:
            raise UsageError(
                f"--format {form} is a table, and the answers of {plan.title} are graphs "
                f"(CONSTRUCT): use {', '.join(GRAPHS)} or jsonl"
            )
        if form in GRAPHS and plan.template is None:
            raise UsageError(
                f"--format {form} is for graphs, and the answers of {plan.title} are solutions "
                f"(SELECT): use {'jsonl' if len(plans) > 1 else ', '.join(['jsonl', *TABLES])}"
            )
