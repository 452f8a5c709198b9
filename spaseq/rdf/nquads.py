"""N-Quads and N-Triples, line by line, so that a malformed line costs that line only.

Speculation makes it fast: most lines are canonical already, their terms separated by single
spaces, and most of their terms have been seen before or are plain enough for one regular
expression. A line is cut at its spaces and each piece looked up; whatever this does not settle
goes to pyoxigraph, which has the last word on what is well-formed. (1.0 M quads/s can so be cut
and looked up on one thread, 0.4 with pyoxigraph's objects for every line.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO

import pyoxigraph as ox

from spaseq.rdf.batches import BadInput
from spaseq.rdf.blocks import DEFAULT_GRAPH, BlockBuilder, OnBad, QuadBlock
from spaseq.rdf.text_blocks import LineBlock, line_blocks
from spaseq.rdf.vocabulary import XSD

_SOME = r"[A-Za-z0-9_.~:@!$&'()*+,;=/-]*"
_PATH = rf"{_SOME}(?:%[0-9A-Fa-f]{{2}}{_SOME})*"
_PLAIN = re.compile(
    rf"<[a-z][a-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/{_PATH})?|[A-Za-z0-9]{_PATH})"
    rf"(?:\?{_PATH})?(?:#{_PATH})?>"
    r"|_:[A-Za-z0-9]+"
    rf'|"[ !#-\[\]-~]*"(?:\^\^<{re.escape(XSD)}(?!string>)[A-Za-z]+>)?'
)
"""Some of the canonical terms: IRIs and literals in ASCII that need no check beyond this."""

_PLACE = re.compile(r"^Parser error at line \d+ (?:between columns (\d+) and \d+|column (\d+)): ")
TRIPLE_TERM = "triple terms (RDF 1.2) are not read"
_SHOWN = 300
"""Characters of a malformed line that are reported."""


class _PlainCodes(dict[str, int]):
    """Codes of terms; looking up a new one admits it if it is plain, else is a KeyError."""

    def __missing__(self, token: str) -> int:
        if _PLAIN.fullmatch(token) is None:
            raise KeyError(token)
        code = self[token] = len(self)
        return code


def nquads_blocks(data: IO[bytes], file: str, graphs: bool, on_bad: OnBad) -> Iterator[QuadBlock]:
    """The quads of a file, a block for every MB or so.

    `graphs=False` reads N-Triples: a fourth term is an error, and a malformed line leaves a row in
    its place. Lines count from 1 and end with LF, CR LF or CR. `file` is the name for reports.
    """
    for block in line_blocks(data, file, on_bad):
        yield _parse(block, file, graphs, on_bad)


def _parse(block: LineBlock, file: str, graphs: bool, on_bad: OnBad) -> QuadBlock:
    builder = BlockBuilder(_PlainCodes())
    codes = builder.codes
    add_s, add_p, add_o = builder.s.append, builder.p.append, builder.o.append
    add_g, add_line = builder.g.append, builder.line.append
    number = block.first - 1
    for line in block.lines:
        number += 1
        try:
            s, p, rest = line.split(" ", 2)
            pieces = rest.rsplit(" ", 2)
            if len(pieces) == 2:
                o, dot = pieces
                graph = DEFAULT_GRAPH
            elif graphs:
                o, g, dot = pieces
                graph = codes[g]
                if g[0] == '"':
                    raise ValueError
            else:
                raise ValueError
            if dot != "." or s[0] == '"' or p[0] != "<":
                raise ValueError
            subject, predicate, obj = codes[s], codes[p], codes[o]
        except (KeyError, ValueError, IndexError):
            if line:
                _parse_line(line, number, builder, file, graphs, on_bad)
            continue
        add_s(subject)
        add_p(predicate)
        add_o(obj)
        add_g(graph)
        add_line(number)
    return builder.block(block.cut)


def _parse_line(
    line: str, number: int, builder: BlockBuilder, file: str, graphs: bool, on_bad: OnBad
) -> None:
    """A line that is blank, a comment, not canonical, or wrong."""
    if isinstance(quads := parse_nquads_line(line, graphs), str):
        shown = line[:_SHOWN].encode(errors="surrogateescape").decode(errors="replace")
        on_bad(BadInput(file, number, quads, shown))
        if not graphs:
            builder.add_malformed(number)
        return
    for s, p, o, g in quads:
        builder.add(s, p, o, g, number)


def parse_nquads_line(
    line: str, graphs: bool = True
) -> Sequence[tuple[str, str, str, str | None]] | str:
    """The quads of one line (none if it is blank or a comment), or the reason it is malformed."""
    form = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    try:
        quads = list(ox.parse(line.encode(), form))
    except UnicodeEncodeError as error:
        return f"not UTF-8 (column {error.start + 1})"
    except (SyntaxError, ValueError) as error:
        return syntax_reason(error)
    if any(isinstance(quad.object, ox.Triple) for quad in quads):
        return TRIPLE_TERM
    return [_texts(quad) for quad in quads]


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
