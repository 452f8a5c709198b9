"""Terminals of the grammar (SPARQL 1.1 section 19.8), and how rules make nodes out of them.

Every terminal reports where it failed and what a person would call it to the `Passage` being
parsed. The terminals that failed furthest to the right are what was expected there, which is what
an error message needs; pyparsing's own exception only knows the last alternative it tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyparsing import And, ParserElement, ParseResults, Regex, StringEnd

from spaseq.errors import Span
from spaseq.lang import ast, lexical
from spaseq.lang.syntax_errors import THE_END
from spaseq.lang.unresolved import RDF, XSD, PrefixedName, TypedLiteral, WrittenIri


class Passage(str):
    """A text being parsed that remembers the furthest place where a terminal failed there.

    pyparsing hands the text itself to every action, so a grammar that keeps its notes in the text
    has no state of its own and can be shared.
    """

    furthest: int = 0
    expected: frozenset[str] = frozenset()

    def note(self, place: int, name: str) -> None:
        """`name` was looked for at `place` and is not there."""
        if place > self.furthest:
            self.furthest, self.expected = place, frozenset()
        if place == self.furthest:
            self.expected |= {name}


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A bracket, operator or keyword that stands in the text but not in the AST."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Word:
    """A keyword or operator whose choice matters, in upper case, or a number or name."""

    text: str
    span: Span


def terminal(pattern: str, name: str, make: Callable[[str, Span], object]) -> ParserElement:
    """An element that matches a regular expression and is called `name` in error messages."""

    def act(text: str, place: int, tokens: ParseResults) -> object:
        return make(tokens[0], Span(place, place + len(tokens[0])))

    def fail(text: Passage, place: int, *_: object) -> None:
        text.note(place, name)

    matcher = pattern if pattern.isascii() else lexical.NamePattern(pattern)
    return Regex(matcher).set_parse_action(act).set_fail_action(fail)


def rule(element: ParserElement, make: Callable[..., object]) -> ParserElement:
    """`element`, with what it matched given to `make(span, *parts)`; marks are left out."""

    def act(text: str, place: int, tokens: ParseResults) -> object:
        found = tokens.as_list()
        span = Span(found[0].span.start, found[-1].span.end) if found else Span(place, place)
        return make(span, *(part for part in found if type(part) is not Punctuation))

    return element.set_parse_action(act)


def just(element: ParserElement) -> ParserElement:
    """A new element for `element` alone, so that a rule may be made of it."""
    return And([element])


def mark(text: str) -> ParserElement:
    """A punctuation mark that only gives structure."""
    return terminal(re.escape(text), f"'{text}'", Punctuation)


def keyword(word: str, name: str | None = None) -> ParserElement:
    """A keyword that only gives structure."""
    return terminal(rf"(?i:{word})(?![\w:])", name or word, Punctuation)


def words(*choices: str, name: str | None = None) -> ParserElement:
    """One of several keywords, kept in upper case."""
    longest_first = "|".join(sorted(choices, key=len, reverse=True))
    return terminal(rf"(?i:{longest_first})(?![\w:])", name or " or ".join(choices), upper_word)


def symbols(pattern: str, name: str) -> ParserElement:
    """One of several operator symbols, kept."""
    return terminal(pattern, name, Word)


def upper_word(text: str, span: Span) -> Word:
    return Word(text.upper(), span)


def whole(element: ParserElement) -> ParserElement:
    """`element` up to the end of the passage."""

    def fail(text: Passage, place: int, *_: object) -> None:
        text.note(place, THE_END)

    at_end = StringEnd().set_fail_action(fail)
    return (element + at_end).parse_with_tabs()  # else offsets would move, and the Passage go


# --- names -----------------------------------------------------------------------------------


def _prefixed_name(text: str, span: Span) -> PrefixedName:
    prefix, _, local = text.partition(":")
    return PrefixedName(prefix, re.sub(r"\\(.)", r"\1", local), span=span)


def _iri_reference(text: str, span: Span) -> ast.Iri:
    return ast.Iri(text[1:-1], span=span)


VAR = terminal(lexical.VARIABLE, "a variable", lambda text, span: ast.Var(text[1:], span=span))
IRI_REFERENCE = terminal(lexical.IRI_REF, "an IRI", _iri_reference)
IRI = IRI_REFERENCE | terminal(rf"{lexical.PREFIX}(?:{lexical.LOCAL})?", "an IRI", _prefixed_name)
NAMESPACE = terminal(rf"{lexical.PREFIX}(?!{lexical.LOCAL})", "a prefix with a colon", Word)
NAME = terminal(lexical.NAME, "a name", Word)

# --- literals --------------------------------------------------------------------------------


def _string(text: str, span: Span) -> Word:
    quote = 3 if text.startswith(('"""', "'''")) else 1
    inner = re.sub(r"\\(.)", lambda found: lexical.CHARACTERS[found[1]], text[quote:-quote])
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


STRING = terminal(lexical.STRING, "a string", _string)
LANGUAGE_TAG = terminal(lexical.LANGUAGE_TAG, "a language tag", Word)
RDF_LITERAL = rule(STRING + (LANGUAGE_TAG | mark("^^") + IRI)[0, 1], _literal)
NUMBER = (
    terminal(lexical.DOUBLE, "a number", _number("double"))
    | terminal(lexical.DECIMAL, "a number", _number("decimal"))
    | terminal(lexical.INTEGER, "a number", _number("integer"))
)
BOOLEAN = terminal(r"(?i:true|false)(?![\w:])", "true or false", _boolean)
LITERAL = RDF_LITERAL | NUMBER | BOOLEAN
INTEGER = terminal("[0-9]+", "a whole number", Word)
DATE_TIME = terminal(lexical.DATE_TIME, "a dateTime", Word)

# --- blank nodes -----------------------------------------------------------------------------


def anonymous(span: Span, part: int = 0) -> ast.BlankNode:
    """A blank node without a label, told apart by its place until labels are given out."""
    return ast.BlankNode(f"@{span.start}.{part}", span=span)


BLANK_NODE = terminal(
    lexical.BLANK_NODE, "a blank node", lambda text, span: ast.BlankNode(text[2:], span=span)
)
EMPTY_BLANK_NODE = terminal(r"\[\s*\]", "'['", lambda text, span: anonymous(span))
NIL = terminal(r"\(\s*\)", "'('", lambda text, span: ast.Iri(RDF + "nil", span=span))
EMPTY_BRACKETS = terminal(r"\(\s*\)", "'('", Punctuation)
