"""Parsing one line of N-Quads or N-Triples with pyoxigraph."""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox

from spaseq.rdf.inputs.bad_input import syntax_reason
from spaseq.rdf.terms.term import from_pyoxigraph


def parse_nquads_line(
    line: bytes, graphs: bool = True
) -> Sequence[tuple[str, str, str, str | None]] | str:
    """The quads of one line (none if it is blank or a comment), or why it is malformed."""
    form = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    try:
        quads = list(ox.parse(line, form))
    except (SyntaxError, ValueError) as error:
        return _encoding_reason(line) or syntax_reason(error)
    return [_texts(quad) for quad in quads]


def _encoding_reason(line: bytes) -> str | None:
    """The fault in a line's encoding; None if it is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 (column {len(line[: error.start].decode()) + 1})"
    return None


def _texts(quad: ox.Quad) -> tuple[str, str, str, str | None]:
    s, p, o, g = quad
    return str(s), str(p), from_pyoxigraph(o), None if isinstance(g, ox.DefaultGraph) else str(g)
