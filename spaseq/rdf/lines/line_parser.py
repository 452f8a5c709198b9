"""Parsing one line of N-Quads or N-Triples with pyoxigraph, and what a malformed one names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyoxigraph as ox

from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.inputs.sizes import (
    PARSED_BYTES,
    UNREADABLY_LONG,
    line_excess,
    long_line,
    nested_too_deep,
)
from spaseq.rdf.inputs.stream_options import syntax_reason
from spaseq.rdf.kernels.lines import UNREAD
from spaseq.rdf.lines.arenas import ReadArena
from spaseq.rdf.terms.term import from_pyoxigraph
from spaseq.text_patterns import late_pattern

_LINE = late_pattern(rb"[^\r\n]*+")


class LongLine(NamedTuple):
    """The row of a statement that exceeds a limit, its line, and the reason."""

    row: int
    line: bytes
    reason: str


def long_lines(arena: ReadArena, count: int, end: int, limits: Limits) -> Iterator[LongLine]:
    """Those of the first `count` rows that exceed a limit; the last row's line ends before `end`.

    Rows that are UNREAD are left out.
    """
    at = arena.rows.at[:count].astype(np.int64)
    room = np.diff(at, append=end)  # of the line, and of comments and blank lines after it
    least = min(limits.line_bytes, limits.literal_bytes)
    for row in np.flatnonzero((room > least) & (arena.rows.s[:count] != UNREAD)).tolist():
        match = _LINE.match(arena.buffer, at[row], at[row] + room[row])  # type: ignore[call-overload]
        assert match is not None
        line = bytes(match.group())
        reason = line_excess(line, limits)
        if reason is not None:
            yield LongLine(row, line, reason)


_LITERAL = late_pattern(rb'"(?:[^"\\]|\\.)*+"')
_TERM = late_pattern(rb"<[^>]*+>|_:[^\s<>\"]++|[^\s<]++")
_END = late_pattern(rb"\s*+\.\s*+(?:#.*+)?$", re.DOTALL)
_NAME = late_pattern(rb"<[^\x00-\x20<>\"{}|^`\\]++>|_:[\w.-]*+")


def graph_named(line: bytes, time_predicate: str) -> str | None:
    r"""The graph that a malformed line names as its fourth term, or gives a time; else None.

    >>> graph_named(rb'<s:> <p:> "a \q" <g:1> .', "<t:>")
    '<g:1>'
    >>> graph_named(rb'<g:1> <t:> "\q" .', "<t:>")
    '<g:1>'
    >>> graph_named(rb'<s:> <p:> "a <g:1> .', "<t:>")
    """
    text = _LITERAL.sub(b'""', line)
    if text.count(b'"') % 2:
        return None
    terms: list[bytes] = []
    end = 0
    for match in _TERM.finditer(_END.sub(b"", text.rstrip())):
        if terms and match.start() == end and terms[-1].startswith(b'"'):
            terms[-1] += match[0]  # a datatype
        else:
            terms.append(match[0])
        end = match.end()
    if len(terms) == 4:
        name = terms[3]
    elif len(terms) == 3 and terms[1] == time_predicate.encode():
        name = terms[0]
    else:
        return None
    return name.decode(errors="replace") if _NAME.fullmatch(name) else None


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
