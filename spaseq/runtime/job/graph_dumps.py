"""The final values of graphs that queries maintain, written when a run ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

import pyoxigraph as ox

from spaseq.algebra.answers import Answer
from spaseq.algebra.graph_changes import changes_of
from spaseq.errors import RunError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import LATEST, KnowledgeVersions
from spaseq.kb.versions import version_name
from spaseq.lang.spelling import suggested
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.runtime.job.unit_graph import RegisteredStream
from spaseq.stages.maintained_graphs import GraphPast, MaintainedGraphs

MOST_VERSIONS = 1000
"""Maximum number of change times after each of which a version is kept."""


class GraphDumps:
    """Collects the changes of graphs, and writes each graph to a file at the end.

    Args:
        files: by graph IRI: the file; its extension gives the format.
        plans: the queries of the run.

    Raises:
        UsageError: no query maintains such a graph, or an extension is unknown.
    """

    def __init__(
        self, files: Mapping[str, str | PathLike[str]], plans: Sequence[QueryPlan]
    ) -> None:
        made = {plan.maintained for plan in plans if plan.maintained is not None}
        self._files = {iri: (fspath(path), _format(path)) for iri, path in files.items()}
        for iri in files:
            if iri not in made:
                near = suggested(iri, made)
                meant = f", did you mean <{near}>?" if near else ""
                raise UsageError(f"no query maintains the graph <{iri}>{meant}")
        self._plans = {plan.identity.title: plan for plan in plans}
        self._changes: dict[str, list[Sequence[Answer]]] = {}  # by the query's title

    def take(self, plan: QueryPlan, answers: Sequence[Answer]) -> None:
        """Take answers of a query that maintains a graph, in their order."""
        if plan.maintained in self._files:
            self._changes.setdefault(plan.identity.title, []).append(answers)

    def with_versions(self, knowledge: KnowledgeBase) -> KnowledgeBase:
        """A knowledge base that has a version of each graph after each of its changes.

        Raises:
            RunError: there are more than `MOST_VERSIONS` versions.
        """
        pasts = {iri: self._past(iri, knowledge) for iri in self._files}
        if sum(len(past.times()) for past in pasts.values()) > MOST_VERSIONS:
            raise RunError(f"graphs change at more than {MOST_VERSIONS:,} times: give fewer events")
        terms, graphs = ExtendedTerms(knowledge.terms), dict(knowledge.graphs)
        for iri, past in pasts.items():
            for time, graph in past.values(terms):
                graphs[version_name(time, iri)] = graph
        return replace(knowledge, terms=terms, graphs=graphs)

    def write(self, knowledge: KnowledgeBase) -> None:
        """Write the graphs; `knowledge` has their first values, and their external versions.

        Raises:
            RunError: a file cannot be written.
        """
        for iri, (path, form) in self._files.items():
            triples = self._past(iri, knowledge).triples(LATEST)
            lines = [f"{s} {p} {o} .\n" for s, p, o in sorted(triples)]
            quads = ox.parse("".join(lines).encode(), ox.RdfFormat.N_TRIPLES)
            name = ox.NamedNode(iri) if form.supports_datasets else ox.DefaultGraph()
            named = (ox.Quad(quad.subject, quad.predicate, quad.object, name) for quad in quads)
            try:
                Path(path).write_bytes(ox.serialize(named, format=form) or b"")
            except OSError as error:
                raise RunError(f"cannot write {path}: {error.strerror}") from error

    def _past(self, iri: str, knowledge: KnowledgeBase) -> GraphPast:
        """The past and present values of a graph."""
        graph = MaintainedGraphs(KnowledgeVersions(knowledge), knowledge)[iri]
        for title, given in self._changes.items():
            if self._plans[title].maintained == iri:
                stream = RegisteredStream(changes_of(iri))
                for answers in given:
                    graph.push(graph.match_batch(stream.events(answers)))
        return graph.past()


def _format(path: str | PathLike[str]) -> ox.RdfFormat:
    ending = Path(path).suffix.removeprefix(".")
    form = ox.RdfFormat.from_extension(ending)
    if form is None:
        raise UsageError(
            f"{fspath(path)}: the ending says the format of a graph: .nt, .ttl, .nq, .trig, "
            ".jsonld or .rdf"
        )
    return form
