"""Triple patterns (SPARQL 1.2 section 19.8), with paths, triple terms, reifiers and annotations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from pyparsing import Forward, ParserElement

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.rules import (
    BLANK_NODE,
    CLOSE_TERM,
    EMPTY_BLANK_NODE,
    EMPTY_BRACKETS,
    IRI,
    LITERAL,
    NIL,
    OPEN_REIFIED,
    OPEN_TERM,
    VAR,
    Punctuation,
    Word,
    anonymous,
    mark,
    rule,
    symbols,
    terminal,
)
from spaseq.lang.names import RDF, REIFIES, WrittenIri
from spaseq.records import record

PATH = Forward()

A_PATH_OPERATOR = "a path operator"

TYPE = terminal(r"a(?![\w:.-])", "'a'", lambda text, span: ast.Iri(RDF + "type", span=span), "a")
VERB_IRI = IRI | TYPE


def _alternative(span: Span, *paths: ast.Path) -> ast.Path:
    return paths[0] if len(paths) == 1 else ast.PathAlternative(paths, span=span)


def _sequence(span: Span, *paths: ast.Path) -> ast.Path:
    return paths[0] if len(paths) == 1 else ast.PathSequence(paths, span=span)


def _repeat(span: Span, path: ast.Path, modifier: Word | None = None) -> ast.Path:
    if modifier is None:
        return path
    return ast.PathRepeat(path, modifier.text, span=span)  # type: ignore[arg-type]


def _inverse(span: Span, path: ast.Path) -> ast.PathInverse:
    return ast.PathInverse(path, span=span)


def _negated(span: Span, *members: WrittenIri | ast.PathInverse) -> ast.PathNegated:
    forward = [iri for iri in members if not isinstance(iri, ast.PathInverse)]
    inverse = [iri.path for iri in members if isinstance(iri, ast.PathInverse)]
    return ast.PathNegated(tuple(forward), tuple(inverse), span=span)  # type: ignore[arg-type]


def _separated(element: ParserElement, by: str) -> ParserElement:
    separator = terminal(re.escape(by), A_PATH_OPERATOR, Punctuation, by)
    return element + (separator + element)[...]


_MEMBER = VERB_IRI | rule(mark("^") + VERB_IRI, _inverse)
_NEGATED = rule(
    mark("!") + (_MEMBER | EMPTY_BRACKETS | mark("(") + _separated(_MEMBER, "|") + mark(")")),
    _negated,
)
_PRIMARY = VERB_IRI | _NEGATED | mark("(") + PATH + mark(")")
# `+` before a digit is the sign of a number, `?` before a letter begins a variable.
_MODIFIER = symbols(r"\*|\+(?!\.?\d)|\?(?!\w)", A_PATH_OPERATOR, "*+?")
_ELEMENT = rule(_PRIMARY + _MODIFIER[0, 1], _repeat, keeps_one=True)
_STEP = _ELEMENT | rule(mark("^") + _ELEMENT, _inverse)

PATH <<= rule(
    _separated(rule(_separated(_STEP, "/"), _sequence, keeps_one=True), "|"),
    _alternative,
    keeps_one=True,
)

VERB_PATH = VAR | PATH
VERB_SIMPLE = VAR | VERB_IRI


@record
class _Nested:
    """A `[ ]`, `( )` or `<< >>`: its node, and the triples inside."""

    span: Span
    head: ast.Term
    triples: tuple[ast.Triple, ...]


_Node: TypeAlias = ast.Term | _Nested


@record
class _Reifier:
    """`~ name`; without a name it is a new blank node."""

    span: Span
    name: ast.Term


class _Annotation:
    """`{| ... |}`."""

    def __init__(self, span: Span, *properties: _Objects) -> None:
        self.span, self.properties = span, properties


class _Objects:
    """`verb object, object ...`, each object with its reifiers and annotations."""

    def __init__(
        self, span: Span, verb: ast.Var | ast.Path, *nodes: _Node | _Reifier | _Annotation
    ) -> None:
        self.span, self.verb = span, verb
        self.objects: list[tuple[_Node, list[_Reifier | _Annotation]]] = []
        for node in nodes:
            if isinstance(node, _Reifier | _Annotation):
                self.objects[-1][1].append(node)
            else:
                self.objects.append((node, []))

    def of(self, subject: ast.Term, start: int) -> Iterator[ast.Triple]:
        """The triples with this verb; the first of them begins at `start` in the text."""
        for number, (node, further) in enumerate(self.objects):
            here = node.span.start if number else start
            triple = ast.Triple(subject, self.verb, _head(node), span=Span(here, node.span.end))
            yield triple
            yield from _triples_inside(node)
            yield from _annotated(triple, further)


def _annotated(
    triple: ast.Triple, annotations: Iterable[_Reifier | _Annotation]
) -> Iterator[ast.Triple]:
    """The triples of a triple's reifiers and annotations.

    An annotation describes the reifier right before it, else a new blank node.
    """
    term = _triple_term(triple.span, triple.subject, triple.predicate, triple.object)
    open_reifier: ast.Term | None = None
    for each in annotations:
        if isinstance(each, _Annotation) and open_reifier is not None:
            reifier, open_reifier = open_reifier, None
        else:
            reifier = each.name if isinstance(each, _Reifier) else anonymous(each.span)
            yield ast.Triple(reifier, ast.Iri(REIFIES, span=each.span), term, span=each.span)
            open_reifier = reifier if isinstance(each, _Reifier) else None
        if isinstance(each, _Annotation):
            yield from _described(reifier, each.properties)


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


def _triple_term(
    span: Span, subject: ast.Term, predicate: ast.Var | ast.Path, object_: ast.Term
) -> ast.TripleTerm:
    return ast.TripleTerm(subject, predicate, object_, span=span)  # type: ignore[arg-type]


def _reifier(span: Span, name: ast.Term | None = None) -> _Reifier:
    return _Reifier(span, anonymous(span) if name is None else name)


def _reified(
    span: Span, s: _Node, verb: ast.Var | ast.Iri, o: _Node, reifier: _Reifier | None = None
) -> _Nested:
    """`<< s p o ~ reifier >>`: the reifier, which reifies the triple."""
    head = anonymous(span) if reifier is None else reifier.name
    term = _triple_term(span, _head(s), verb, _head(o))
    reifying = ast.Triple(head, ast.Iri(REIFIES, span=span), term, span=span)
    return _Nested(span, head, (reifying, *_triples_inside(s), *_triples_inside(o)))


def _merged(span: Span, *blocks: ast.Triples) -> ast.Triples:
    return ast.Triples(tuple(triple for block in blocks for triple in block.triples), span=span)


_LEAF = VAR | IRI | LITERAL | BLANK_NODE | EMPTY_BLANK_NODE
_TRIPLE_TERM = Forward()
_INSIDE = _LEAF | _TRIPLE_TERM
_TRIPLE_TERM <<= rule(OPEN_TERM + _INSIDE + VERB_SIMPLE + _INSIDE + CLOSE_TERM, _triple_term)
_REIFIER = rule(mark("~") + (VAR | IRI | BLANK_NODE | EMPTY_BLANK_NODE)[0, 1], _reifier)
_REIFIED = Forward()
_REIFIABLE = _INSIDE | _REIFIED
_REIFIED <<= rule(
    OPEN_REIFIED + _REIFIABLE + VERB_SIMPLE + _REIFIABLE + _REIFIER[0, 1] + mark(">>"), _reified
)


def _triples(verb: ParserElement) -> ParserElement:
    """The rule for a block of triples with predicates `verb`."""
    node, properties = Forward(), Forward()
    annotations = (_REIFIER | rule(mark("{|") + properties + mark("|}"), _Annotation))[...]
    objects = rule(verb + node + annotations + (mark(",") + node + annotations)[...], _Objects)
    properties <<= objects + (mark(";") + objects[0, 1])[...]
    term = _LEAF | NIL | _TRIPLE_TERM
    nested = (
        rule(mark("[") + properties + mark("]"), _property_list_node)
        | rule(mark("(") + node[1, ...] + mark(")"), _collection)
        | _REIFIED
    )
    node <<= term | nested
    same_subject = rule(term + properties, _same_subject) | rule(
        nested + properties[0, 1], _same_subject
    )
    return rule(same_subject + (mark(".") + same_subject)[...] + mark(".")[0, 1], _merged)


TRIPLES_BLOCK = _triples(VERB_PATH)
TRIPLES_TEMPLATE = _triples(VERB_SIMPLE)
