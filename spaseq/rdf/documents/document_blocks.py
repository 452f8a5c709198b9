"""Reading TriG, Turtle, JSON-LD and RDF/XML with pyoxigraph. An error ends the file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, cast

import numpy as np
import pyoxigraph as ox

from spaseq import thresholds
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.quad_block import DEFAULT_GRAPH, MALFORMED, BlockBuilder, QuadBlock
from spaseq.rdf.documents.measured_document import MeasuredDocument
from spaseq.rdf.inputs.announced import Headed
from spaseq.rdf.inputs.contexts import (
    CORE_NAME,
    NO_CONTEXTS,
    NOT_FETCHED,
    JsonLdContexts,
    NamedContexts,
)
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import UNREADABLE_TOKEN, literal_size, long_literal
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, syntax_reason

QUAD_BYTES = 1 << 11
"""What each quad adds to the size of its terms, so that a block has at most 8,192 quads."""

_HEAD_BYTES = 1 << 16  # in which a document names the core context of NGSI-LD

SHOWN = 300  # characters of a literal in a report

DOCUMENT_FORMATS = {
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
}

PARSER_ERRORS = (SyntaxError, ValueError, MemoryError, *READ_ERRORS)
"""Errors of the parser, or of the file that it reads; see `parser_reason`."""

REST = "the rest of the file is not read: "
"""How the reason begins for which a document ends."""

Report = Callable[[int | None, str, str], None]
"""Called with the line of bad input (None if unknown), the reason, and its text."""


def document_blocks(
    data: IO[bytes],
    file: str,
    form: Format,
    on_bad: OnBad,
    base: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    contexts: JsonLdContexts = NO_CONTEXTS,
) -> Iterator[QuadBlock]:
    """The quads of a file as blocks, in parser order.

    `base` is the base IRI until the document sets its own. Malformed text, or text that exceeds a
    limit, is reported and ends the file: the last block has the quads before it and is marked
    `cut`. A triple with a literal that is too long is reported, and the file goes on; the
    triple keeps its row, with MALFORMED codes. Blank nodes without a label have a random one (see
    `blank_labels`). Line numbers are unknown. JSON-LD may name `contexts`; it is then in memory as
    a whole.
    """

    def report(line: int | None, reason: str, text: str) -> None:
        if not text:
            reason = f"{REST}{reason}"
            if base is None and "No scheme found" in reason:
                reason += "; relative IRIs need a base (--base IRI, or base= in Python)"
            if "No LoadDocumentCallback" in reason:
                reason = f"{REST}a context that it names {NOT_FETCHED}"
        on_bad(BadInput(file, line, reason, text))

    is_named = bool(contexts.named)
    if form is Format.JSONLD and not is_named:
        head = data.read(_HEAD_BYTES)
        is_named, data = CORE_NAME in head, cast("IO[bytes]", Headed(head, data))
    if form is Format.JSONLD and is_named:
        try:
            measured = MeasuredDocument(data, Format.JSONLD, limits, int)
            parts = []
            while part := measured.read(1 << 20):  # it refuses what is nested too deep
                parts.append(part)
            value = json.loads(b"".join(parts))
            named = NamedContexts(dict(contexts.named), limits.event_bytes)
            data = io.BytesIO(json.dumps(named.inlined(value)).encode())
        except (*PARSER_ERRORS, RecursionError) as error:
            report(None, parser_reason(error), "")
            yield BlockBuilder().block(cut=True)
            return
    yield from parsed_blocks(data, form, base, limits, report)


def parsed_blocks(
    data: IO[bytes], form: Format, base: str | None, limits: Limits, report: Report
) -> Iterator[QuadBlock]:
    """The quads of a document as blocks; see `document_blocks`.

    `report` is called with the text of a literal that is too long, or without a text when the rest
    of the document cannot be read.
    """
    finished = 0  # quads of blocks before
    builder = BlockBuilder()
    measured = MeasuredDocument(data, form, limits, lambda: finished + len(builder))
    try:
        quads = ox.parse(cast("IO[bytes]", measured), DOCUMENT_FORMATS[form], base_iri=base)
        while size := fill_block(builder, quads, form.has_graphs):
            finished += len(builder)
            block, builder = builder.block(size=size), BlockBuilder()
            yield without_long_literals(block, form, limits, report)
    except PARSER_ERRORS as error:
        report(getattr(error, "lineno", None), parser_reason(error), "")
        yield without_long_literals(builder.block(cut=True), form, limits, report)


def fill_block(builder: BlockBuilder, quads: Iterator[ox.Quad], has_graphs: bool) -> int:
    """Add the next quads to an empty block. Returns the size of their terms, 0 at the end."""
    codes = builder.codes
    code = codes.setdefault
    add_s, add_p, add_o, add_g = (c.append for c in (builder.s, builder.p, builder.o, builder.g))
    default = ox.DefaultGraph
    size = 0
    for quad in quads:
        # One text of four terms is faster than four texts. Only objects contain spaces.
        subject, predicate, object_ = str(quad).split(" ", 2)
        named = has_graphs and type(quad.graph_name) is not default
        if named:
            object_, graph = object_.rsplit(" ", 1)
        add_s(code(subject, len(codes)))
        add_p(code(predicate, len(codes)))
        add_o(code(object_, len(codes)))
        add_g(code(graph, len(codes)) if named else DEFAULT_GRAPH)
        size += QUAD_BYTES + len(subject) + len(predicate) + len(object_)
        if size >= thresholds.current.document_bytes:
            break
    return max(size - QUAD_BYTES * len(builder), len(builder))


def parser_reason(error: Exception) -> str:
    """Why a document cannot be read further."""
    if isinstance(error, MemoryError):  # the parser's own bound on a token
        return UNREADABLE_TOKEN
    return syntax_reason(error)


def without_long_literals(
    block: QuadBlock, form: Format, limits: Limits, report: Report
) -> QuadBlock:
    """The block without the triples whose literals exceed the limit, which are reported."""
    least = limits.literal_bytes // 4  # a character has up to four bytes
    if not block.terms or max(map(len, block.terms)) <= least:
        return block
    reasons = {
        code: reason
        for code, text in enumerate(block.terms)
        if len(text) > least
        and (reason := long_literal(literal_size(text.encode()), limits)) is not None
    }
    if not reasons:
        return block
    bad = np.isin(block.o, list(reasons))
    for code in block.o[bad].tolist():
        report(None, reasons[code], block.terms[code][:SHOWN])
    s, p, o = (np.where(bad, MALFORMED, column) for column in (block.s, block.p, block.o))
    marked = replace(block, s=s, p=p, o=o)
    if not form.has_graphs:
        return marked
    return marked.rows(np.flatnonzero(~bad | (block.g != DEFAULT_GRAPH)))
