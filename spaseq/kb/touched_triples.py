"""The triples of a graph that a SPARQL update reads or writes, if its text alone says them.

Most updates name what they change. Then the few triples that its patterns match decide what the
update does, and the rest of the graph need not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from math import prod

import numpy as np
import pyoxigraph as ox

from spaseq import thresholds
from spaseq.compiled.arrays import Int64s
from spaseq.kb.knowledge import KbGraph
from spaseq.rdf.columns.term_tables import ABSENT, TermTable
from spaseq.rdf.terms.term import Triple, from_pyoxigraph
from spaseq.text_patterns import late_pattern

TOKEN = late_pattern(
    r"""#[^\n\r]*|<[^<>"{}|^`\\\s]*>|\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''"""
    r"""|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'|[?$@]\w+|[\w.-]*:[\w.:%-]*|[^\W\d]\w*""",
    re.DOTALL,
)
"""A part of an update in which a word is no keyword, or a word."""

_PART = r"(?:PREFIX\s+[^\s<{]*\s*|BASE\s*)<[^<>\s]*>|\{[^{}]*\}"
_OPERATIONS = late_pattern(rf"(?:{_PART}|\s|;|(?:INSERT|DELETE|DATA|WHERE)\b)*", re.IGNORECASE)
_PARTS = late_pattern(_PART, re.IGNORECASE)
_TEMPLATE = late_pattern(r"\bINSERT\b(?!\s+DATA\b)", re.IGNORECASE)
_ANY = "<urn:spaseq:any>"


def touched_triples(
    graph: KbGraph, terms: TermTable, text: str, iri: str
) -> Sequence[Triple] | None:
    """The triples of a graph that the triple patterns of an update match.

    The update does with them what it does with the graph.

    Args:
        graph, terms: the graph.
        text: the update.
        iri: the base IRI.

    Returns:
        None if the text has more than triple patterns, or if many solutions are possible.
    """
    blocks = _blocks(text, iri)
    if blocks is None:
        return None
    found = {each: [*_places(graph, terms, each)] for each in {*chain.from_iterable(blocks)}}
    given = sum(_ANY not in pattern for pattern in found)  # operations may insert them for others
    counts = {each: given + sum(len(rows) for _, rows in of) for each, of in found.items()}
    if (
        sum(prod(map(counts.__getitem__, block)) for block in blocks)
        > thresholds.current.touched_triples
    ):
        return None
    return [
        (terms.text(int(graph[p].s[row])), terms.text(p), terms.text(int(graph[p].o[row])))
        for places in found.values()
        for p, rows in places
        for row in rows.tolist()
    ]


def _blocks(text: str, iri: str) -> list[set[Triple]] | None:
    """The triple patterns in each block of an update, which are read as Turtle.

    Of several operations none may have a template to insert: what it inserts would be unknown.

    >>> _blocks("DELETE { <a> <p> ?o } WHERE {}", "http://e/")
    [{('<http://e/a>', '<http://e/p>', '<urn:spaseq:any>')}, set()]
    >>> _blocks("DELETE WHERE { <a> <p>/<q> ?o }", "http://e/")
    """
    outline = TOKEN.sub(_without_content, text)
    if _OPERATIONS.fullmatch(outline) is None:
        return None
    operations = [each for each in _PARTS.sub(" ", outline).split(";") if each.strip()]
    if len(operations) > 1 and any(map(_TEMPLATE.search, operations)):
        return None
    prologue, blocks = "", list[set[Triple]]()
    for part in _PARTS.finditer(outline):
        given = text[part.start() : part.end()]
        if part[0][0] != "{":
            prologue += given + "\n"
            continue
        end = "" if part[0][1:-1].rstrip()[-1:] in ("", ".") else "."
        document = f"{prologue}{TOKEN.sub(_anything, given[1:-1])}\n{end}"
        try:
            triples = [*ox.parse(document.encode(), ox.RdfFormat.TURTLE, base_iri=iri)]
        except (SyntaxError, ValueError):
            return None
        blocks.append(
            {(str(t.subject), str(t.predicate), from_pyoxigraph(t.object)) for t in triples}
        )
        if any(o.startswith("<<") for _, _, o in blocks[-1]):
            return None
    return blocks


def _without_content(token: re.Match[str]) -> str:
    """A token without braces and dots, as long as before; the IRI of a prefix stays an IRI."""
    word = token[0]
    match word[0]:
        case "#":
            return " " * len(word)
        case "<":
            return f"<{'_' * (len(word) - 2)}>"
        case '"' | "'":
            return "_" * len(word)
    return word


def _anything(token: re.Match[str]) -> str:
    return _ANY if token[0][0] in "?$" else token[0]


def _places(graph: KbGraph, terms: TermTable, pattern: Triple) -> Iterator[tuple[int, Int64s]]:
    """The predicates of the triples that fit a pattern, and the rows of their relations."""
    s, p, o = (None if t == _ANY or t[0] == "_" else terms.code(t) for t in pattern)
    if ABSENT in (s, p, o):
        return
    for predicate in graph if p is None else {p} & graph.keys():
        relation = graph[predicate]
        low, high = 0, len(relation)
        if s is not None:
            low, high = np.searchsorted(relation.s, [s, s + 1]).tolist()
        rows = np.arange(low, high)
        yield predicate, rows if o is None else rows[relation.o[low:high] == o]
