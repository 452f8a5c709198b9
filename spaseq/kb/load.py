"""Loading a knowledge base from RDF files, stores, rdflib graphs and endpoints; and the cache of
compiled ones on disk, by the content of their source files.

A file is written under a temporary name and then renamed, so no process sees an incomplete file and
several processes may compile the same knowledge base. Files are memory-mapped: only the parts that
queries use are read.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.cache import user_cache
from spaseq.errors import InputError
from spaseq.kb.knowledge import FORMAT, KnowledgeBase
from spaseq.kb.quads import KbQuads, OxigraphStore, QuadSource, quads_of, rdflib_quads, sources_at
from spaseq.kb.service_address import AllowedHosts, ServiceAddress, ServiceFailure, is_url
from spaseq.limits import Limits
from spaseq.message_text import public_address
from spaseq.options import KbInput, ServiceOptions
from spaseq.rdf.columns.event_batch import DEFAULT_GRAPH
from spaseq.rdf.columns.term_columns import NO_TEXTS, TextArray, concat_texts, text_array
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.terms.triple_terms import with_blank_nodes
from spaseq.records import record
from spaseq.storage.directories import NotPrivate, private_directory

_LOGGER = logging.getLogger("spaseq")

MOST = 16
"""Number of compiled knowledge bases that a directory keeps: the most recently used."""

_WORTH = 1 << 20  # bytes of source files below which loading is as fast as the cache
_CHUNK = 1 << 20
_ABANDONED_S = 86_400.0
_SUFFIX = ".kb.arrow"

NamedSources: TypeAlias = Sequence[tuple["str | None", Sequence[QuadSource]]]

_NONE = np.empty(0, np.int64)


@record
class KbCache:
    """A directory of compiled knowledge bases, or none.

    The cache is not used for sources smaller than `smallest` bytes.
    """

    directory: Path | None
    smallest: int = 0

    @classmethod
    def of_user(cls) -> KbCache:
        """The cache in the user's cache directory, for sources of at least 1 MiB."""
        users = user_cache()
        return cls(None if users is None else users / "spaseq" / "kb", _WORTH)

    def knowledge(self, sources: NamedSources, build: Callable[[], KnowledgeBase]) -> KnowledgeBase:
        """The knowledge base of some sources, from the cache if possible, otherwise from `build`.

        Raises:
            InputError: `build` raises it, or the user's choice of directory cannot be written.
        """
        if self.directory is None or _size(sources) < max(self.smallest, 1):
            return build()
        path = self.directory / f"{_key(sources)}{_SUFFIX}"
        usual = self.smallest > 0  # the default directory, so continue without it
        try:
            private_directory(self.directory, 2 if usual else 1)
        except NotPrivate as error:
            if usual:
                _LOGGER.warning("spaseq: %s; the knowledge base is not kept there", error)
                return build()
            raise InputError(f"cannot keep the knowledge base: {error}") from error
        except OSError:  # it is the same when the file is written
            pass
        return _opened(path) or self._built(path, build(), usual)

    def _built(self, path: Path, built: KnowledgeBase, usual: bool) -> KnowledgeBase:
        """The knowledge base, from its new file in the directory if it can be written."""
        try:
            _write(built, path)
            _prune(path.parent)
        except OSError as error:
            if usual:
                return built
            raise InputError(f"cannot keep the knowledge base in {path}: {error}") from error
        return _opened(path) or built


NO_CACHE = KbCache(None)


def cache_at(directory: str | os.PathLike[str] | None) -> KbCache:
    """The cache in a directory; None is the user's cache, "none" is no cache."""
    if directory is None:
        return KbCache.of_user()
    return NO_CACHE if directory == "none" else KbCache(Path(directory).absolute())


def _opened(path: Path) -> KnowledgeBase | None:
    if not path.exists():
        return None
    try:
        knowledge = KnowledgeBase.open(path)
    except (InputError, OSError):  # a damaged file will be replaced
        return None
    with suppress(OSError):  # the directory may be one that is only read
        os.utime(path)
    return knowledge


def _write(knowledge: KnowledgeBase, path: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=_SUFFIX)
    os.close(handle)
    unfinished = Path(name)
    try:
        knowledge.save(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _prune(directory: Path) -> None:
    """Remove the least recently used files, and temporary files of killed processes."""
    kept = []
    for path in directory.glob(f"*{_SUFFIX}"):
        try:
            kept.append((path.stat().st_mtime, path))
        except FileNotFoundError:
            continue
    finished = sorted((p for p in kept if p[1].name[0] != "."), reverse=True)
    limit = time.time() - _ABANDONED_S
    abandoned = (p for p in kept if p[1].name[0] == "." and p[0] < limit)
    for _, path in (*finished[MOST:], *abandoned):
        path.unlink(missing_ok=True)


# --- content of sources ---------------------------------------------------------------------------


def _key(sources: NamedSources) -> str:
    """A digest of the content of the sources."""
    digest = blake2b(FORMAT, digest_size=20)
    for iri, of_graph in sources:
        digest.update(f"\0{iri}".encode())
        for source in of_graph:
            digest.update(f"\0{type(source).__name__}\0".encode())
            for part in _content(source):
                digest.update(part)
    return digest.hexdigest()


def _content(source: QuadSource) -> Iterator[bytes]:
    match source:
        case OxigraphStore(path):  # RocksDB replaces files and never changes them
            for file in _store_files(path):
                status = file.stat()
                yield f"{file.name} {status.st_size} {status.st_mtime_ns}\0".encode()
        case InputFile(path, form):
            yield f"{form.value} {path.endswith('.gz')}\0".encode()
            yield from _file_content(path)


def _file_content(path: str) -> Iterator[bytes]:
    digest = blake2b(digest_size=20)
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    yield digest.digest()


def _size(sources: NamedSources) -> int:
    """Bytes of all source files."""
    total = 0
    for _, of_graph in sources:
        for source in of_graph:
            files = (
                _store_files(source.path)
                if isinstance(source, OxigraphStore)
                else [Path(source.path)]
            )
            total += sum(file.stat().st_size for file in files if file.exists())
    return total


def _store_files(path: str) -> list[Path]:
    """The data files of a store, without logs and locks, which a reader may write."""
    files = sorted(Path(path).iterdir())
    return [f for f in files if f.is_file() and not f.name.startswith(("LOG", "LOCK"))]


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
        services: the options of endpoints; its limits also bound loading.
        cache: where to keep the compiled form of files and find it again.

    Raises:
        InputError: a source cannot be read (with file, line and reason); a source has triples, but
            neither an IRI nor named graphs; an endpoint has no valid address; or a required one
            does not answer.
        UsageError: an allowed host is invalid.
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
    places, missing = list[tuple[str | None, KbInput, Sequence[QuadSource] | None]](), list[str]()
    for name, source in sources:
        try:
            found = sources_at(source) if isinstance(source, str | PathLike) else None
            places.append((name, source, found))
        except InputError as error:
            missing.append(str(error))
    if missing:
        raise InputError("; ".join(missing))
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
