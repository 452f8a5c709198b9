"""Inline data: VALUES (SPARQL 1.2 section 19.8)."""

from __future__ import annotations

from pyparsing import Forward

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.paths import VERB_IRI
from spaseq.lang.grammar.rules import Word, just, keyword, mark, rule, words
from spaseq.lang.grammar.terminals import (
    CLOSE_TERM,
    EMPTY_BRACKETS,
    IRI,
    LITERAL,
    OPEN_TERM,
    VAR,
)
from spaseq.records import record


@record
class _Row:
    span: Span
    cells: tuple[ast.Iri | ast.Literal | ast.TripleTerm | None, ...]


def _row(span: Span, *cells: ast.Iri | ast.Literal | ast.TripleTerm | Word) -> _Row:
    return _Row(span, tuple(None if isinstance(cell, Word) else cell for cell in cells))


def _values(span: Span, *tokens: ast.Var | _Row) -> ast.Values:
    variables = tuple(token for token in tokens if isinstance(token, ast.Var))
    rows = tuple(token.cells for token in tokens if isinstance(token, _Row))
    return ast.Values(variables, rows, span=span)


def _term(span: Span, subject: ast.Iri, predicate: ast.Iri, object_: ast.Term) -> ast.TripleTerm:
    return ast.TripleTerm(subject, predicate, object_, span=span)


_TRIPLE_TERM = Forward()
_TRIPLE_TERM <<= rule(
    OPEN_TERM + IRI + VERB_IRI + (IRI | LITERAL | _TRIPLE_TERM) + CLOSE_TERM, _term
)
_CELL = IRI | LITERAL | _TRIPLE_TERM | words("UNDEF")
_ONE_VARIABLE = VAR + mark("{") + rule(just(_CELL), _row)[...] + mark("}")
_SEVERAL = (
    (EMPTY_BRACKETS | mark("(") + VAR[1, ...] + mark(")"))
    + mark("{")
    + rule(EMPTY_BRACKETS | mark("(") + _CELL[1, ...] + mark(")"), _row)[...]
    + mark("}")
)

INLINE_DATA = rule(keyword("VALUES") + (_ONE_VARIABLE | _SEVERAL), _values)
