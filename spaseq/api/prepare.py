"""Preparation of a run before its first event: plans in reading order, and the knowledge base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spaseq.api.queries import QueryInput, check_queries, plans_of
from spaseq.kb.cache import cache_at
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.kb.refresh import KbWatch
from spaseq.options import KbInput, KnowledgeOptions, PlanningOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import check_kbs, check_mapping
from spaseq.runtime.job.chaining import reading_order

KbSources = Sequence[tuple[str | None, KbInput]]
"""(graph IRI, or None for a source that keeps its graph names; source) of each source."""


def plan_queries(
    query: QueryInput | Sequence[QueryInput], planning: PlanningOptions, pushed: bool = False
) -> tuple[QueryPlan, ...]:
    """The plans of one query or several, each after those whose registered streams it reads.

    `pushed` says that events come one by one.

    Raises:
        QueryError: with all errors of all queries.
        InputError: a query file or an ontology cannot be read.
        UsageError: the options of planning contradict each other, or queries read each other's
            streams in a circle.
    """
    return reading_order(plans_of(list(check_queries(query, planning, pushed))))


def load_knowledge(
    plans: Sequence[QueryPlan], kb: Mapping[str, KbInput] | KbSources, options: KnowledgeOptions
) -> KnowledgeBase:
    """The knowledge base of a run, which has every graph and endpoint that the plans name.

    Raises:
        InputError: a source does not load, or a graph that a query names is missing.
        UsageError: `kb` is a source without its graph, or the plans would ask an endpoint for a
            path that SPARQL cannot express.
    """
    if not (isinstance(kb, list) and all(isinstance(source, tuple) for source in kb)):
        check_mapping("kb", kb, (iri for plan in plans for iri in plan.inputs.kbs))
    knowledge = load_kb(_sources(kb), options.services, cache_at(options.kb_cache))
    check_kbs(plans, knowledge)
    return knowledge


def watch_knowledge(
    kb: Mapping[str, KbInput] | KbSources, options: KnowledgeOptions
) -> KbWatch | None:
    """Watches files that `load_knowledge` has just loaded; None without `kb_refresh`."""
    if not options.kb_refresh:
        return None
    return KbWatch(_sources(kb), options.services, cache_at(options.kb_cache))


def _sources(kb: Mapping[str, KbInput] | KbSources) -> KbSources:
    return list(kb.items()) if isinstance(kb, Mapping) else kb
