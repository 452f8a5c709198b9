"""The compiled form of a knowledge base: named graphs as sorted arrays over one dictionary, whose
terms are sorted texts in Arrow memory.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.algebra.joined_texts import bytes_of
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.errors import InputError
from spaseq.kb.kernels.search import find_hashed, find_sorted, hash_slots
from spaseq.options import ServiceOptions
from spaseq.rdf.columns.solution_batch import row_order
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.rdf.columns.term_tables import ABSENT, ExtendedTerms, TermsSoFar, TermTable, encoded
from spaseq.storage.checksums import Damaged, append_checksums, checked_size

if TYPE_CHECKING:
    from spaseq.kb.endpoint import EndpointAnswers

FORMAT = b"spaseq-kb-3"
"""Name and version of the file format."""

_HASHED = b"spaseq-kb-2"
"""The start of the hashed bytes. It stays, so that the content of a checkpoint keeps its hash."""

_SCHEMA = pa.schema(
    [
        ("hash", pa.string()),
        ("terms", pa.large_list(pa.large_string())),
        ("graph", pa.large_list(pa.string())),
        ("relation_graph", pa.large_list(pa.int32())),
        ("predicate", pa.large_list(pa.int32())),
        ("start", pa.large_list(pa.int64())),
        ("s", pa.large_list(pa.int32())),
        ("o", pa.large_list(pa.int32())),
        ("by_object", pa.large_list(pa.int32())),
    ],
    metadata={b"format": FORMAT},
)


class KbTerms(TermTable):
    """Distinct N-Triples texts in order of code points. The code of a text is its position.

    Lookup is a binary search in the texts, so a dictionary in a memory-mapped file stays there.
    Once many texts were sought, it goes by a hash table of their codes. There is no Python object
    per text.
    """

    def __init__(self, texts: TextArray) -> None:
        """`texts` is an Arrow array of large strings, sorted."""
        self.texts = texts
        self._sought = 0  # texts that were looked for

    @classmethod
    def of(cls, texts: Sequence[str]) -> KbTerms:
        """The dictionary of sorted texts."""
        return cls(text_array(texts))

    @cached_property
    def buffers(self) -> tuple[Int64s, Any]:
        """(offsets int64 [n + 1], bytes): text i is bytes[offsets[i]:offsets[i + 1]]."""
        _, offsets, data = self.texts.buffers()
        first, size = self.texts.offset, len(self.texts)
        places = np.zeros(1, np.int64)
        if size:
            places = np.frombuffer(offsets, np.int64)[first : first + size + 1]
        arrays = places, np.frombuffer(b"" if data is None else data, np.uint8)
        for array in arrays:
            array.setflags(write=False)  # one type, so one kernel
        return arrays

    def __len__(self) -> int:
        return len(self.texts)

    def text(self, code: int) -> str:
        text: str = self.texts[int(code)].as_py()
        return text

    def take(self, codes: Int32s) -> list[str]:
        texts: list[str] = self.strings(codes).to_pylist()
        return texts

    def strings(self, codes: Int32s) -> TextArray:
        return self.texts.take(pa.array(codes))

    @property
    def has_blank(self) -> bool:
        return True

    def find(self, texts: Sequence[str]) -> Int32s:
        wanted, ends = encoded(texts)
        return self._found(ends, wanted)

    def find_strings(self, texts: TextArray) -> Int32s:
        if not len(texts):
            return self.find([])
        wanted, ends = bytes_of(texts)
        return self._found(ends[1:], wanted)

    def _found(self, ends: Int64s, wanted: Any) -> Int32s:
        self._sought += len(ends)
        codes: Int32s
        if self._sought * 100 <= len(self) * thresholds.current.hashed_terms:
            codes = find_sorted(*self.buffers, ends, wanted, ABSENT)
        else:
            codes = find_hashed(*self.buffers, *self._hashed, ends, wanted, ABSENT)
        return codes

    @cached_property
    def _hashed(self) -> tuple[np.uint64, Int32s]:
        """(seed, slots) of a hash table. As the seed is random, no input can force equal hashes."""
        seed = np.uint64(secrets.randbits(64))
        slots = np.full(2 << len(self).bit_length(), -1, np.int32)
        hash_slots(*self.buffers, seed, slots)
        return seed, slots

    def __getstate__(self) -> TextArray:
        return self.texts

    def __setstate__(self, texts: TextArray) -> None:
        KbTerms.__init__(self, texts)


class KbRelation:
    """The n distinct triples of one graph with one predicate.

    `s` and `o` int32 [n] are codes, sorted by (s, o). `by_object` int32 [n] are the row numbers in
    order of (o, s), made at the first use.
    """

    __slots__ = ("_by_object", "o", "s")

    def __init__(self, s: Int32s, o: Int32s, by_object: Int32s | None = None) -> None:
        self.s, self.o, self._by_object = s, o, by_object

    @property
    def by_object(self) -> Int32s:
        if self._by_object is None:
            self._by_object = row_order([self.o, self.s]).astype(np.int32)
        return self._by_object

    def __len__(self) -> int:
        return len(self.s)


class KbGraph(dict[int, KbRelation]):
    """A named graph: its relations by predicate code.

    `memo` caches what queries derive from the graph. It is not pickled with the graph.
    """

    __slots__ = ("memo",)

    def __init__(self, relations: Mapping[int, KbRelation] | None = None) -> None:
        super().__init__(relations or {})
        self.memo: dict[object, Any] = {}

    def __reduce__(self) -> tuple[type[KbGraph], tuple[dict[int, KbRelation]]]:
        return KbGraph, (dict(self),)


@dataclass(frozen=True)
class KnowledgeBase:
    """An immutable RDF dataset of named graphs.

    Attributes:
        terms: the dictionary.
        graphs: by graph IRI, without brackets.
        hash: SHA-256 of the content. Equal datasets have equal hashes if their blank nodes first
            occur in the same order.
        endpoints: URL by graph IRI, for graphs at SPARQL endpoints.
        addresses: URL by IRI, for all endpoints that SERVICE may call by IRI.
        file: path of the compiled file, if `open` mapped one.
        services: the options of endpoints.
        asked: sends the requests, instead of the cache of the process.

    `endpoints`, `addresses`, `services` and `asked` are not part of the file or the hash.
    """

    terms: KbTerms | ExtendedTerms | TermsSoFar
    graphs: Mapping[str, KbGraph]
    hash: str
    endpoints: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    services: ServiceOptions = field(default_factory=ServiceOptions)
    asked: EndpointAnswers | None = None

    @classmethod
    def empty(cls) -> KnowledgeBase:
        """A knowledge base without graphs."""
        return cls.of_quads([], [], [], {})

    @classmethod
    def of_quads(
        cls,
        texts: Sequence[str] | TextArray,
        graph_names: Sequence[str],
        empty_graphs: Iterable[str],
        columns: Mapping[str, Int32s],
    ) -> KnowledgeBase:
        """The dataset of m quads, which may repeat.

        Args:
            texts: distinct term texts, as strings or an Arrow array.
            graph_names: IRIs of the graphs.
            empty_graphs: graphs that exist even without a quad.
            columns: g, s, p, o, each int32 [m]: g is an index into `graph_names`, the others into
                `texts`.
        """
        columns = columns or dict.fromkeys("gspo", np.empty(0, np.int32))
        array = texts if isinstance(texts, pa.Array) else text_array(texts)
        order = pc.array_sort_indices(array)
        rank = np.empty(len(array), np.int32)
        rank[order.to_numpy()] = np.arange(len(array), dtype=np.int32)
        terms = KbTerms(array.take(order))
        graphs = {name: KbGraph() for name in empty_graphs}
        by_graph = np.argsort(columns["g"], kind="stable")
        ends = np.cumsum(np.bincount(columns["g"], minlength=len(graph_names)))
        p, s, o = (rank[columns[c][by_graph]] for c in "pso")
        for number, name in enumerate(graph_names):
            rows = slice(ends[number - 1] if number else 0, ends[number])
            graphs[name] = KbGraph(_relations(p[rows], s[rows], o[rows]))
        graphs = dict(sorted(graphs.items()))
        return cls(terms, graphs, _content_hash(terms, graphs))

    def find(self, text: str) -> int:
        """A term's code, ABSENT (negative) if it is not in the dataset."""
        return int(self.terms.find([text])[0])

    def only(self, graphs: Iterable[str]) -> KnowledgeBase:
        """The dataset with only these graphs, and the same dictionary and hash."""
        kept_names = dict.fromkeys(graphs)
        kept = {name: self.graphs[name] for name in kept_names if name in self.graphs}
        endpoints = {iri: url for iri, url in self.endpoints.items() if iri in kept_names}
        return replace(self, graphs=kept, endpoints=endpoints)

    def __len__(self) -> int:
        """The number of triples of all graphs."""
        return sum(len(r) for graph in self.graphs.values() for r in graph.values())

    # --- file -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the dataset to one Arrow file, which `open` maps."""
        assert isinstance(self.terms, KbTerms), "a graph that changes is in no file"
        names = list(self.graphs)
        keys = [(g, p) for g, name in enumerate(names) for p in self.graphs[name]]
        relations = [self.graphs[names[g]][p] for g, p in keys]
        sizes = [len(r) for r in relations]
        columns = [
            self.terms.texts,
            names,
            [g for g, _ in keys],
            [p for _, p in keys],
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            *(_concatenated([getattr(r, c) for r in relations]) for c in ("s", "o", "by_object")),
        ]
        arrays = [pa.array([self.hash])]
        for named, column in zip(list(_SCHEMA)[1:], columns, strict=True):
            values = pa.array(column, named.type.value_type)
            arrays.append(pa.LargeListArray.from_arrays(pa.array([0, len(values)]), values))
        batch = pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            writer.write_batch(batch)
        append_checksums(Path(path))

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeBase:
        """Map a file that `save` wrote.

        Raises:
            InputError: the file is damaged, or of another version.
        """
        try:
            batch = _mapped(Path(path))
        except (OSError, pa.ArrowException, Damaged) as error:
            raise InputError(f"cannot open the knowledge base {path}: {error}") from error
        if (batch.schema.metadata or {}).get(b"format") != FORMAT:
            raise InputError(f"{path} is not a knowledge base of this version of spaseq")
        lists = {name: batch.column(name).values for name in _SCHEMA.names[1:]}
        numbers = {n: a.to_numpy() for n, a in lists.items() if n not in ("terms", "graph")}
        terms = KbTerms(lists["terms"])
        names = lists["graph"].to_pylist()
        graphs = {name: KbGraph() for name in names}
        start = numbers["start"].tolist()
        keys = zip(numbers["relation_graph"].tolist(), numbers["predicate"].tolist(), strict=True)
        for i, (g, p) in enumerate(keys):
            rows = slice(start[i], start[i + 1])
            graphs[names[g]][p] = KbRelation(*(numbers[c][rows] for c in ("s", "o", "by_object")))
        return cls(terms, graphs, batch.column("hash")[0].as_py(), file=str(path))


