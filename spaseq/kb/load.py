"""Loading a knowledge base from RDF files, stores, rdflib graphs and endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from os import PathLike

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.errors import InputError
from spaseq.kb.cache import NO_CACHE, KbCache
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.quads import KbQuads, QuadSource, quads_of, rdflib_quads, sources_at
from spaseq.kb.service_address import AllowedHosts, ServiceAddress, ServiceFailure, is_url
from spaseq.limits import Limits
from spaseq.message_text import public_address
from spaseq.options import KbInput, ServiceOptions
from spaseq.rdf.columns.event_batch import DEFAULT_GRAPH
from spaseq.rdf.columns.term_columns import NO_TEXTS, TextArray, concat_texts, text_array
from spaseq.rdf.terms.triple_terms import with_blank_nodes

_NONE = np.empty(0, np.int64)


def load_kb(
    sources: Sequence[tuple[str | None, KbInput]],
    services: ServiceOptions = ServiceOptions(),
    cache: KbCache = NO_CACHE,
) -> KnowledgeBase:
    """The knowledge base of some sources, each (graph IRI or None, path or rdflib graph).

    With an IRI, all triples of the source go into that named graph, and relative IRIs are relative
    to it. Sources with the same IRI are merged. A source without an IRI keeps its named graphs; its
    default graph is left out, as queries cannot reach it.

    A path is a file, a directory of files, a glob, or the directory of an Oxigraph store. Names of
    files end in .nq .nt .trig .ttl .jsonld .json .rdf or .xml, and in .gz after that if they are
    compressed. A URL is a SPARQL endpoint whose default graph is the named graph; its triples are
    not loaded.

    Args:
        sources: see above.
        services: how to ask endpoints; its limits also bound what is loaded.
        cache: where to keep the compiled form of files and find it again.

    Raises:
        InputError: a source cannot be read (with file, line and reason); a source has triples, but
            neither an IRI nor named graphs; an endpoint has no valid address; or a required one
            does not answer.
        UsageError: the options allow what is no host.
    """
    AllowedHosts.of(services, ())
    endpoints: dict[str, str] = {}
    loaded: list[tuple[str | None, KbInput]] = []
    for iri, source in sources:
        if isinstance(source, str) and is_url(source):
            _add_endpoint(endpoints, iri, source, services)
        else:
            loaded.append((iri, source))
    knowledge = _loaded(loaded, cache, services.limits)
    for iri in endpoints:
        if iri in knowledge.graphs:
            raise InputError(f"<{iri}> is both an endpoint and a graph that is loaded")
    return replace(knowledge, endpoints=endpoints, addresses=endpoints, services=services)


def _loaded(
    sources: Sequence[tuple[str | None, KbInput]], cache: KbCache, limits: Limits
) -> KnowledgeBase:
    """The graphs of sources other than endpoints."""
    places = [(i, s, sources_at(s) if isinstance(s, str | PathLike) else None) for i, s in sources]
    files = [(iri, quad_sources) for iri, _, quad_sources in places if quad_sources is not None]
    if len(files) < len(places):  # rdflib graphs have no path, so no key in the cache
        return _built(places, limits)
    return cache.knowledge(files, lambda: _built(places, limits))


def _built(
    places: Sequence[tuple[str | None, KbInput, Sequence[QuadSource] | None]], limits: Limits
) -> KnowledgeBase:
    builder = _Builder()
    for iri, given, quad_sources in places:
        if quad_sources is None:
            assert not isinstance(given, str | PathLike)
            builder.add("the graph", iri, rdflib_quads(given, limits))
        for source in quad_sources or ():
            builder.add(source.path, iri, quads_of(source, iri, limits))
    return builder.knowledge()


def _add_endpoint(
    endpoints: dict[str, str], iri: str | None, url: str, services: ServiceOptions
) -> None:
    if iri is None:
        raise InputError(f"{public_address(url)}: say which graph it holds")
    if endpoints.setdefault(iri, url) != url:
        first, second = public_address(endpoints[iri]), public_address(url)
        raise InputError(f"<{iri}> has two endpoints: {first} and {second}")
    try:
        ServiceAddress.of(url)
    except ValueError as error:
        shown = public_address(url)
        raise InputError(f"the endpoint {shown} has no valid address: {error}") from error
    if services.required:
        from spaseq.kb.endpoint import Endpoint  # loads the HTTP library

        try:
            Endpoint(url, services).check()
        except ServiceFailure as failure:
            raise InputError(f"the endpoint {public_address(url)} failed: {failure}") from failure


class _Builder:
    """Collects blocks of quads and unifies their terms in one dictionary at the end."""

    def __init__(self) -> None:
        self._texts: list[TextArray] = []
        self._sources = 0
        self._size = 0  # number of texts in all blocks, with repetitions
        self._graphs: dict[str, int] = {}
        self._named: list[str] = []
        self._columns: dict[str, list[Int64s]] = {c: [] for c in "gspo"}

    def add(self, name: str, iri: str | None, blocks: Iterable[KbQuads]) -> None:
        """Add all blocks of one source; `name` is its name in errors."""
        if iri is not None:
            self._named.append(iri)
        blank = _BlankNodes(self._sources)
        self._sources += 1
        nameless = named = 0
        for block in blocks:
            texts = blank.scoped(block.texts)
            if iri is None:
                kept = block.g != DEFAULT_GRAPH
                graphs = self._numbers(texts, block.g[kept])
                nameless += len(kept) - len(graphs)
            else:
                kept = np.ones(len(block.s), np.bool_)
                graphs = np.full(len(kept), self._number(iri), np.int64)
            named += len(graphs)
            self._columns["g"].append(graphs)
            for c, codes in (("s", block.s), ("p", block.p), ("o", block.o)):
                self._columns[c].append(codes[kept].astype(np.int64) + self._size)
            self._texts.append(texts)
            self._size += len(texts)
        if nameless and not named:
            raise InputError(f"{name}: its triples have no graph name; say which graph they are")

    def _number(self, iri: str) -> int:
        return self._graphs.setdefault(iri, len(self._graphs))

    def _numbers(self, texts: TextArray, codes: Int32s) -> Int64s:
        """The graph numbers of the graph names with these codes."""
        distinct, which = np.unique(codes, return_inverse=True)
        names = texts.take(pa.array(distinct)).to_pylist()
        numbers = [self._number(t[1:-1] if t[0] == "<" else t) for t in names]
        graph_numbers: Int64s = np.array(numbers, np.int64)[which]
        return graph_numbers

    def knowledge(self) -> KnowledgeBase:
        g, s, p, o = (np.concatenate([_NONE, *self._columns[c]]) for c in "gspo")
        encoded = concat_texts([NO_TEXTS, *self._texts]).dictionary_encode()
        same = encoded.indices.to_numpy()
        s, p, o = same[s], same[p], same[o]
        used = np.zeros(len(encoded.dictionary), np.bool_)
        for codes in (s, p, o):
            used[codes] = True
        rank = np.cumsum(used, dtype=np.int32) - 1
        texts = encoded.dictionary.filter(pa.array(used))
        columns = {"g": g.astype(np.int32), "s": rank[s], "p": rank[p], "o": rank[o]}
        return KnowledgeBase.of_quads(texts, list(self._graphs), self._named, columns)


class _BlankNodes:
    """Labels of one source's blank nodes, different from the labels of events and other sources.

    A label depends on the order of first appearance, not on the parser's label, so equal sources
    give equal labels.
    """

    def __init__(self, source: int) -> None:
        self._source = source
        self._labels: dict[str, str] = {}

    def scoped(self, texts: TextArray) -> TextArray:
        """The texts with these labels for blank nodes."""
        blank = pc.or_(pc.starts_with(texts, "_:"), pc.starts_with(texts, "<<"))
        if not pc.any(blank).as_py():
            return texts
        labels = [with_blank_nodes(t, self._label) for t in texts.filter(blank).to_pylist()]
        return pc.replace_with_mask(texts, blank, text_array(labels))

    def _label(self, text: str) -> str:
        label = self._labels.get(text)
        if label is None:
            key = f"{self._source}\0{len(self._labels)}".encode()
            label = self._labels[text] = "_:k" + blake2b(key, digest_size=8).hexdigest()
        return label
