"""Property paths (SPARQL 1.1 section 19.8, productions 88-96)."""

from __future__ import annotations

import re

from pyparsing import Forward, ParserElement

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.rules import Punctuation, Word, mark, rule, symbols, terminal
from spaseq.lang.grammar.terminals import EMPTY_BRACKETS, IRI, VAR
from spaseq.lang.unresolved import RDF, WrittenIri

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
_ELEMENT = rule(_PRIMARY + _MODIFIER[0, 1], _repeat)
_STEP = _ELEMENT | rule(mark("^") + _ELEMENT, _inverse)

PATH <<= rule(_separated(rule(_separated(_STEP, "/"), _sequence), "|"), _alternative)

VERB_PATH = VAR | PATH
VERB_SIMPLE = VAR | VERB_IRI
