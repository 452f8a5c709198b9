"""A total order of terms for MIN, MAX and ORDER BY (SPARQL 1.1 section 15.1).

First comes unbound, then blank nodes, IRIs, literals and triple terms. Literals of one kind are
ordered by value. The kinds have a fixed order: numbers (NaN first), strings, booleans, moments,
durations, language-tagged strings, literals of unknown value. Triple terms are ordered by subject,
then predicate, then object.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from spaseq.expr.temporal import MOMENT_KINDS, Duration, Moment
from spaseq.expr.values import BlankNodeValue, IriValue, LangString, Opaque, TripleTermValue, decode

_MONTH_SECONDS = 2_629_746  # the mean length of a month in the Gregorian calendar


def order_key(term: str | None) -> tuple[Any, ...]:
    """A key that sorts N-Triples texts (None: unbound) in SPARQL's order."""
    if term is None:
        return (0,)
    value = decode(term)
    match value:
        case BlankNodeValue(label):
            return 1, label
        case IriValue(iri):
            return 2, iri
        case bool():
            return 5, value
        case int() | float() | Decimal():
            return (3, 0) if value != value else (3, 1, value)
        case str():
            return 4, value
        case Moment():
            return 6, MOMENT_KINDS.index(value.kind), value.instant
        case Duration():
            return 7, value.months * _MONTH_SECONDS + int(value.seconds), value.seconds
        case LangString(text, language):
            return 8, text, language
        case Opaque(lexical, datatype):
            return 9, datatype, lexical
        case TripleTermValue(terms):
            return 10, *map(order_key, terms)
