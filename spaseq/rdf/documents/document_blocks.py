"""Reading TriG, Turtle, JSON-LD and RDF/XML with pyoxigraph. An error ends the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import pyoxigraph as ox

from spaseq.rdf.columns.quad_block import BlockBuilder, QuadBlock
from spaseq.rdf.inputs.bad_input import BadInput, OnBad, syntax_reason
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.terms.term import from_pyoxigraph

BLOCK_QUADS = 8192

DOCUMENT_FORMATS = {
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
}


def document_blocks(
    data: IO[bytes], file: str, form: Format, on_bad: OnBad, base: str | None = None
) -> Iterator[QuadBlock]:
    """The quads of a file as blocks, in parser order.

    `base` is the base IRI until the document sets its own. A syntax error is reported; the last
    block then has the quads before it and is marked `cut`. Blank nodes without a label have a
    random one (see `blank_labels`). Line numbers are unknown.
    """
    builder = BlockBuilder()
    cut = False
    try:
        for s, p, o, g in ox.parse(data, DOCUMENT_FORMATS[form], base_iri=base):
            name = None if isinstance(g, ox.DefaultGraph) else str(g)
            builder.add(str(s), str(p), from_pyoxigraph(o), name)
            if len(builder) == BLOCK_QUADS:
                yield builder.block()
                builder = BlockBuilder()
    except (SyntaxError, ValueError, *READ_ERRORS) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        reason = f"the rest of the file is not read: {syntax_reason(error)}"
        if base is None and "No scheme found" in reason:
            reason += "; relative IRIs need a base (--base IRI, or base= in Python)"
        on_bad(BadInput(file, line, reason))
        cut = True
    if cut or len(builder):
        yield builder.block(cut)
