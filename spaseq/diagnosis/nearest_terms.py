"""Suggestions: the term nearest to one that never occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import cast

from spaseq.expr.numbers import Number, is_number, to_double
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.format_triples import TermText
from spaseq.rdf.terms.term import XSD_STRING, split_literal

_SIMILAR = 0.6
"""The least similarity (0 to 1) of a suggestion."""

_LOCAL = re.compile(r"[^/#:]*$")


def nearest_term(text: str, others: Mapping[str, int]) -> str | None:
    """The term most similar to one, among others with their counts; all are N-Triples texts.

    IRIs are compared by their last part, literals by value and lexical form. A term never suggests
    itself.

    >>> nearest_term("<http://e/avgSped>", {"<http://e/avgSpeed>": 3, "<http://e/street>": 3})
    '<http://e/avgSpeed>'
    """
    if text.startswith("<"):
        return _nearest_iri(text, [o for o in others if o.startswith("<") and o != text])
    return _nearest_literal(text, [o for o in others if o.startswith('"') and o != text])


def _nearest_iri(text: str, others: list[str]) -> str | None:
    return _most_alike(text, others, lambda iri: last_part(iri).lower())


def _nearest_literal(text: str, others: list[str]) -> str | None:
    value = number(text)
    if value is not None:
        numbers = {o: v for o in others if (v := number(o)) is not None}
        if numbers:
            return min(sorted(numbers), key=lambda o: (abs(numbers[o] - value), o))
    return _most_alike(text, others, lambda literal: split_literal(literal)[0].lower())


def _most_alike(text: str, others: list[str], form: Callable[[str], str]) -> str | None:
    """The most similar term among the terms with the most similar form."""
    of_form: dict[str, list[str]] = {}
    for other in others:
        of_form.setdefault(form(other), []).append(other)
    near = get_close_matches(form(text), of_form, n=1, cutoff=_SIMILAR)
    if not near:
        return None
    return max(sorted(of_form[near[0]]), key=lambda o: SequenceMatcher(None, text, o).ratio())


def nearest_variable(name: str, others: Iterable[str]) -> str | None:
    """The variable whose name is most similar to one, as written."""
    near = get_close_matches(name, sorted({*others} - {name}), n=1, cutoff=_SIMILAR)
    return f"?{near[0]}" if near else None


def number(text: str) -> float | None:
    """The value of a literal that looks like a number, also where it is a string."""
    try:
        return float(split_literal(text)[0]) if text.startswith('"') else None
    except ValueError:
        return None


def numeric(text: str) -> float | None:
    """The value of a number.

    >>> numeric('"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'), numeric('"1.5"')
    (1.5, None)
    """
    value = decode(text)
    return to_double(cast("Number", value)) if is_number(value) else None


def is_string(text: str) -> bool:
    """Whether a term is a plain string."""
    return text.startswith('"') and split_literal(text)[1] == XSD_STRING


def as_written(terms: TermText, text: str) -> str:
    """A term's N-Triples text with the prefixes of a query."""
    if text.startswith("<") and not text.startswith("<<"):
        return terms.iri(text[1:-1])
    if text.startswith('"'):
        lexical, datatype, language = split_literal(text)
        kind = None if datatype == XSD_STRING or language else datatype
        return terms.literal(ast.Literal(lexical, kind, language))
    return text


def last_part(iri: str) -> str:
    """The last part of an IRI's text.

    >>> last_part("<http://e/a#b>")
    'b'
    """
    match = _LOCAL.search(iri.rstrip(">"))
    return match.group() if match else ""