def _mapped(path: Path) -> pa.RecordBatch:
    """The record batch of a file that `save` wrote, after a check of its checksums."""
    with pa.memory_map(str(path)) as file:
        data = file.read_buffer()
    return pa.ipc.open_file(data.slice(0, checked_size(np.frombuffer(data, np.uint8)))).get_batch(0)


def _relations(p: Int32s, s: Int32s, o: Int32s) -> dict[int, KbRelation]:
    """The distinct triples by predicate code, predicates ascending."""
    if not len(p):
        return {}
    order = row_order([p, s, o])
    p, s, o = p[order], s[order], o[order]
    new = np.ones(len(p), np.bool_)
    new[1:] = (p[1:] != p[:-1]) | (s[1:] != s[:-1]) | (o[1:] != o[:-1])
    p, s, o = p[new], s[new], o[new]
    codes, starts = np.unique(p, return_index=True)
    ends: Int64s = np.append(starts[1:], len(p))
    relations = {}
    for code, low, high in zip(codes.tolist(), starts.tolist(), ends.tolist(), strict=True):
        relations[code] = KbRelation(s[low:high], o[low:high])
    return relations


def _concatenated(arrays: Sequence[Int32s]) -> Int32s:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int32)


def _content_hash(terms: KbTerms, graphs: Mapping[str, KbGraph]) -> str:
    digest = hashlib.sha256(_HASHED)
    offsets, data = terms.buffers
    digest.update((offsets - offsets[0]).astype("<i8").tobytes())
    digest.update(data[offsets[0] : offsets[-1]].tobytes())
    for name, graph in graphs.items():
        digest.update(f"\ngraph {name}".encode())
        for predicate, relation in graph.items():
            digest.update(f"\n{predicate} {len(relation)}\n".encode())
            digest.update(np.ascontiguousarray(relation.s, "<i4").tobytes())
            digest.update(np.ascontiguousarray(relation.o, "<i4").tobytes())
    return digest.hexdigest()
