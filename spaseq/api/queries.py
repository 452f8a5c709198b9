"""From the queries of a call to plans, and from its knowledge bases to one that is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from spaseq.compile import Checked, check_query
from spaseq.errors import Diagnostic, InputError, QueryError
from spaseq.kb.cache import cache_at
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.kb.ontology import entailing_schema
from spaseq.kb.refresh import KbWatch
from spaseq.options import KbInput, KnowledgeOptions, PlanningOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import check_kbs
from spaseq.runtime.job.chaining import reading_order

QueryInput: TypeAlias = str | Path
"""The text of a query, or the path of a query file."""


def plan_queries(
    query: QueryInput | Sequence[QueryInput], planning: PlanningOptions
) -> tuple[QueryPlan, ...]:
    """The plans of one query or several, each after those whose registered streams it reads.

    A query file gives its stem as the query's name; a text is called `query`, or `query1`,
    `query2` and so on among several.

    Raises:
        QueryError: with all errors of all queries.
        InputError: a query file or an ontology cannot be read.
        UsageError: the options of planning contradict each other, or queries read each other's
            streams in a circle.
    """
    return reading_order(plans_of(list(check_queries(query, planning))))


def check_queries(
    query: QueryInput | Sequence[QueryInput], planning: PlanningOptions
) -> Iterator[Checked]:
    """Each query parsed, checked and, if it has no errors, planned."""
    schema = entailing_schema(planning.ontology, planning.entailment)
    queries = [query] if isinstance(query, str | Path) else list(query)
    for number, item in enumerate(queries, 1):
        if isinstance(item, Path):
            text, name, file = read_query(item), item.stem, str(item)
        else:
            text, name, file = item, "query" if len(queries) == 1 else f"query{number}", None
        yield check_query(text, name, file, schema=schema, disable=planning.disable)


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


def load_knowledge(
    plans: Sequence[QueryPlan], kb: Mapping[str, KbInput] | None, options: KnowledgeOptions
) -> KnowledgeBase:
    """The knowledge base of a call, which has every graph and endpoint that the plans name.

    Raises:
        InputError: a source does not load, or a graph that a query names is missing.
        UsageError: the plans would ask an endpoint for a path that SPARQL cannot express.
    """
    cache = cache_at(options.kb_cache)
    knowledge = load_kb(list((kb or {}).items()), options.services, cache)
    check_kbs(plans, knowledge)
    return knowledge


def watch_knowledge(kb: Mapping[str, KbInput] | None, options: KnowledgeOptions) -> KbWatch:
    """Watches the files of a knowledge base that `load_knowledge` has just loaded."""
    return KbWatch(list((kb or {}).items()), options.services, cache_at(options.kb_cache))
