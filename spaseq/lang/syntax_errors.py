"""Turns a failed parse into a message that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spaseq.errors import Span
from spaseq.lang.brackets import CLOSING, unclosed
from spaseq.lang.findings import Findings
from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.scan import Lexeme
from spaseq.lang.spelling import nearest

THE_END = "the end"  # what the grammar calls the end of a section
UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")

_VOCABULARY = {
    "a function": ALL_FUNCTIONS,
    "a unit of time": frozenset(UNITS),
    "a selection strategy": frozenset({"ALL", "NEXT", "LAST", "MAX", "STRICT"}),
}
_TERM = frozenset({"a variable", "an IRI", "a string", "a number", "true or false"})
_NODE = _TERM | {"a blank node", "'['", "'('"}
_VERB = frozenset({"an IRI", "'a'", "'^'", "'!'", "'('"})
# What belongs together is said in one word: (all of these, which stand for these, are called so).
_TOGETHER = (
    (
        _TERM | {"a function"},
        _TERM | {"a function", "EXISTS", "NOT EXISTS", "'('", "'!'"},
        "an expression",
    ),
    (_NODE | {"FILTER"}, _NODE, "a triple pattern"),
    (_NODE, _NODE, "a term"),
    (_VERB, _VERB | {"a variable"}, "a predicate"),
)
_BRANCHES = ("|", "&", "AND", "||", "&&")
_BAD_ESCAPE = re.compile(r"""\\\\|\\([^tbnrf"'\\])""")
_BRACKETED_IRI = re.compile(r"<[^<>\n]*>")


@dataclass(frozen=True, slots=True)
class Failure:
    """The furthest place that the parse of a section reached, and what it looked for there."""

    place: int
    expected: frozenset[str]
    section: Span
    where: str  # as in "unexpected '}' in GPM A"
    follows: frozenset[str] = frozenset()  # keywords that may stand after the section
    then: str = "the next clause"  # what comes after the section, in one phrase


def report(failure: Failure, lexemes: Sequence[Lexeme], findings: Findings) -> None:
    """Adds the diagnostic of a failed parse; `lexemes` are those of the whole query."""
    inside = [item for item in lexemes if _overlaps(item.span, failure.section)]
    found = next((item for item in inside if item.span.end > failure.place), None)
    if found is None:
        _report_end(failure, inside, findings)
    else:
        _report_unexpected(failure, found, inside, findings)


def _expected(failure: Failure) -> tuple[str, ...]:
    """What was expected, briefly: phrases, then keywords, then marks."""
    rest = {failure.then if name == THE_END else name for name in failure.expected}
    said = []
    for needed, covered, phrase in _TOGETHER:
        if needed <= rest:
            rest -= covered
            said.append(phrase)
    return (*said, *sorted(rest, key=lambda name: (name.isupper(), name.startswith("'"), name)))


def _overlaps(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _report_end(failure: Failure, inside: Sequence[Lexeme], findings: Findings) -> None:
    """The section ended where more was expected."""
    if not _report_unclosed(failure, inside, findings):
        start = failure.section.start
        last = inside[-1].span if inside else Span(max(0, start - 1), start)
        message = f"{failure.where} is incomplete"
        findings.error(message, last, expected=_expected(failure))


def _report_unclosed(failure: Failure, inside: Sequence[Lexeme], findings: Findings) -> bool:
    """Points at a bracket without a partner rather than at the place where that was noticed."""
    bracket = unclosed(inside)
    if bracket is None:
        return False
    message = f"'{bracket.text}' is never closed in {failure.where}"
    findings.error(message, bracket.span, expected=(f"'{CLOSING[bracket.text]}'",))
    return True


def _report_unexpected(
    failure: Failure, found: Lexeme, inside: Sequence[Lexeme], findings: Findings
) -> None:
    start = max(found.span.start, failure.place)
    text = found.text[start - found.span.start :]
    special = _string_error(found) or _iri_error(found, failure, findings)
    if special is not None:
        findings.error(*special)
        return
    if _wants_another(failure, found) and _report_unclosed(failure, inside, findings):
        return
    advice = _advice(failure, found)
    findings.error(
        f"unexpected {quoted(text)} in {failure.where}{advice}",
        Span(start, found.span.end),
        expected=() if advice else _expected(failure),
        suggestion=_suggestion(failure, found),
    )


def _wants_another(failure: Failure, found: Lexeme) -> bool:
    """Whether a closing bracket stands where one of another kind should."""
    if not found.is_punct(*CLOSING.values()):
        return False
    closing = {f"'{mark}'" for mark in CLOSING.values()}
    return bool(failure.expected & (closing - {f"'{found.text}'"}))


def _string_error(found: Lexeme) -> tuple[str, Span] | None:
    if found.is_punct('"', "'"):
        return "this string is never closed", found.span
    if found.kind != "string":
        return None
    for escape in _BAD_ESCAPE.finditer(found.text):
        if escape[1]:
            start = found.span.start + escape.start()
            message = f"\\{escape[1]} is not an escape; for a backslash write \\\\"
            return message, Span(start, start + 2)
    return None


def _iri_error(found: Lexeme, failure: Failure, findings: Findings) -> tuple[str, Span] | None:
    if not found.is_punct("<") or "an IRI" not in failure.expected:
        return None
    written = _BRACKETED_IRI.match(findings.text.text, found.span.start)
    if written is None:
        return "this IRI is never closed", found.span
    return 'an IRI may not contain spaces or any of " { } | ^ ` \\', Span(*written.span())


def _advice(failure: Failure, found: Lexeme) -> str:
    """What to do about a mistake whose cause is plain."""
    expected, text = failure.expected, found.text.upper()
    if "a sequence operator" in expected and text in _BRANCHES:
        if expected & {"'|'", "'&'", "AND"}:
            return ": a bracket has one kind of operator; nest brackets to mix them"
        return ": it needs a bracket of its own, as in SEQ((A | B); C)"
    if "a selection strategy" in expected and text in ALL_FUNCTIONS:
        return f": write ({text}(...) AS ?name)"
    if found.kind == "iri" and "an operator" in expected:
        return ": as it stands it is an IRI; to compare, put a space after <"
    if found.kind == "var" and "a function" in expected and "a variable" not in expected:
        return ": a condition needs brackets around it"
    return ""


def _suggestion(failure: Failure, found: Lexeme) -> str | None:
    """The nearest keyword or function that could stand in the place of a word."""
    if not found.keyword:
        return None
    follows = failure.follows if THE_END in failure.expected else frozenset()
    choices = {word for name in failure.expected for word in name.split(" or ") if word.isupper()}
    functions = (words for name, words in _VOCABULARY.items() if name in failure.expected)
    near = nearest(found.keyword, choices.union(follows, *functions))
    return near if near != found.keyword else None


def quoted(text: str) -> str:
    """A piece of the query as it is quoted in a message."""
    line = text.splitlines()[0]
    return f"'{line}'" if "'" not in line else line
