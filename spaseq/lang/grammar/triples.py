"""Triple patterns (SPARQL 1.1 section 19.8, productions 75-87 and 98-106).

The actions expand `;`, `,`, `[ ]` and `( )`: a block of triples is a flat list in the order of the
text. The triples of a nested node come right after the triple whose object it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pyparsing import Forward, ParserElement

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.paths import VERB_PATH, VERB_SIMPLE
from spaseq.lang.grammar.rules import mark, rule
from spaseq.lang.grammar.terminals import (
    BLANK_NODE,
    EMPTY_BLANK_NODE,
    IRI,
    LITERAL,
    NIL,
    VAR,
    anonymous,
)
from spaseq.lang.unresolved import RDF
from spaseq.records import record


@record
class _Nested:
    """A `[ ... ]` or `( ... )`: its blank node, and the triples inside."""

    span: Span
    head: ast.Term
    triples: tuple[ast.Triple, ...]


_Node: TypeAlias = ast.Term | _Nested


class _Objects:
    """`verb object, object ...`"""

    def __init__(self, span: Span, verb: ast.Var | ast.Path, *objects: _Node) -> None:
        self.span, self.verb, self.objects = span, verb, objects

    def of(self, subject: ast.Term, start: int) -> Iterator[ast.Triple]:
        """The triples with this verb; the first of them begins at `start` in the text."""
        for number, node in enumerate(self.objects):
            here = node.span.start if number else start
            yield ast.Triple(subject, self.verb, _head(node), span=Span(here, node.span.end))
            yield from _triples_inside(node)


def _head(node: _Node) -> ast.Term:
    return node.head if isinstance(node, _Nested) else node


def _triples_inside(node: _Node) -> tuple[ast.Triple, ...]:
    return node.triples if isinstance(node, _Nested) else ()


def _described(subject: ast.Term, properties: tuple[_Objects, ...]) -> Iterator[ast.Triple]:
    for number, objects in enumerate(properties):
        yield from objects.of(subject, objects.span.start if number else subject.span.start)


def _same_subject(span: Span, subject: _Node, *properties: _Objects) -> ast.Triples:
    triples = (*_triples_inside(subject), *_described(_head(subject), properties))
    return ast.Triples(triples, span=span)


def _property_list_node(span: Span, *properties: _Objects) -> _Nested:
    head = anonymous(span)
    return _Nested(span, head, tuple(_described(head, properties)))


def _collection(span: Span, *nodes: _Node) -> _Nested:
    cells: list[ast.Term] = [anonymous(span, number) for number in range(len(nodes))]
    cells.append(ast.Iri(RDF + "nil", span=span))
    triples: list[ast.Triple] = []
    for node, cell, following in zip(nodes, cells, cells[1:], strict=False):
        first, rest = ast.Iri(RDF + "first", span=node.span), ast.Iri(RDF + "rest", span=node.span)
        triples.append(ast.Triple(cell, first, _head(node), span=node.span))
        triples += _triples_inside(node)
        triples.append(ast.Triple(cell, rest, following, span=node.span))
    return _Nested(span, cells[0], tuple(triples))


def _merged(span: Span, *blocks: ast.Triples) -> ast.Triples:
    return ast.Triples(tuple(triple for block in blocks for triple in block.triples), span=span)


def _triples(verb: ParserElement) -> ParserElement:
    """The rule for a block of triples with predicates `verb`."""
    node = Forward()
    objects = rule(verb + node + (mark(",") + node)[...], _Objects)
    properties = objects + (mark(";") + objects[0, 1])[...]
    term = VAR | IRI | LITERAL | BLANK_NODE | EMPTY_BLANK_NODE | NIL
    nested = rule(mark("[") + properties + mark("]"), _property_list_node) | rule(
        mark("(") + node[1, ...] + mark(")"), _collection
    )
    node <<= term | nested
    same_subject = rule(term + properties, _same_subject) | rule(
        nested + properties[0, 1], _same_subject
    )
    return rule(same_subject + (mark(".") + same_subject)[...] + mark(".")[0, 1], _merged)


TRIPLES_BLOCK = _triples(VERB_PATH)
TRIPLES_TEMPLATE = _triples(VERB_SIMPLE)
