"""Terminals of the grammar (SPARQL 1.1 section 19.8, productions 139-173)."""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from spaseq.errors import Span
from spaseq.lang import ast, lexical
from spaseq.lang.grammar.rules import Punctuation, Word, mark, rule, terminal
from spaseq.lang.unresolved import RDF, XSD, PrefixedName, TypedLiteral, WrittenIri

# --- names -----------------------------------------------------------------------------------


def _prefixed_name(text: str, span: Span) -> PrefixedName:
    prefix, _, local = text.partition(":")
    return PrefixedName(prefix, re.sub(r"\\(.)", r"\1", local), span=span)


def _iri_reference(text: str, span: Span) -> ast.Iri:
    return ast.Iri(text[1:-1], span=span)


_LETTERS, _DIGITS = string.ascii_letters, string.digits
INITIALS = _LETTERS + "_"
"""What names begin with."""

VAR = terminal(
    lexical.VARIABLE, "a variable", lambda text, span: ast.Var(text[1:], span=span), "?$"
)
IRI_REFERENCE = terminal(lexical.IRI_REF, "an IRI", _iri_reference, "<")
IRI = IRI_REFERENCE | terminal(
    rf"{lexical.PREFIX}(?:{lexical.LOCAL})?", "an IRI", _prefixed_name, _LETTERS + ":"
)
NAMESPACE = terminal(
    rf"{lexical.PREFIX}(?!{lexical.LOCAL})", "a prefix with a colon", Word, _LETTERS + ":"
)
NAME = terminal(lexical.NAME, "a name", Word, INITIALS)

# --- literals --------------------------------------------------------------------------------


def _string(text: str, span: Span) -> Word:
    quote = 3 if text.startswith(('"""', "'''")) else 1
    inner = re.sub(r"\\(.)", lambda escape: lexical.CHARACTERS[escape[1]], text[quote:-quote])
    return Word(inner, span)


def _number(datatype: str) -> Callable[[str, Span], ast.Literal]:
    return lambda text, span: ast.Literal(text, XSD + datatype, span=span)


def _boolean(text: str, span: Span) -> ast.Literal:
    return ast.Literal(text.lower(), XSD + "boolean", span=span)


def _literal(
    span: Span, lexical_form: Word, annotation: Word | WrittenIri | None = None
) -> ast.Literal | TypedLiteral:
    match annotation:
        case None:
            return ast.Literal(lexical_form.text, span=span)
        case Word(tag):
            return ast.Literal(lexical_form.text, language=tag[1:].lower(), span=span)
        case datatype:
            return TypedLiteral(lexical_form.text, datatype, span=span)


STRING = terminal(lexical.STRING, "a string", _string, "\"'")
LANGUAGE_TAG = terminal(lexical.LANGUAGE_TAG, "a language tag", Word, "@")
RDF_LITERAL = rule(STRING + (LANGUAGE_TAG | mark("^^") + IRI)[0, 1], _literal)
NUMBER = (
    terminal(lexical.DOUBLE, "a number", _number("double"), "+-." + _DIGITS)
    | terminal(lexical.DECIMAL, "a number", _number("decimal"), "+-." + _DIGITS)
    | terminal(lexical.INTEGER, "a number", _number("integer"), "+-" + _DIGITS)
)
BOOLEAN = terminal(r"(?i:true|false)(?![\w:])", "true or false", _boolean, "tTfF")
LITERAL = RDF_LITERAL | NUMBER | BOOLEAN
INTEGER = terminal(  # no one needs more digits
    "[0-9]{1,100}(?![0-9])", "a whole number", Word, _DIGITS
)
SHORT_STRING = terminal(lexical.SHORT_STRING, "a version in quotes", _string, "\"'")
DATE_TIME = terminal(lexical.DATE_TIME, "a dateTime", Word, "-" + _DIGITS)

# --- blank nodes -----------------------------------------------------------------------------


def anonymous(span: Span, cell: int = 0) -> ast.BlankNode:
    """A blank node without a label; its place, and the cell of its list, stand for the label."""
    return ast.BlankNode(f"@{span.start}.{cell}", span=span)


BLANK_NODE = terminal(
    lexical.BLANK_NODE, "a blank node", lambda text, span: ast.BlankNode(text[2:], span=span), "_"
)
EMPTY_BLANK_NODE = terminal(r"\[\s*\]", "'['", lambda text, span: anonymous(span), "[")
NIL = terminal(r"\(\s*\)", "'('", lambda text, span: ast.Iri(RDF + "nil", span=span), "(")
EMPTY_BRACKETS = terminal(r"\(\s*\)", "'('", Punctuation, "(")

# --- triple terms ----------------------------------------------------------------------------

OPEN_TERM, CLOSE_TERM = mark("<<("), mark(")>>")
OPEN_REIFIED = terminal(r"<<(?!\()", "'<<'", Punctuation, "<")
