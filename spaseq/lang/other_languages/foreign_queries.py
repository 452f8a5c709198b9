"""Finds another language's syntax in a query: in clauses, declarations, and sequences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from spaseq.errors import Span
from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.other_languages.foreign_expressions import (
    Advice,
    Place,
    on_bare_name,
    on_expression,
    on_iri,
    on_name,
    on_turtle,
)
from spaseq.lang.scan import Lexeme
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
    "ASK": "write SELECT: each match is one answer",
    "DESCRIBE": "write CONSTRUCT { ... }: each match gives one graph",
    "EMIT": "an answer is given as soon as it is certain",
    "WINDOW": "write WITHIN 5 MINUTES",
    "RANGE": "write WITHIN 5 MINUTES",
}


OTHER_FORMS = (_CLAUSES["ASK"], _CLAUSES["DESCRIBE"])
"""The advice on forms of a query that spaseq does not have."""


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
        lexeme, word = place.lexeme(), place.keyword()
        text = "write FROM STREAM S <iri>, with a name for the stream"
        if (place.keyword(-1), word) == ("NAMED", "STREAM"):
            return place.advice(text, -1, 0)
        if lexeme and lexeme.kind == "iri" and place.keyword(-1) != "STREAM":
            return place.advice(f"{text}, or FROM NAMED <iri> for a graph of the knowledge base")
        known = place.keyword(-1) == "NAMED" or nearest(word, ["STREAM", "NAMED"])
        if lexeme and (lexeme.kind == "iri" or (word and not known) or lexeme.text == "["):
            return place.advice(text)
        return None
    if place.where == "the PARTITION BY clause" and place.keyword():
        return place.advice("name a variable that every GPM binds: PARTITION BY (?x)")
    return None


_NEXT = "write `{0}; {1}` (the next that matches) or `{0}, {1}` (strictly next)"
_ANY = "write `{0}: {1}` (every later one that matches)"
_STRICT = "write `{0}, {1}` (strictly next)"
_BOTH = "write `({0} & {1})` (at the same time) or `({0} AND {1})` (in any order), in a bracket"
_EITHER = "write `({0} | {1})`, in a bracket"
_NEGATED = "the sign of a negated step stands behind it: write `{1}!`"
_BETWEEN = "write `{0}; {1}!` for what must not follow"
_REPEATED = "write `{0}+` (once or more), `{0}*`, `{0}?` or `{0}{{2,5}}`"

_SIGNS = {"-->": _NEXT, "->": _NEXT, "=>": _NEXT, ">>": _NEXT, "&&": _BOTH, "||": _EITHER}
_OPERATORS = {
    **dict.fromkeys(("FOLLOWEDBY", "FOLLOWED BY", "THEN"), _NEXT),
    **dict.fromkeys(("FOLLOWEDBYANY", "FOLLOWED BY ANY"), _ANY),
    "NEXT": _STRICT,
    "OR": _EITHER,
    **dict.fromkeys(("NOT", "NOT FOLLOWED BY", "NOTFOLLOWEDBY", "NOTNEXT", "NOT NEXT"), _BETWEEN),
}
_PREFIXES = {
    "NOT": _NEGATED,
    **dict.fromkeys(("NOTFOLLOWEDBY", "NOTNEXT"), _NEGATED),
    "EVERY": "leave EVERY out: every event may begin a match",
    "PATTERN": "leave PATTERN out, and put an operator between the steps: SEQ(A, B+)",
    "BEGIN": "write the steps in order: SEQ(A; B)",
}
_UNTIL = "UNTIL stands behind a loop: write `{0}+ UNTIL {1}`"
_LOOPS = ("TIMES", "ONEORMORE", "TIMESORMORE", "ZEROORMORE", "OPTIONAL")


def on_sequence(place: Place) -> Advice | None:
    """Advice on the sequence."""
    sign = place.sign(_SIGNS)
    if sign is not None:
        return _named(place, sign)
    if "the name of a GPM" in place.expected:
        if place.is_punct(0, "!", "~", "-"):
            return _named(place, place.advice(_NEGATED))
        return None
    return _on_loop(place) or _after_step(place)


def _on_loop(place: Place) -> Advice | None:
    """The quantifiers of regular expressions and of FlinkCEP."""
    word = place.keyword()
    if place.is_punct(0, "?") and place.is_punct(-1, "+", "*", "?", "}"):
        return place.advice(_reluctant(place))
    if place.is_punct(0, ".") and place.keyword(1):
        inner = Place(place.text, place.lexemes, place.index + 1, place.start, place.expected,
                      place.where)  # fmt: skip
        text = _OPERATORS.get(place.keyword(1), _REPEATED)
        advice = _named(inner, inner.advice(text), -2, 2)
        return Advice(Span(place.start, advice.span.end), f".{advice.written}", advice.text)
    if place.is_punct(0, ",") and place.is_punct(-1, "{"):
        return place.advice("write {0,n} for up to n")
    if word in _LOOPS or (place.is_punct(0, "[") and place.keyword(-1)):
        return _named(place, place.advice(_REPEATED))
    return None


def _reluctant(place: Place) -> str:
    """The replacement of a quantifier with `?` behind it."""
    first = next((i for i in range(-1, -7, -1) if not place.is_punct(-1, "}")
                  or place.is_punct(i, "{")), -1)  # fmt: skip
    name = place.name(first - 1, "B")
    begin, end = place.lexeme(first), place.lexeme(-1)
    bounds = place.text[begin.span.start : end.span.end] if begin and end else "+"
    least = re.search(r"[0-9]+", bounds)
    shortest = least[0] if least else str(int(bounds == "+"))
    only = f"`{name}{{{shortest}}}`" if int(shortest) else f"no {name} at all"
    return (
        "there are no reluctant loops, because shorter repetitions are answers too: write"
        f" `{name}{bounds}` for all lengths, {only} for the shortest"
    )


def _after_step(place: Place) -> Advice | None:
    word = place.keyword()
    before = place.keyword(-1)
    for count in (3, 2, 1):
        words = " ".join(place.keyword(i) for i in range(count))
        if words in _OPERATORS:
            return _named(place, place.advice(_OPERATORS[words], 0, count - 1), after=count)
    if word == "UNTIL":
        return _named(place, place.advice(_UNTIL), after=1)
    if before in _PREFIXES and (word or place.is_punct(0, "(")):
        advice = place.advice(_PREFIXES[before], -1, 0 if before == "NOT" else -1)
        return _named(place, advice, after=0)
    if word == "WHERE":
        return place.advice("conditions are FILTERs in the GPMs")
    if (word or place.is_punct(0, "(")) and word != "AND":
        return _named(place, place.advice(f"steps need an operator between them: {_NEXT}"),
                      after=0)  # fmt: skip
    return None


def _named(place: Place, advice: Advice, before: int = -1, after: int | None = None) -> Advice:
    """The advice with the names of the steps around it, as far as they are single names."""
    if after is None:
        ends = (i for i, x in enumerate(place.lexemes) if x.span.start >= advice.span.end)
        after = next(ends, len(place.lexemes)) - place.index
        starts = [i for i, x in enumerate(place.lexemes) if x.span.end <= advice.span.start]
        before = (starts[-1] if starts else -1) - place.index
    first = place.name(before, "A")
    second = place.name(after, "C" if first == "B" else "B")
    return Advice(advice.span, advice.written, advice.text.format(first, second))


def advice_on(place: Place) -> Advice | None:
    """Advice on another language's syntax at a place; None if it is none that we know."""
    if advice := on_iri(place) or on_turtle(place):
        return advice
    if "GPM" not in place.where and (advice := on_clause(place)):
        return advice
    if place.where == "the sequence":
        return on_sequence(place)
    if place.where == "the WITHIN clause":
        return on_window(place)
    if place.where == "the SELECT clause" and (advice := on_select(place)):
        return advice
    if place.expected & {"an operator", "a function"} or place.expected in (
        {"EXISTS"},
        {"IN"},
        {"a variable"},
    ):
        return on_expression(place)
    if "GPM" in place.where and (advice := on_name(place)):
        return advice
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
    """Advice on a query of SQL's MATCH_RECOGNIZE or of RSP-QL, or on several queries, which are not
    read any further.
    """
    starts = [a for a, b in pairwise(lexemes) if a.keyword == "SEQ" and b.is_punct("(")]
    if len(starts) > 1:
        text = "a second SEQ: a query has one SEQ, and a file has one query"
        return Advice(starts[1].span, starts[1].text, text)
    return _called(lexemes, "MATCH_RECOGNIZE") or _rsp_query(lexemes)


