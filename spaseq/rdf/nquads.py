"""One line of N-Quads or N-Triples, as pyoxigraph reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyoxigraph as ox

_PLACE = re.compile(r"^Parser error at line \d+ (?:between columns (\d+) and \d+|column (\d+)): ")
TRIPLE_TERM = "triple terms (RDF 1.2) are not read"


def parse_nquads_line(
    line: bytes, graphs: bool = True
) -> Sequence[tuple[str, str, str, str | None]] | str:
    """The quads of one line (none if it is blank or a comment), or the reason it is malformed."""
    form = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    try:
        quads = list(ox.parse(line, form))
    except (SyntaxError, ValueError) as error:
        return _encoding_reason(line) or syntax_reason(error)
    if any(isinstance(quad.object, ox.Triple) for quad in quads):
        return TRIPLE_TERM
    return [_texts(quad) for quad in quads]


def _encoding_reason(line: bytes) -> str | None:
    """What is wrong with the encoding of a line, if something is."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 (column {len(line[: error.start].decode()) + 1})"
    return None


def _texts(quad: ox.Quad) -> tuple[str, str, str, str | None]:
    s, p, o, g = quad
    return str(s), str(p), str(o), None if isinstance(g, ox.DefaultGraph) else str(g)


def syntax_reason(error: Exception) -> str:
    """pyoxigraph's message without the line number of the text it was given."""
    message = str(error.args[0]) if error.args else str(error)
    place = _PLACE.match(message)
    if place is None:
        return message
    return f"{message[place.end() :]} (column {place.group(1) or place.group(2)})"
