"""Advice on operators, negations and quantifiers of other languages."""

from __future__ import annotations

import re

from spaseq.errors import Span
from spaseq.lang.other_languages.advice import Advice, Place

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
        return _before_step(place)
    return _on_loop(place) or _after_step(place)


def _before_step(place: Place) -> Advice | None:
    if place.is_punct(0, "!", "~", "-"):
        return _named(place, place.advice(_NEGATED))
    return None


def _on_loop(place: Place) -> Advice | None:
    """The quantifiers of regular expressions and of FlinkCEP."""
    word = place.keyword()
    if place.is_punct(0, "?") and place.is_punct(-1, "+", "*", "?", "}"):
        return place.advice(_reluctant(place))
    if place.is_punct(0, ".") and place.keyword(1):
        inner = Place(place.text, place.lexemes, place.index + 1, place.start, place.expected,
                      place.where)  # fmt: skip
        text = _OPERATORS.get(place.keyword(1), _REPEATED)
        found = _named(inner, inner.advice(text), -2, 2)
        return Advice(Span(place.start, found.span.end), f".{found.written}", found.text)
    if place.is_punct(0, ",") and place.is_punct(-1, "{"):
        return place.advice("write {0,n} for up to n")
    if word in _LOOPS or (place.is_punct(0, "[") and place.keyword(-1)):
        return _named(place, place.advice(_REPEATED))
    return None


def _reluctant(place: Place) -> str:
    """What to write instead of a quantifier with `?` behind it."""
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
