"""Loading a knowledge base from RDF files and rdflib graphs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyoxigraph as ox

from spaseq.errors import InputError
from spaseq.kb.endpoint import Endpoint, ServiceFailure, ServiceOptions, is_url
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.inputs import EXTENSIONS, READ_ERRORS, Format, InputFile, format_of
from spaseq.rdf.nquads import syntax_reason
from spaseq.rdf.terms import from_rdflib

if TYPE_CHECKING:
    import rdflib
    from rdflib.term import Identifier

KbInput: TypeAlias = "str | PathLike[str] | rdflib.Graph"

Quad = tuple[str, str, str, str | None]
"""Subject, predicate, object as N-Triples texts, and the graph's IRI (None: the default graph)."""

_FORMATS = {
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
}


def load_kb(
    sources: Sequence[tuple[str | None, KbInput]],
    services: ServiceOptions = ServiceOptions(),  # noqa: B008 - frozen
) -> KnowledgeBase:
    """The knowledge base made of some sources, each (graph IRI or None, path or rdflib graph).

    With an IRI all triples of the source go into that named graph; a source without one keeps its
    graph names, and triples in its default graph are not reachable for queries, so they are left
    out. Relative IRIs are relative to the graph's. Sources of one graph are merged. A path ends in
    .nq .nt .trig .ttl .jsonld .json .rdf or .xml, .gz after it where it is packed. A URL is a
    SPARQL endpoint, whose default graph is the graph; nothing of it is loaded. `services` says how
    endpoints are asked.

    Raises:
        InputError: a source that cannot be read, with file, line and reason, or that has triples
            but neither an IRI nor named graphs; an endpoint that is required and does not answer.
    """
    builder = _Builder()
    endpoints: dict[str, str] = {}
    for number, (iri, source) in enumerate(sources):
        if isinstance(source, str) and is_url(source):
            _add_endpoint(endpoints, iri, source, services)
        else:
            builder.add(number, iri, source)
    knowledge = builder.knowledge()
    for iri in endpoints:
        if iri in knowledge.graphs:
            raise InputError(f"<{iri}> is both an endpoint and a graph that is loaded")
    return replace(knowledge, endpoints=endpoints, addresses=endpoints, services=services)


def _add_endpoint(
    endpoints: dict[str, str], iri: str | None, url: str, services: ServiceOptions
) -> None:
    if iri is None:
        raise InputError(f"{url}: say which graph it holds")
    if endpoints.setdefault(iri, url) != url:
        raise InputError(f"<{iri}> has two endpoints: {endpoints[iri]} and {url}")
    if services.required:
        try:
            Endpoint(url, services).check()
        except ServiceFailure as failure:
            raise InputError(f"the endpoint {url} failed: {failure}") from failure


class _Builder:
    """Collects quads as columns of codes."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._graphs: dict[str, int] = {}
        self._named: list[str] = []
        self._columns = {c: array("i") for c in "gspo"}

    def add(self, number: int, iri: str | None, source: KbInput) -> None:
        name, quads = _open(source, iri)
        if iri is not None:
            self._named.append(iri)
        blank = _BlankNodes(number)
        nameless = named = 0
        for s, p, o, g in quads:
            graph = g if iri is None else iri
            if graph is None:
                nameless += 1
                continue
            named += 1
            self._append(graph, blank(s), p, blank(o))
        if nameless and not named:
            raise InputError(f"{name}: its triples have no graph name; say which graph they are")

    def _append(self, graph: str, s: str, p: str, o: str) -> None:
        codes, columns = self._codes, self._columns
        columns["g"].append(self._graphs.setdefault(graph, len(self._graphs)))
        columns["s"].append(codes.setdefault(s, len(codes)))
        columns["p"].append(codes.setdefault(p, len(codes)))
        columns["o"].append(codes.setdefault(o, len(codes)))

    def knowledge(self) -> KnowledgeBase:
        columns = {c: np.frombuffer(a, np.int32) for c, a in self._columns.items()}
        return KnowledgeBase.of_quads(list(self._codes), list(self._graphs), self._named, columns)


class _BlankNodes:
    """Labels for one source's blank nodes, told apart from those of events and other sources.

    They come from the order of first appearance, so that equal sources give equal labels, whatever
    the parser called the nodes.
    """

    def __init__(self, source: int) -> None:
        self._source = source
        self._labels: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        if text[0] != "_":
            return text
        label = self._labels.get(text)
        if label is None:
            key = f"{self._source}\0{len(self._labels)}".encode()
            label = self._labels[text] = "_:k" + blake2b(key, digest_size=8).hexdigest()
        return label


def _open(source: KbInput, base: str | None) -> tuple[str, Iterator[Quad]]:
    """What errors call the source, and its quads; `base` is what relative IRIs are relative to."""
    if isinstance(source, str | PathLike):
        path = fspath(source)
        form = format_of(path)
        if form is None:
            known = " ".join(EXTENSIONS)
            raise InputError(f"{path}: unknown format; a name ends in one of {known}")
        return path, _file_quads(InputFile(path, form), base)
    return "the graph", _rdflib_quads(source)


def _file_quads(file: InputFile, base: str | None) -> Iterator[Quad]:
    with file.open() as data:
        try:
            for s, p, o, g in ox.parse(data, _FORMATS[file.format], base_iri=base):
                text = str(o)
                if text[:2] == "<<":
                    raise InputError(f"{file.path}: triple terms (RDF 1.2) are not read: {text}")
                yield str(s), str(p), text, _graph_iri(g)
        except (SyntaxError, ValueError, *READ_ERRORS) as error:
            line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            raise InputError(f"{file.path}{line}: {syntax_reason(error)}") from error


def _graph_iri(graph: object) -> str | None:
    match graph:
        case ox.NamedNode():
            return str(graph.value)
        case ox.BlankNode():
            return str(graph)
        case _:
            return None


def _rdflib_quads(graph: rdflib.Graph) -> Iterator[Quad]:
    from rdflib import Dataset
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    quads: Iterable[tuple[Identifier, ...]] = graph
    if isinstance(graph, Dataset):
        quads = graph.quads((None, None, None, None))
    for s, p, o, *context in quads:
        named = context and context[0] not in (None, DATASET_DEFAULT_GRAPH_ID)
        try:
            yield from_rdflib(s), from_rdflib(p), from_rdflib(o), str(context[0]) if named else None
        except ValueError as error:
            raise InputError(f"the graph holds what is not RDF: {error}") from error


def triples_in(source: KbInput) -> Iterator[tuple[str, str, str]]:
    """The triples of a source, whatever graph they are in, as N-Triples texts.

    Raises:
        InputError: it cannot be read, with file, line and reason.
    """
    base = Path(source).absolute().as_uri() if isinstance(source, str | PathLike) else None
    for s, p, o, _ in _open(source, base)[1]:
        yield s, p, o
