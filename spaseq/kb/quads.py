"""Reads the sources of a knowledge base (files, stores, rdflib graphs) as quads, and ontologies as
schemas.

Kernels read N-Quads, N-Triples and Turtle, and the text that pyoxigraph writes of other formats and
of unusual Turtle.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np
import pyoxigraph as ox

from spaseq.compiled.arrays import Int32s
from spaseq.errors import InputError, UsageError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.options import REGIMES, KbInput, OntologyInput
from spaseq.rdf.columns.event_batch import DEFAULT_GRAPH
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.rdf.documents.document_events import DocumentLines
from spaseq.rdf.inputs.files import STDIN, InputFile, files_at
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import long_literal
from spaseq.rdf.inputs.stream_options import REST, BadInput
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import from_pyoxigraph, from_rdflib, is_rdf_term
from spaseq.records import record
from spaseq.text_patterns import late_pattern

if TYPE_CHECKING:
    import rdflib
    from rdflib.term import Identifier

    from spaseq.rdf.lines.statements import Statements

BLOCK_QUADS = 1 << 16

KERNEL_BYTES = 1 << 18
"""Bytes of Turtle from which on a kernel reads it. A parser reads less as fast as it is loaded."""

_UTF8_BYTES = 4  # most bytes of a character
_SHOWN = 300  # characters of a term in an error

_LINE = late_pattern(r"(?<=between line )\d+(?= column \d)|(?<= and line )\d+(?= column \d+: )")
"""The lines in an error of the parser that has two."""

_STORE_MARK = "CURRENT"  # every RocksDB directory has this file


@record
class KbQuads:
    """m quads as codes int32 [m] into `texts`, which are distinct canonical N-Triples texts.

    `g` is the code of the graph name, or DEFAULT_GRAPH.
    """

    texts: TextArray
    g: Int32s
    s: Int32s
    p: Int32s
    o: Int32s


@record
class OxigraphStore:
    """The directory of an Oxigraph store."""

    path: str


QuadSource: TypeAlias = InputFile | OxigraphStore


def sources_at(path: str | PathLike[str]) -> Sequence[QuadSource]:
    """The sources at a path: a file, the files of a directory or glob, or a store.

    Raises:
        InputError: there is nothing to read.
    """
    name = fspath(path)
    if name == STDIN:
        raise InputError("a knowledge base is not read from standard input")
    if os.path.isfile(os.path.join(name, _STORE_MARK)):
        return [OxigraphStore(name)]
    files = files_at(name)
    if not files:
        raise InputError(f"{name}: no RDF file in this directory")
    for file in files:
        if file.format.is_messages:
            raise InputError(f"{file.path}: a knowledge base has graphs, and this has messages")
    return files


def keeps_graphs(path: str) -> bool:
    """Whether all sources at a path have named graphs."""
    try:
        sources = sources_at(path)
    except InputError:
        return False
    return all(isinstance(source, OxigraphStore) or source.format.has_graphs for source in sources)


def quads_of(
    source: QuadSource, base: str | None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[KbQuads]:
    """The quads of a source; `base` is the base of relative IRIs.

    Raises:
        InputError: the source cannot be read or exceeds a limit, with file, line and reason.
    """
    match source:
        case OxigraphStore(path):
            yield from _store_quads(path)
        case InputFile(format=Format.NQUADS | Format.NTRIPLES):
            yield from _line_quads(source, limits)
        case InputFile(format=Format.TURTLE):
            yield from _turtle_quads(source, base, limits)
        case _:
            yield from _document_quads(source, base, limits)


def _line_quads(file: InputFile, limits: Limits) -> Iterator[KbQuads]:
    from spaseq.rdf.lines.arenas import ArenaPool
    from spaseq.rdf.lines.chunks import AfterLines
    from spaseq.rdf.lines.line_events import line_statements
    from spaseq.rdf.lines.statements import StatementReader

    reader = StatementReader(file.format.has_graphs, ArenaPool(2), limits=limits)
    with file.open(limits) as data:
        for statements, _, _ in line_statements(data, file.path, reader, AfterLines(), 1, _refuse):
            yield _quads(statements)
            del statements  # releases its arena


def _quads(statements: Statements) -> KbQuads:
    codes = np.arange(len(statements.terms), dtype=np.int32)
    columns = [column.copy() for column in (statements.g, statements.s, statements.p, statements.o)]
    return KbQuads(statements.terms.strings(codes), *columns)


def _refuse(bad: BadInput) -> NoReturn:
    where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
    raise InputError(f"{where}: {bad.reason}")


def _turtle_quads(file: InputFile, base: str | None, limits: Limits) -> Iterator[KbQuads]:
    from spaseq.rdf.documents.turtle_statements import TurtleStatements

    with file.open(limits) as data:
        statements = TurtleStatements(data, base, limits, KERNEL_BYTES)
        for texts, triples in statements:
            s, p, o = np.ascontiguousarray(triples.T)
            yield KbQuads(texts, np.full(len(s), DEFAULT_GRAPH, np.int32), s, p, o)
        if statements.rest is not None:
            yield from _parsed_quads(statements.rest, file, base, limits, statements.lines)


def _document_quads(file: InputFile, base: str | None, limits: Limits) -> Iterator[KbQuads]:
    with file.open(limits) as data:
        yield from _parsed_quads(data, file, base, limits)


def _parsed_quads(
    data: IO[bytes], file: InputFile, base: str | None, limits: Limits, lines: int = 0
) -> Iterator[KbQuads]:
    """The quads of a document, whose first `lines` lines are not in `data`."""
    from spaseq.rdf.documents.document_events import document_statements

    def refuse(bad: BadInput) -> NoReturn:
        line = None if bad.line is None else bad.line + lines
        reason = _LINE.sub(lambda number: str(int(number[0]) + lines), bad.reason)
        _refuse(replace(bad, line=line, reason=reason.removeprefix(REST)))

    document = DocumentLines(data, file.format, base, limits, contexts=None)
    for statements in document_statements(document, file.path, limits, refuse):
        yield _quads(statements)
        del statements  # releases its arena


def _store_quads(path: str) -> Iterator[KbQuads]:
    try:
        yield from _blocks(ox.Store.read_only(path).quads_for_pattern(None, None, None))
    except (OSError, RuntimeError) as error:
        raise InputError(f"cannot open the store {path}: {error}") from error


def _blocks(quads: Iterable[ox.Quad]) -> Iterator[KbQuads]:
    """Quads of pyoxigraph in blocks. The last block may be empty."""
    texts = ((str(s), str(p), from_pyoxigraph(o), _graph_text(g)) for s, p, o, g in quads)
    while True:
        some = list(islice(texts, BLOCK_QUADS))
        yield _coded(some)
        if len(some) < BLOCK_QUADS:
            return


def _coded(quads: Iterable[tuple[str, str, str, str | None]]) -> KbQuads:
    """Quads of canonical texts in columns; the name of the default graph is None."""
    codes: dict[str, int] = {}
    flat = [
        DEFAULT_GRAPH if text is None else codes.setdefault(text, len(codes))
        for quad in quads
        for text in quad
    ]
    s, p, o, g = np.ascontiguousarray(np.array(flat, np.int32).reshape(-1, 4).T)
    return KbQuads(text_array(list(codes)), g, s, p, o)


def _graph_text(graph: object) -> str | None:
    return None if isinstance(graph, ox.DefaultGraph) else str(graph)


def rdflib_quads(graph: rdflib.Graph, limits: Limits = DEFAULT_LIMITS) -> Iterator[KbQuads]:
    """The quads of an rdflib graph or dataset.

    Raises:
        InputError: a term is not RDF, or a literal exceeds the limit.
    """
    from rdflib import Dataset

    quads: Iterator[tuple[Identifier, ...]] = iter(graph)
    if isinstance(graph, Dataset):
        quads = graph.quads((None, None, None, None))
    yield _coded(_rdflib_texts(quads, limits))


def _rdflib_texts(
    quads: Iterable[tuple[Identifier, ...]], limits: Limits
) -> Iterator[tuple[str, str, str, str | None]]:
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    for s, p, o, *context in quads:
        named = context and context[0] not in (None, DATASET_DEFAULT_GRAPH_ID)
        try:
            name = _rdflib_text(context[0], limits) if named else None
            s_text, p_text, o_text = (_rdflib_text(term, limits) for term in (s, p, o))
        except (ValueError, TypeError) as error:
            reason = str(error)[:_SHOWN]
            raise InputError(f"the graph contains a term that is not RDF: {reason}") from error
        yield s_text, p_text, o_text, name


def _rdflib_text(term: Identifier, limits: Limits) -> str:
    """The N-Triples text of an rdflib term, which any parser would accept."""
    size = len(term) if isinstance(term, str) else 0
    if size > limits.literal_bytes // _UTF8_BYTES:
        reason = long_literal(len(term.encode("utf-8", "surrogatepass")), limits)
        if reason is not None:
            raise ValueError(reason)
    text = from_rdflib(term)
    text.encode()  # a surrogate is no character
    if not is_rdf_term(text):
        raise ValueError(f"{text[:_SHOWN]} is not an absolute IRI")
    return text


def triples_in(given: KbInput, limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[str, str, str]]:
    """The triples of all graphs of an input, as N-Triples texts.

    Raises:
        InputError: the input cannot be read, with file, line and reason.
    """
    if not isinstance(given, str | PathLike):
        yield from texts_of_blocks(rdflib_quads(given, limits))
        return
    for source in sources_at(given):
        yield from texts_of(source, Path(source.path).absolute().as_uri(), limits)


def texts_of(
    source: QuadSource, base: str | None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[str, str, str]]:
    """The triples of all graphs of a source, as N-Triples texts; see `quads_of`."""
    yield from texts_of_blocks(quads_of(source, base, limits))


def texts_of_blocks(blocks: Iterable[KbQuads]) -> Iterator[tuple[str, str, str]]:
    """The triples of blocks of quads, as N-Triples texts."""
    for block in blocks:
        texts = block.texts.to_pylist()
        for s, p, o in zip(block.s.tolist(), block.p.tolist(), block.o.tolist(), strict=True):
            yield texts[s], texts[p], texts[o]


def entailing_schema(
    ontology: OntologyInput | None, entailment: str | None, limits: Limits = DEFAULT_LIMITS
) -> Schema | None:
    """The schema of one or more ontologies; None without entailment.

    Reads the triples of all graphs in the ontologies. See `spaseq.algebra.entailment`.

    Raises:
        UsageError: there is an ontology without entailment, entailment without an ontology, or an
            unknown regime.
        InputError: an ontology cannot be read, has no axiom that the rules use, or has a transitive
            property above or below rdf:type.
    """
    if entailment is not None and entailment not in REGIMES:
        raise UsageError(f"unknown entailment {entailment!r}; there is: {', '.join(REGIMES)}")
    sources = _sources(ontology)
    if not sources and entailment is None:
        return None
    if entailment is None:
        raise UsageError("an ontology has no effect without entailment: say rdfs")
    if not sources:
        raise UsageError(f"entailment {entailment} needs an ontology (--ontology FILE)")
    schema = Schema.of(t for source in sources for t in triples_in(source, limits))
    names = ", ".join(str(s) for s in sources if isinstance(s, str | PathLike)) or "the graph"
    if not schema.axioms:
        raise InputError(f"{names}: no axiom about classes or properties to entail by")
    if refused := schema.transitive_types:
        raise InputError(
            f"{names}: {refused[0]} is transitive and above or below rdf:type, by which nothing "
            "can be entailed: take away one of the two"
        )
    return schema


def _sources(ontology: OntologyInput | None) -> list[KbInput]:
    if ontology is None:
        return []
    if isinstance(ontology, list | tuple):
        return list(ontology)
    return [ontology]
