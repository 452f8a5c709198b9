"""Grammar rules that make nodes and report the expected tokens after an error, and terminals
(SPARQL 1.1 section 19.8, productions 139-173).
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable

from pyparsing import And, ParserElement, ParseResults, Regex, StringEnd

from spaseq.errors import Span
from spaseq.lang import ast, lexical
from spaseq.lang.names import RDF, XSD, PrefixedName, TypedLiteral, WrittenIri
from spaseq.lang.syntax_errors import THE_END
from spaseq.records import record


class Passage(str):
    """A text to parse that remembers the furthest place where a terminal failed.

    pyparsing passes the text to every action. The grammar keeps its notes in the text and so has no
    state: all parses can share it.
    """

    furthest: int = 0
    expected: frozenset[str] = frozenset()

    def note(self, place: int, name: str) -> None:
        """Record that the terminal `name` failed at `place`."""
        if place > self.furthest:
            self.furthest, self.expected = place, frozenset()
        if place == self.furthest:
            self.expected |= {name}


@record
class Punctuation:
    """A bracket, operator or keyword that is in the text but not in the AST."""

    text: str
    span: Span


@record
class Word:
    """A keyword or operator that the AST depends on, in upper case; or a number or name."""

    text: str
    span: Span


class Terminal(Regex):  # type: ignore[misc]
    """A regular expression that makes a node; see `terminal`."""

    def __init__(
        self, pattern: str, name: str, make: Callable[[str, Span], object], begins: Iterable[str]
    ) -> None:
        super().__init__(pattern if pattern.isascii() else lexical.NamePattern(pattern))
        self.mayReturnEmpty = False  # else pyparsing compiles the expression now to find out
        self.written, self.make, self.begins = pattern, make, frozenset(begins)

        def act(text: str, place: int, tokens: ParseResults) -> object:
            return make(tokens[0], Span(place, place + len(tokens[0])))

        def fail(text: Passage, place: int, *_: object) -> None:
            text.note(place, name)

        self.set_name(name).set_parse_action(act).set_fail_action(fail)


def terminal(
    pattern: str, name: str, make: Callable[[str, Span], object], begins: Iterable[str]
) -> ParserElement:
    """An element that matches a regular expression; error messages call it `name`.

    The expression must not match the empty text. `begins` has the possible first ASCII characters
    of a match.
    """
    return Terminal(pattern, name, make, begins)


def rule(
    element: ParserElement, make: Callable[..., object], keeps_one: bool = False
) -> ParserElement:
    """`element` as a rule that makes a node.

    The rule calls `make(span, *nodes)` with the nodes of `element`, without punctuation. With
    `keeps_one`, `make` returns a single node unchanged, and need not be called for it.
    """

    def act(text: str, place: int, tokens: ParseResults) -> object:
        nodes = tokens.as_list()
        span = Span(nodes[0].span.start, nodes[-1].span.end) if nodes else Span(place, place)
        return make(span, *(node for node in nodes if type(node) is not Punctuation))

    element.make, element.keeps_one = make, keeps_one
    # Without a name, pyparsing writes out the whole element, at any depth, whenever it is used.
    return element.set_name(make.__name__).set_parse_action(act)


def just(element: ParserElement) -> ParserElement:
    """A new element that matches `element`, for a rule that must not change `element`."""
    return And([element])


def mark(text: str) -> ParserElement:
    """A punctuation mark that makes no node."""
    return terminal(re.escape(text), f"'{text}'", Punctuation, text[0])


def keyword(word: str, name: str | None = None) -> ParserElement:
    """A keyword that makes no node; `word` is a regular expression."""
    return terminal(rf"(?i:{word})(?![\w:])", name or word, Punctuation, _initials(word))


def words(*choices: str, name: str | None = None) -> ParserElement:
    """One of several keywords, as a `Word`."""
    longest_first = "|".join(sorted(choices, key=len, reverse=True))
    pattern = rf"(?i:{longest_first})(?![\w:])"
    return terminal(pattern, name or " or ".join(choices), upper_word, _initials(*choices))


def _initials(*choices: str) -> str:
    return "".join(word[0].upper() + word[0].lower() for word in choices)


def symbols(pattern: str, name: str, begins: str) -> ParserElement:
    """One of several operator symbols, as a `Word`."""
    return terminal(pattern, name, Word, begins)


def upper_word(text: str, span: Span) -> Word:
    """A `Word` in upper case."""
    return Word(text.upper(), span)


def whole(element: ParserElement) -> ParserElement:
    """`element` up to the end of the passage."""

    def fail(text: Passage, place: int, *_: object) -> None:
        text.note(place, THE_END)

    at_end = StringEnd().set_fail_action(fail)
    # Expanding tabs would move the offsets and replace the Passage by a plain string.
    return (element + at_end).parse_with_tabs()


# --- names -----------------------------------------------------------------------------------


def _prefixed_name(text: str, span: Span) -> PrefixedName:
    prefix, _, local = text.partition(":")
    if "\\" in local:
        local = re.sub(r"\\(.)", r"\1", local)
    return PrefixedName(prefix, local, span=span)


def _iri_reference(text: str, span: Span) -> ast.Iri:
    return ast.Iri(text[1:-1], span=span)


_LETTERS, _DIGITS = string.ascii_letters, string.digits
INITIALS = _LETTERS + "_"
"""The first characters of names."""

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
    """A blank node without a label; its position, and the cell of its list, replace the label."""
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
