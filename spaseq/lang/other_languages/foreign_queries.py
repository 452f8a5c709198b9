"""Finds another language's syntax in a query.

A parse fails at the first lexeme that the grammar does not know. If that lexeme is part of another
language's construct, the message names the construct and what says the same here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from spaseq.errors import Span
from spaseq.lang.other_languages.advice import Advice, Place
from spaseq.lang.other_languages.foreign_clauses import (
    on_clause,
    on_declaration,
    on_select,
    on_window,
)
from spaseq.lang.other_languages.foreign_expressions import on_expression
from spaseq.lang.other_languages.foreign_sequences import on_sequence
from spaseq.lang.other_languages.foreign_terms import on_iri, on_name, on_turtle
from spaseq.lang.scan import Lexeme


def advice_on(place: Place) -> Advice | None:
    """Advice on another language's syntax at a place; None if it is none that we know."""
    if found := on_iri(place) or on_turtle(place):
        return found
    if "GPM" not in place.where and (found := on_clause(place)):
        return found
    if place.where == "the sequence":
        return on_sequence(place)
    if place.where == "the WITHIN clause":
        return on_window(place)
    if place.where == "the SELECT clause" and (found := on_select(place)):
        return found
    if place.expected & {"an operator", "a function"} or place.expected in (
        {"EXISTS"},
        {"IN"},
        {"a variable"},
    ):
        return on_expression(place)
    if "GPM" in place.where and (found := on_name(place)):
        return found
    return on_declaration(place)


# --- whole queries -------------------------------------------------------------------------------

_PATTERN = "write SEQ(A, B+) in the braces of WHERE, with an operator between the steps"
_INSTEAD_OF_SEQ = {
    "MATCH_RECOGNIZE": (
        "there is no MATCH_RECOGNIZE: write SELECT ... WITHIN ... PARTITION BY ... FROM STREAM ..."
        " WHERE { SEQ(A, B+) DEFINE GPM A ON S { ... } DEFINE GPM B ON S { ... } }"
    ),
    "PATTERN": f"there is no PATTERN: {_PATTERN}",
    "EVENT": f"there is no EVENT: {_PATTERN}",
}


def foreign_query(lexemes: Sequence[Lexeme]) -> Advice | None:
    """Advice on a query of SQL's MATCH_RECOGNIZE or of RSP-QL, which is not read any further."""
    return _called(lexemes, "MATCH_RECOGNIZE") or _rsp_query(lexemes)


def _rsp_query(lexemes: Sequence[Lexeme]) -> Advice | None:
    """Advice on windows of RSP-QL or C-SPARQL, where no sequence is asked for."""
    if any(lexeme.keyword == "SEQ" for lexeme in lexemes):
        return None
    for lexeme, following in pairwise(lexemes):
        named = (lexeme.keyword, following.keyword) == ("NAMED", "WINDOW")
        if named or (lexeme.is_punct("[") and following.keyword == "RANGE"):
            text = "this is RSP-QL or C-SPARQL: spaseq translate FILE prints what says the same"
            return Advice(Span(lexeme.span.start, following.span.end), lexeme.text, text)
    return None


def instead_of_sequence(lexemes: Sequence[Lexeme]) -> Advice | None:
    """Advice on what stands in the place of SEQ."""
    return _called(lexemes, "PATTERN") or _called(lexemes, "EVENT")


def foreign_window(lexemes: Sequence[Lexeme]) -> bool:
    """Whether another word stands in the place of WITHIN; `advice_on` says what to write."""
    if any((a.keyword, b.keyword) == ("FROM", "WINDOW") for a, b in pairwise(lexemes)):
        return False
    words = ("WINDOW", "RANGE")
    return any(a.keyword in words and b.kind == "number" for a, b in pairwise(lexemes))


def _called(lexemes: Sequence[Lexeme], word: str) -> Advice | None:
    for lexeme, following in pairwise(lexemes):
        if lexeme.keyword == word and following.is_punct("("):
            return Advice(lexeme.span, lexeme.text, _INSTEAD_OF_SEQ[word])
    return None
