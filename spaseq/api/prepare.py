"""Preparation of a run before its first event: plans in reading order, and the knowledge base."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from spaseq.api.queries import QueryInput, check_queries, plans_of
from spaseq.compile import NO_PARTIAL_MATCHES, Checked
from spaseq.compiled import mode
from spaseq.compiled.cache import has_kernels
from spaseq.errors import UsageError
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.load import cache_at, load_kb
from spaseq.kb.service_address import is_url
from spaseq.kb.versions import versions_given
from spaseq.memory import collection_paused, keep_all
from spaseq.options import KbInput, KnowledgeOptions, PlanningOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.templates import QueryTemplates
from spaseq.runtime.job.binding import check_kbs, check_mapping
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.sources.base import Source

if TYPE_CHECKING:
    from spaseq.kb.watched_graphs import KbWatch

_TRIPLE_BYTES = 200

KbSources = Sequence[tuple[str | None, KbInput]]
"""(graph IRI, or None for a source that keeps its graph names; source) of each source."""

PAUSE = 1024
"""Number of queries planned between two pauses of the garbage collector."""

SMALL_BYTES = 2**18
"""Size up to which interpreted kernels read an input faster than numba loads."""

SMALL_UNCOMPILED_BYTES = 4 * 2**20
"""The same size while the kernels are not compiled; compiling takes much longer."""


def plan_queries(
    query: QueryInput | Sequence[QueryInput],
    planning: PlanningOptions,
    pushed: bool = False,
    templates: QueryTemplates | None = None,
    changing: Collection[str] = (),
) -> tuple[QueryPlan, ...]:
    """The plans of one query or several, each after those whose registered streams it reads.

    `pushed` says that events come one by one. `templates` has the queries of earlier calls.
    `changing` are the IRIs of graphs that change otherwise than by a query.

    Raises:
        QueryError: with all errors of all queries.
        InputError: a query file or an ontology cannot be read.
        UsageError: the options of planning contradict each other, or queries read each other's
            streams in a circle.
    """
    found, checked = check_queries(query, planning, pushed, False, templates), list[Checked]()
    while True:
        with collection_paused():  # plans are many objects, and all of them stay
            some = [*islice(found, PAUSE)]
            if len(some) > 1:
                keep_all()
        if not some:
            return reading_order(plans_of(checked), changing)
        for each in some:
            _warn(each, each.plan)
        checked += some


def _warn(checked: Checked, plan: QueryPlan | None) -> None:
    """Tell of a query that runs without the partial matches that were asked for."""
    for finding in checked.warnings:
        if finding.code == NO_PARTIAL_MATCHES and plan is not None:
            logging.getLogger("spaseq").warning(
                "query %s: %s", plan.identity.title, finding.message
            )


def named(plans: Sequence[QueryPlan], name: str) -> tuple[QueryPlan, ...]:
    """The plan of a single query, under another name.

    Raises:
        UsageError: there are several.
    """
    if len(plans) > 1:
        raise UsageError("name is for a single query; several are called by their files")
    (plan,) = plans
    shown = name if plan.maintained is not None else plan.identity.register or name
    identity = replace(plan.identity, name=shown, title=name)
    return (plan.with_identity(identity),)


class StandingPlanner:
    """Plans named queries, which may run beside others.

    Args:
        planning: the options of all queries.
        knowledge: the graphs that they may name.
        templates: the queries planned before.
    """

    def __init__(
        self,
        planning: PlanningOptions,
        knowledge: KnowledgeBase,
        templates: QueryTemplates | None = None,
    ) -> None:
        self._planning, self._knowledge = planning, knowledge
        self._templates = QueryTemplates() if templates is None else templates

    def __call__(self, name: str, query: QueryInput, maintained: Collection[str] = ()) -> QueryPlan:
        """The plan of a query, as from `checked`."""
        return self.checked(name, query, maintained)[1]

    def checked(
        self,
        name: str,
        query: QueryInput,
        maintained: Collection[str] = (),
        file: str | None = None,
    ) -> tuple[Checked, QueryPlan]:
        """A query with its findings and its plan; other queries maintain the graphs `maintained`.

        `file` names a text in findings.

        Raises:
            QueryError: it has errors.
            InputError: it cannot be read, or names a graph that neither the knowledge base has nor
                a query maintains.
        """
        given = self._planning, True, True, self._templates, file
        checked = [*check_queries(query, *given)]
        plans = named(reading_order(plans_of(checked)), name)
        _warn(checked[0], plans[0])
        graphs = {**dict.fromkeys(maintained, KbGraph()), **self._knowledge.graphs}
        check_kbs(plans, replace(self._knowledge, graphs=graphs))
        return checked[0], plans[0]


def load_knowledge(
    plans: Sequence[QueryPlan],
    kb: Mapping[str, KbInput] | KbSources,
    options: KnowledgeOptions,
    streams: Iterable[Source | None] = (None,),
    kept: Collection[str] = (),
) -> KnowledgeBase:
    """The knowledge base of a run, which has every graph and endpoint that the plans name.

    The knowledge base is the first input of a run, so this function chooses between compiled
    kernels and interpreted ones, which are faster for small input.

    Args:
        plans: the run's queries.
        kb: the knowledge bases.
        options: options of loading.
        streams: the sources of a bounded run; None for a source of unknown size.
        kept: graphs that the run itself maintains; here they are empty.

    Raises:
        InputError: a source does not load, or a graph that a query names is missing.
        UsageError: `kb` is a source without its graph, or the plans would ask an endpoint for a
            path that SPARQL cannot express.
    """
    if not (isinstance(kb, list) and all(isinstance(source, tuple) for source in kb)):
        check_mapping("kb", kb, (iri for plan in plans for iri in plan.inputs.kbs))
    sources = [*_sources(kb), *versions_given(options.kb_changes)]
    sources = [source for source in sources if source[0] not in kept]
    _choose_kernels(streams, sources)
    knowledge = load_kb(sources, options.services, cache_at(options.kb_cache))
    if kept:
        graphs = {**dict.fromkeys(kept, KbGraph()), **knowledge.graphs}
        knowledge = replace(knowledge, graphs=graphs)
    check_kbs(plans, knowledge)
    return knowledge


def _choose_kernels(streams: Iterable[Source | None], kb: KbSources) -> None:
    sizes = [s and s.size() for s in streams]
    sizes += [_kb_size(source) for _, source in kb]
    most, seconds = (
        (SMALL_BYTES, mode.LOADING_SECONDS)
        if has_kernels()
        else (SMALL_UNCOMPILED_BYTES, mode.COMPILING_SECONDS)
    )
    if all(size is not None for size in sizes) and sum(size or 0 for size in sizes) <= most:
        mode.interpret(seconds)
    else:
        mode.compile_from_now_on()


def _kb_size(source: KbInput) -> int | None:
    """Approximate size of a knowledge base as text, in bytes; None if unknown."""
    if not isinstance(source, str | os.PathLike):
        if not isinstance(source, Sized):
            kind = type(source).__name__
            raise UsageError(f"a graph of kb is a path, a URL or an rdflib graph, not {kind}")
        return len(source) * _TRIPLE_BYTES
    if is_url(str(source)):
        return 0
    return os.path.getsize(source) if os.path.isfile(source) else None


def watch_knowledge(
    kb: Mapping[str, KbInput] | KbSources, options: KnowledgeOptions
) -> KbWatch | None:
    """A watcher of the files that `load_knowledge` has just loaded; None without `kb_refresh`."""
    if not options.kb_refresh:
        return None
    from spaseq.kb.watched_graphs import KbWatch

    return KbWatch(_sources(kb), options.services, cache_at(options.kb_cache))


def _sources(kb: Mapping[str, KbInput] | KbSources) -> KbSources:
    return list(kb.items()) if isinstance(kb, Mapping) else kb