def _rsp_query(lexemes: Sequence[Lexeme]) -> Advice | None:
    """Advice on windows of RSP-QL or C-SPARQL, in a query without a sequence."""
    if any(lexeme.keyword == "SEQ" for lexeme in lexemes):
        return None
    for lexeme, following in pairwise(lexemes):
        named = (lexeme.keyword, following.keyword) == ("NAMED", "WINDOW")
        if named or (lexeme.is_punct("[") and following.keyword == "RANGE"):
            text = "this is RSP-QL or C-SPARQL: spaseq translate FILE prints what says the same"
            return Advice(Span(lexeme.span.start, following.span.end), lexeme.text, text)
    return None


def instead_of_sequence(lexemes: Sequence[Lexeme]) -> Advice | None:
    """Advice on a clause in the place of SEQ."""
    return _called(lexemes, "PATTERN") or _called(lexemes, "EVENT")


def foreign_window(lexemes: Sequence[Lexeme]) -> bool:
    """Whether another word is in the place of WITHIN; `advice_on` has the replacement."""
    if any((a.keyword, b.keyword) == ("FROM", "WINDOW") for a, b in pairwise(lexemes)):
        return False
    words = ("WINDOW", "RANGE")
    return any(a.keyword in words and b.kind == "number" for a, b in pairwise(lexemes))


def _called(lexemes: Sequence[Lexeme], word: str) -> Advice | None:
    for lexeme, following in pairwise(lexemes):
        if lexeme.keyword == word and following.is_punct("("):
            return Advice(lexeme.span, lexeme.text, _INSTEAD_OF_SEQ[word])
    return None
