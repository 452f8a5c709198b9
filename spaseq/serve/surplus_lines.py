"""Malformed lines of posted N-Quads that say no more than others do: the log need not keep them."""

from __future__ import annotations

from collections.abc import Collection

from spaseq.rdf.lines.line_parser import graph_named, parse_nquads_line
from spaseq.rdf.terms.term import iri_text


def without_surplus(
    text: bytes, suspects: Collection[int], time_predicate: str, most: int = 1000
) -> bytes:
    r"""N-Quads in which many malformed lines are blank; the events are the same.

    After the first ones, a malformed line stays only if the malformed lines right before it name
    another graph.

    Args:
        text: the lines.
        suspects: the numbers, from 1, of all lines that are malformed, and perhaps of others.
        time_predicate: the predicate of the times of events.
        most: how many malformed lines are kept in any case.

    >>> without_surplus(b'x\ny\nz\n<s:> <p:> "1" <e:1> .\nx', {1, 2, 3, 5}, "t:", 1)
    b'x\n\n\n<s:> <p:> "1" <e:1> .\nx'
    """
    lines = text.split(b"\n")
    inside = sorted(n for n in suspects if 0 < n <= len(lines))
    malformed = [n for n in inside if isinstance(parse_nquads_line(lines[n - 1]), str)]
    names: set[str | None] = set()  # in the malformed lines right before
    last = 0
    for count, number in enumerate(malformed):
        if number != last + 1:
            names.clear()
        name = graph_named(lines[number - 1], iri_text(time_predicate))
        if count >= most and name in names:
            lines[number - 1] = b""
        names.add(name)
        last = number
    return b"\n".join(lines)
