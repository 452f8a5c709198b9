"""Advice on expressions of other languages."""

from __future__ import annotations

import re

from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.other_languages.advice import Advice, Place

_EXPRESSION_SIGNS = {
    "==": "write =",
    "<>": "write !=",
    "=<": "write <=",
    "=>": "write >=",
    "=~": 'write REGEX(?x, "...")',
}
_UNBOUND = "write BOUND(?x) or !BOUND(?x)"
_MATCHING = 'write REGEX(?x, "..."), CONTAINS(?x, "...") or STRSTARTS(?x, "...")'
_EXPRESSION_WORDS = {
    "AND": "write &&",
    "OR": "write ||",
    "IS": _UNBOUND,
    "NULL": _UNBOUND,
    "BETWEEN": "write ?x >= 1 && ?x <= 9",
    **dict.fromkeys(("LIKE", "RLIKE", "REGEXP", "SIMILAR"), _MATCHING),
}


def on_expression(place: Place) -> Advice | None:
    """Advice on an expression."""
    word = place.keyword()
    if word in _EXPRESSION_WORDS:
        return place.advice(_EXPRESSION_WORDS[word])
    sign = place.sign(_EXPRESSION_SIGNS)
    if sign is not None:
        return sign
    single = {"&": "write &&", "|": "write ||"}.get(place.text[place.start : place.start + 1])
    if single is not None and not re.search(r"[&|]{2}", place.text[place.start - 1 :][:3]):
        return place.advice(single)
    if place.is_punct(0, "~"):
        return place.advice(_MATCHING)
    if place.keyword(-1) == "NOT" and place.expected == {"EXISTS"}:
        return place.advice("write ! before a bracket: !(?x < ?y)", -1, -1)
    if place.is_punct(0, ",", ";") and "an operator" in place.expected:
        return place.advice("join conditions with &&")
    return on_bare_name(place)


def on_bare_name(place: Place) -> Advice | None:
    """Advice on `A.x`, or on `x` without its question mark."""
    word = place.keyword()
    if not word or "a variable" not in place.expected or place.is_punct(1, "("):
        return None
    if place.is_punct(1, "."):
        return _on_field(place)
    if word in ALL_FUNCTIONS:
        return None
    return place.advice(f"a variable begins with a question mark: write ?{place.name(0, 'x')}")


def _on_field(place: Place) -> Advice:
    """`A.x`, the field x of an event of A."""
    field = place.name(2, "x")
    last = 2 if place.keyword(2) else 1
    text = f"write ?{field}, and bind it in the GPM: a variable belongs to the whole query"
    return place.advice(text, 0, last)
