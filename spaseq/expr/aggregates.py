"""Set functions over the values of a group variable, and the total order of terms for MIN, MAX and
ORDER BY.

See SPARQL 1.1 section 18.5.1 and docs/meaning.md#aggregates. Each takes the N-Triples texts of the
values in order, with None where the operand had an error, and returns an N-Triples text.

The order (SPARQL 1.1 section 15.1): first comes unbound, then blank nodes, IRIs, literals and
triple terms. Literals of one kind are ordered by value. The kinds have a fixed order: numbers (NaN
first), strings, booleans, moments, durations, language-tagged strings, literals of unknown value.
Triple terms are ordered by subject, then predicate, then object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from spaseq.budget import current_budget
from spaseq.expr import numbers, operators
from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.rdf_terms import lexical_form
from spaseq.expr.temporal import MOMENT_KINDS, Duration, Moment
from spaseq.expr.values import (
    BlankNodeValue,
    IriValue,
    LangString,
    Opaque,
    TripleTermValue,
    Value,
    decode,
    encode,
)
from spaseq.rdf.terms.term import CDT_LIST, list_lexical, literal_text

_MONTH_SECONDS = 2_629_746  # the mean length of a month in the Gregorian calendar

Elements = Sequence[str | None]


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


def _all_bound(elements: Elements) -> list[str]:
    bound = [e for e in elements if e is not None]
    if len(bound) != len(elements):
        raise ExpressionError("a value of the aggregate is an error")
    return bound


def _bound(elements: Elements) -> list[str]:
    bound = [e for e in elements if e is not None]
    if not bound:
        raise ExpressionError("the aggregate has no value")
    return bound


def _total(elements: Elements) -> Value:
    values = list(map(decode, _all_bound(elements)))
    if values and isinstance(values[0], Duration):
        return reduce(operators.add, values)
    zero: Any = 0
    result: Value = reduce(numbers.add, values, zero)
    return result


def count(elements: Elements) -> str:
    """COUNT: the number of elements without an error."""
    return encode(sum(e is not None for e in elements))


def total(elements: Elements) -> str:
    """SUM: 0 of no elements; an error if any element is one."""
    return encode(_total(elements))


def average(elements: Elements) -> str:
    """AVG: 0 of no elements; an error if any element is one."""
    return encode(operators.divide(_total(elements), len(elements)) if elements else 0)


def least(elements: Elements) -> str:
    """MIN in the order of ORDER BY, without errors; the first of equal terms."""
    return min(_bound(elements), key=order_key)


def greatest(elements: Elements) -> str:
    """MAX in the order of ORDER BY, without errors; the first of equal terms."""
    return max(_bound(elements), key=order_key)


def first(elements: Elements) -> str:
    """FIRST and SAMPLE: the first element without an error."""
    return _bound(elements)[0]


def last(elements: Elements) -> str:
    """LAST: the last element without an error."""
    return _bound(elements)[-1]


def as_list(elements: Elements) -> str:
    """LIST: a `cdt:List` literal; an error among the elements is `null`."""
    budget = current_budget()
    budget.literal(sum(len(element) for element in elements if element is not None))
    return literal_text(budget.text(list_lexical(elements)), CDT_LIST)


def group_concat(separator: str) -> Callable[[Elements], str]:
    """GROUP_CONCAT: STR of all elements, joined; an error if an element has no STR."""

    def combine(elements: Elements) -> str:
        texts = [lexical_form(element) for element in _all_bound(elements)]
        return literal_text(current_budget().joined(texts, separator))

    return combine


AGGREGATES: dict[str, Callable[[Elements], str]] = {
    "COUNT": count,
    "SUM": total,
    "AVG": average,
    "MIN": least,
    "MAX": greatest,
    "SAMPLE": first,
    "FIRST": first,
    "LAST": last,
    "LIST": as_list,
}
"""The set functions by name, except GROUP_CONCAT, which `group_concat` makes."""

WITHOUT_COLUMNS = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE"))
"""The set functions of a sub-SELECT that need no columns on a single event."""
