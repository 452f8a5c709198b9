"""Advice on terms: IRIs without brackets, names without prefixes, Turtle's own directives."""

from __future__ import annotations

import re

from spaseq.errors import Span
from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.other_languages.advice import Advice, Place
from spaseq.lang.spelling import nearest

_IRI = re.compile(r"\b(?:https?|urn|ftp|file)://[^\s<>\"{}|^`]*")
_LONGEST = 200
_KEYWORDS = ("FILTER", "OPTIONAL", "MINUS", "GRAPH", "SERVICE", "BIND", "VALUES", "UNION", "EXISTS")


def on_iri(place: Place) -> Advice | None:
    """Advice on an IRI without angle brackets."""
    for found in _IRI.finditer(place.text, max(0, place.start - _LONGEST)):
        if found.start() > place.start:
            return None
        if place.start < found.end():
            written = found[0].rstrip(".;,)")
            span = Span(found.start(), found.start() + len(written))
            return Advice(span, written, f"put the IRI into angle brackets: <{written}>")
    return None


def on_turtle(place: Place) -> Advice | None:
    """Advice on `@prefix` and `@base`."""
    lexeme = place.lexeme()
    word = lexeme.text.lower() if lexeme else ""
    if word in ("@prefix", "@base"):
        keyword = word[1:].upper()
        return place.advice(f"write {keyword} without the @, and no dot at the end of the line")
    return None


def on_name(place: Place) -> Advice | None:
    """Advice on a word where a term or a predicate is expected."""
    word = place.keyword()
    if word == "WHERE":
        return place.advice("conditions are FILTERs: write FILTER(?x > 1)")
    if not word or word in ALL_FUNCTIONS or nearest(word, _KEYWORDS, at_least=0.7):
        return None
    name = place.name(0, "x")
    if "'a'" in place.expected:
        return place.advice(f"a name has a prefix: write :{name}")
    if "an IRI" in place.expected and "a variable" in place.expected:
        return place.advice(f"write ?{name} for a variable, or :{name} for a name of the data")
    return None
