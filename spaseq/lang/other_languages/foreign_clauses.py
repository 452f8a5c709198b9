"""Advice on clauses of other languages: before the sequence, and in declarations."""

from __future__ import annotations

from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.other_languages.advice import Advice, Place
from spaseq.lang.other_languages.foreign_expressions import on_bare_name
from spaseq.lang.spelling import nearest

_BOUND = (
    "a query has no LIMIT, because a stream has no end; the option --limit-per-event N bounds the"
    " answers of one instant"
)
_ORDER = "answers come in the order of their ends, always"
_PARTITION = (
    "write PARTITION BY (?x) after WITHIN; aggregates range over the repetitions of one match"
)
_NO_ROWS = "write the values in SELECT: every match is one answer"
_CLAUSES = {
    "LIMIT": _BOUND,
    "OFFSET": _BOUND,
    "TOP": _BOUND,
    "FETCH": _BOUND,
    "ORDER BY": _ORDER,
    "GROUP BY": _PARTITION,
    "KEY BY": _PARTITION,
    "MEASURES": _NO_ROWS,
    "ONE ROW": _NO_ROWS,
    "ALL ROWS": _NO_ROWS,
    "EMIT": "an answer is given as soon as it is certain",
    "WINDOW": "write WITHIN 5 MINUTES",
    "RANGE": "write WITHIN 5 MINUTES",
}


def on_clause(place: Place) -> Advice | None:
    """Advice on a clause that spaseq does not have."""
    word, following = place.keyword(), place.keyword(1)
    if f"{word} {following}" in _CLAUSES:
        return place.advice(_CLAUSES[f"{word} {following}"], 0, 1)
    if word in _CLAUSES and not place.is_punct(1, "("):
        return place.advice(_CLAUSES[word])
    return None


_UNITS = {
    **dict.fromkeys(("MS", "MSEC", "MSECS", "MILLI", "MILLIS"), "MILLISECONDS"),
    **dict.fromkeys(("S", "SEC", "SECS"), "SECONDS"),
    **dict.fromkeys(("M", "MIN", "MINS"), "MINUTES"),
    **dict.fromkeys(("H", "HR", "HRS"), "HOURS"),
    "D": "DAYS",
    **dict.fromkeys(("ROW", "ROWS"), "EVENTS"),
}


def on_window(place: Place) -> Advice | None:
    """Advice on the WITHIN clause."""
    shown = place.text[place.start : place.start + 1] and place.lexeme()
    word = place.text[place.start : shown.span.end].upper() if shown else ""
    if "a unit of time" in place.expected and word in _UNITS:
        return place.advice(f"write {_UNITS[word]}")
    if "a unit of time" in place.expected and word.startswith("."):
        return place.advice("write a whole number, in a smaller unit")
    if word in ("SLIDING", "SLIDE", "HOPPING", "HOP"):
        return place.advice("leave it out: a window slides unless TUMBLING is written")
    if "a whole number" in place.expected and word not in (*_UNITS.values(), *_UNITS):
        return place.advice("write a number and a unit, as in WITHIN 5 MINUTES")
    return None


def on_select(place: Place) -> Advice | None:
    """Advice on the SELECT clause."""
    word = place.keyword()
    if word == "AS":
        variable, alias = place.lexeme(-1), place.lexeme(1)
        if variable and alias and variable.kind == alias.kind == "var":
            return place.advice(f"write ({variable.text} AS {alias.text})")
        return place.advice(f"put the expression and AS into brackets: {_NAMED}")
    if place.is_punct(0, ","):
        return place.advice("SELECT has no commas: write SELECT ?x ?y")
    if place.is_punct(0, ")") and "AS" in place.expected:
        return _on_nameless(place)
    if place.is_punct(0, "+", "-", "*", "/") and "a variable" in place.expected:
        return place.advice(f"put an expression into brackets, with a name: {_NAMED}")
    if word in ALL_FUNCTIONS and "a selection strategy" not in place.expected:
        return place.advice(f"write ({word}(...) AS ?name)")
    if "'('" in place.expected:
        return on_bare_name(place)
    return None


_NAMED = "(?x + 1 AS ?name)"


def _on_nameless(place: Place) -> Advice:
    """An expression in brackets without AS, or `LAST(?x)`, whose LAST is a selection strategy."""
    at, depth = 0, 0
    while place.lexeme(at) and (at == 0 or depth):
        depth += place.is_punct(at, ")") - place.is_punct(at, "(")
        at -= 1
    opening, word = place.lexeme(at + 1), place.keyword(at)
    inside = place.text[opening.span.start + 1 : place.start] if opening else "?x"
    expression = f"{word}({inside})" if word in ALL_FUNCTIONS else inside
    return place.advice(f"give the expression a name: ({expression} AS ?name)")


def on_declaration(place: Place) -> Advice | None:
    """Advice on DEFINE, FROM, PARTITION BY and AFTER MATCH."""
    expected = place.expected
    if expected == {"GPM"} and place.keyword(1) == "ON":
        return place.advice(f"write DEFINE GPM {place.name(0, 'A')}")
    if expected == {"GPM"} and not nearest(place.keyword(), ["GPM"]):
        return place.advice("write DEFINE GPM A ON S { ... }, with the conditions as FILTERs")
    if "EVENT" in expected and place.keyword() in ("ROW", "ROWS"):
        return place.advice("write EVENT")
    if place.where == "the FROM clause":
        return _on_stream(place)
    if place.where == "the PARTITION BY clause" and place.keyword():
        return place.advice("name a variable that every GPM binds: PARTITION BY (?x)")
    return None


def _on_stream(place: Place) -> Advice | None:
    lexeme, word = place.lexeme(), place.keyword()
    text = "write FROM STREAM S <iri>, with a name for the stream"
    if (place.keyword(-1), word) == ("NAMED", "STREAM"):
        return place.advice(text, -1, 0)
    known = place.keyword(-1) == "NAMED" or nearest(word, ["STREAM", "NAMED"])
    if lexeme and (lexeme.kind == "iri" or (word and not known) or lexeme.text == "["):
        return place.advice(text)
    return None
