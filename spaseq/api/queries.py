"""The queries of a call: read, parsed, checked and planned. Loads no data and no kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from spaseq.algebra.schema import Schema
from spaseq.compile import Checked, CompileOptions, check_query
from spaseq.errors import Diagnostic, InputError, QueryError
from spaseq.options import PlanningOptions
from spaseq.plan.query_plan import QueryPlan

QueryInput: TypeAlias = str | Path
"""The text of a query, or the path of a query file."""


def check_queries(
    query: QueryInput | Sequence[QueryInput], planning: PlanningOptions
) -> Iterator[Checked]:
    """Each query parsed, checked and, if it has no errors, planned.

    A query file gives its stem as the query's name; a text is called `query`, or `query1`,
    `query2` and so on among several.

    Raises:
        InputError: a query file or an ontology cannot be read.
        UsageError: the options of planning contradict each other.
    """
    schema = _schema(planning)
    queries = [query] if isinstance(query, str | Path) else list(query)
    for number, item in enumerate(queries, 1):
        if isinstance(item, Path):
            text, name, file = read_query(item), item.stem, str(item)
        else:
            text, name, file = item, "query" if len(queries) == 1 else f"query{number}", None
        options = CompileOptions(file=file, schema=schema, disable=planning.disable)
        yield check_query(text, name, options)


def _schema(planning: PlanningOptions) -> Schema | None:
    none = planning.ontology is None or planning.ontology == ()
    if none and planning.entailment is None:
        return None
    from spaseq.kb.ontology import entailing_schema  # reads RDF, which most queries do without

    return entailing_schema(planning.ontology, planning.entailment)


def plans_of(queries: Sequence[Checked]) -> tuple[QueryPlan, ...]:
    """The plans of checked queries.

    Raises:
        QueryError: with all errors of all queries.
    """
    errors: list[Diagnostic] = [d for checked in queries for d in checked.errors]
    if errors:
        raise QueryError(errors)
    return tuple(checked.plan for checked in queries if checked.plan is not None)


def read_query(path: Path) -> str:
    """The text of a query file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the query {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"the query {path} is not UTF-8: {error}") from None
