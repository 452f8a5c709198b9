"""Format tests: every reader that supports the format, including spaseq's N-Quads kernel."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox

from spaseq.errors import InputError
from spaseq.kb.load import load_kb
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.documents.document_events import DocumentLines, document_statements
from spaseq.rdf.inputs.formats import Format, format_of
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import AfterSizedEvents, BeforeGraphs
from spaseq.rdf.lines.line_events import line_statements
from spaseq.rdf.lines.statements import StatementReader
from tests.w3c.manifests import Test

Quads = list[ox.Quad]


def readers(test: Test) -> list[str]:
    """The names of the readers for a test's file."""
    if test.kind.endswith("C14N"):
        return ["kernel"]
    if test.action and format_of(test.action) in (Format.NQUADS, Format.NTRIPLES):
        return ["kernel", "knowledge"]
    return ["documents", "knowledge"]


def read(test: Test, reader: str) -> Quads | None:
    """The quads of a test's file, or None if the reader refuses it."""
    assert test.action is not None
    path, form = test.folder / test.action, format_of(test.action)
    if form is None:
        raise InputError(f"{test.action} is in no format that is read")
    return _READERS[reader](path, form, test.base + test.action)


def _by_kernel(path: Path, form: Format, base: str) -> Quads | None:
    """Read with the kernel for lines."""
    lines = _kernel_lines(path, form)
    return None if lines is None else _parsed(lines)


def canonical_lines(test: Test) -> tuple[list[str] | None, list[str]]:
    """The lines of a test's file as the kernel reads them, and the expected canonical lines."""
    assert test.action is not None and test.result is not None
    form = format_of(test.action)
    assert form is not None
    wanted = (test.folder / test.result).read_text(encoding="utf-8")
    return _kernel_lines(test.folder / test.action, form), wanted.splitlines()


def _kernel_lines(path: Path, form: Format) -> list[str] | None:
    bad: list[BadInput] = []
    graphs = form == Format.NQUADS
    reader = StatementReader(graphs, ArenaPool(2))
    cut = BeforeGraphs(reader) if graphs else AfterSizedEvents(1)
    lines = []
    data = io.BytesIO(path.read_bytes())
    for b, _, _ in line_statements(data, path.name, reader, cut, 1, bad.append):
        for row in zip(b.s, b.p, b.o, b.g, strict=True):
            if row[0] >= 0:
                lines.append(" ".join(b.terms[code] for code in row if code >= 0))
    return None if bad else lines


def _by_documents(path: Path, form: Format, base: str) -> Quads | None:
    """Read with the stream reader for formats that are not line-based."""
    bad: list[BadInput] = []
    lines = []
    with path.open("rb") as data:
        document = DocumentLines(data, form, base)
        for b in document_statements(document, path.name, DEFAULT_LIMITS, bad.append):
            for row in zip(b.s, b.p, b.o, b.g, strict=True):
                lines.append(" ".join(b.terms[code] for code in row if code >= 0))
    return None if bad else _parsed(lines)


def _by_knowledge(path: Path, form: Format, base: str) -> Quads | None:
    """Read with the knowledge base reader, which puts all triples into one named graph."""
    try:
        knowledge = load_kb([(base, str(path))])
    except InputError:
        return None
    lines = []
    for predicate, relation in knowledge.graphs[base].items():
        for s, o in zip(relation.s.tolist(), relation.o.tolist(), strict=True):
            lines.append(" ".join(knowledge.terms[c] for c in (s, predicate, o)))
    return _parsed(lines)


def _parsed(lines: list[str]) -> Quads:
    return list(ox.parse("".join(f"{line} .\n" for line in lines), ox.RdfFormat.N_QUADS))


_READERS: dict[str, Callable[[Path, Format, str], Quads | None]] = {
    "kernel": _by_kernel,
    "documents": _by_documents,
    "knowledge": _by_knowledge,
}


def wanted(test: Test, reader: str) -> Quads | None:
    """The expected quads from the suite in the reader's form; None if there are none."""
    if test.result is None:
        return None
    quads = list(ox.parse((test.folder / test.result).read_bytes(), ox.RdfFormat.N_QUADS))
    if reader != "knowledge":
        return quads
    return list({ox.Quad(q.subject, q.predicate, q.object) for q in quads})


def canonical(quads: Quads) -> ox.Dataset:
    """A dataset with canonical blank node labels: equal for isomorphic datasets."""
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return dataset
