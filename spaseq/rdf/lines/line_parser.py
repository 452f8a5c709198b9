"""Parsing one line of N-Quads or N-Triples with pyoxigraph."""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox

from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.inputs.bad_input import syntax_reason
from spaseq.rdf.inputs.nesting import nested_too_deep
from spaseq.rdf.inputs.sizes import PARSED_BYTES, UNREADABLY_LONG, long_line
from spaseq.rdf.terms.term import from_pyoxigraph


def parse_nquads_line(
    line: bytes, graphs: bool = True, limits: Limits = DEFAULT_LIMITS
) -> Sequence[tuple[str, str, str, str | None]] | str:
    """The quads of one line (none if it is blank or a comment), or why it is malformed."""
    if len(line) > min(limits.line_bytes, PARSED_BYTES):
        return long_line(len(line), limits) or UNREADABLY_LONG
    if (reason := nested_too_deep(line, limits.nesting)) is not None:
        return reason
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
