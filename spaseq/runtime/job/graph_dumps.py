"""The last state of graphs that queries maintain, written when a run ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path

import pyoxigraph as ox

from spaseq.algebra.answers import Answer
from spaseq.algebra.graph_changes import change_of
from spaseq.errors import RunError, UsageError
from spaseq.kb.changing_graph import ChangingGraph
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.versions import version_name, versions_of
from spaseq.lang.spelling import suggested
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.rdf.terms.term import Triple

MOST_VERSIONS = 1000
"""The most times of changes after each of which a graph is kept."""


class GraphDumps:
    """Collects the changes of graphs, and writes each graph to a file at the end.

    Args:
        files: by graph IRI the file, whose ending says the format.
        plans: the queries of the run.

    Raises:
        UsageError: no query maintains such a graph, or an ending is unknown.
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
        self._changes: list[tuple[int, str, str, Sequence[Triple]]] = []

    def take(self, plan: QueryPlan, answers: Sequence[Answer]) -> None:
        """Take answers of a query that maintains a graph, in their order."""
        iri = plan.maintained
        if iri is not None and iri in self._files:
            title = plan.identity.title
            self._changes += ((a.end[0], title, iri, a.graph or ()) for a in answers)

    def with_versions(self, knowledge: KnowledgeBase) -> KnowledgeBase:
        """A knowledge base that has a version of each graph after each of its changes.

        Raises:
            RunError: these are more than `MOST_VERSIONS`.
        """
        self._changes.sort(key=itemgetter(0, 1))
        terms, graphs = ExtendedTerms(knowledge.terms), dict(knowledge.graphs)
        if len({(iri, time) for time, _, iri, _ in self._changes}) > MOST_VERSIONS:
            raise RunError(f"graphs change at more than {MOST_VERSIONS:,} times: give fewer events")
        for iri in self._files:
            for time, graph in self._values(iri, knowledge, terms):
                if time is not None:
                    graphs[version_name(time, iri)] = graph.relations()
        return replace(knowledge, terms=terms, graphs=graphs)

    def write(self, knowledge: KnowledgeBase) -> None:
        """Write the graphs; `knowledge` has what they were, and their versions from outside.

        Raises:
            RunError: a file cannot be written.
        """
        self._changes.sort(key=itemgetter(0, 1))  # those of one query stay in order
        for iri, (path, form) in self._files.items():
            lines = [f"{s} {p} {o} .\n" for s, p, o in sorted(self._last(iri, knowledge))]
            quads = ox.parse("".join(lines).encode(), ox.RdfFormat.N_TRIPLES)
            name = ox.NamedNode(iri) if form.supports_datasets else ox.DefaultGraph()
            named = (ox.Quad(quad.subject, quad.predicate, quad.object, name) for quad in quads)
            try:
                Path(path).write_bytes(ox.serialize(named, format=form) or b"")
            except OSError as error:
                raise RunError(f"cannot write {path}: {error.strerror}") from error

    def _last(self, iri: str, knowledge: KnowledgeBase) -> list[Triple]:
        """The triples of a graph at the end."""
        *_, (_, graph) = self._values(iri, knowledge, ExtendedTerms(knowledge.terms))
        return graph.triples()

    def _values(
        self, iri: str, knowledge: KnowledgeBase, terms: ExtendedTerms
    ) -> Iterator[tuple[int | None, ChangingGraph]]:
        """(time in ms, the graph after a change of a query), and at last (None, the graph).

        It is one object, which goes on changing.
        """
        graph = ChangingGraph(terms, knowledge.graphs.get(iri, {}))
        versions = sorted(versions_of(knowledge, iri))
        for time, _, of, event in self._changes:
            while versions and versions[0][0] <= time:
                graph.replace(knowledge.graphs[versions.pop(0)[1]])
            if of == iri:
                graph.apply(change_of(event))
                yield time, graph
        for _, name in versions:
            graph.replace(knowledge.graphs[name])
        yield None, graph


def _format(path: str | PathLike[str]) -> ox.RdfFormat:
    ending = Path(path).suffix.removeprefix(".")
    form = ox.RdfFormat.from_extension(ending)
    if form is None:
        raise UsageError(
            f"{fspath(path)}: the ending says the format of a graph: .nt, .ttl, .nq, .trig, "
            ".jsonld or .rdf"
        )
    return form
