"""Error messages for failed parses."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.errors import Span
from spaseq.lang.findings import Findings
from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.other_languages.foreign_expressions import Place
from spaseq.lang.other_languages.foreign_queries import advice_on
from spaseq.lang.scan import CLOSING, Lexeme, unclosed
from spaseq.lang.spelling import nearest
from spaseq.records import record
from spaseq.text_patterns import late_pattern

THE_END = "the end"  # the grammar's name for the end of a section
RSP_QUERY = "the query to translate"  # of another language, as a whole
UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")

_VOCABULARY = {
    "a function": ALL_FUNCTIONS,
    "a unit of time": frozenset(UNITS),
    "a selection strategy": frozenset({"ALL", "NEXT", "LAST", "MAX", "STRICT"}),
}
_TERM = frozenset({"a variable", "an IRI", "a string", "a number", "true or false"})
_NODE = _TERM | {"a blank node", "'['", "'('"}
_TRIPLES = frozenset({"'<<'", "'<<('"})
_VERB = frozenset({"an IRI", "'a'", "'^'", "'!'", "'('"})
# (if all of these are expected, these are left out, and this phrase stands for them)
_SUMMARIES = (
    (
        _TERM | {"a function"},
        _TERM | {"a function", "EXISTS", "NOT EXISTS", "'('", "'!'", "'<<('"},
        "an expression",
    ),
    (_NODE | {"FILTER"}, _NODE | _TRIPLES, "a triple pattern"),
    (_NODE, _NODE | _TRIPLES, "a term"),
    (_VERB, _VERB | {"a variable"}, "a predicate"),
)
_PATH_SIGNS = frozenset("/|*+?^!")
_BRANCHES = ("|", "&", "AND", "||", "&&")
_BAD_ESCAPE = late_pattern(r"""\\\\|\\([^tbnrf"'\\])""")
_BRACKETED_IRI = late_pattern(r"<[^<>\n]*>")


@record
class Failure:
    """The furthest position that the parse of a section reached, and the expected elements."""

    place: int
    expected: frozenset[str]
    section: Span
    where: str  # as in "unexpected '}' in GPM A"
    follows: frozenset[str] = frozenset()  # keywords that may stand after the section
    then: str = "the next clause"  # a phrase for what follows the section


def report(failure: Failure, lexemes: Sequence[Lexeme], findings: Findings) -> None:
    """Add the diagnostic of a failed parse; `lexemes` are the lexemes of the whole query."""
    inside = [item for item in lexemes if _overlaps(item.span, failure.section)]
    lexeme = next((item for item in inside if item.span.end > failure.place), None)
    if lexeme is None:
        _report_end(failure, inside, findings)
    else:
        _report_unexpected(failure, lexeme, inside, findings)


def _expected(failure: Failure) -> tuple[str, ...]:
    """The expected elements, shortened: phrases, then keywords, then punctuation marks."""
    rest = {failure.then if name == THE_END else name for name in failure.expected}
    summaries = []
    for needed, covered, phrase in _SUMMARIES:
        if needed <= rest:
            rest -= covered
            summaries.append(phrase)
    return (
        *summaries,
        *sorted(rest, key=lambda name: (name.isupper(), name.startswith("'"), name)),
    )


def _overlaps(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _report_end(failure: Failure, inside: Sequence[Lexeme], findings: Findings) -> None:
    """Report a section that ends too early."""
    if not _report_unclosed(failure, inside, findings):
        start = failure.section.start
        last = inside[-1].span if inside else Span(max(0, start - 1), start)
        message = f"{failure.where} is incomplete"
        findings.error(message, last, expected=_expected(failure))


def _report_unclosed(failure: Failure, inside: Sequence[Lexeme], findings: Findings) -> bool:
    """Report an unclosed bracket, if there is one, instead of the place where the parse failed."""
    bracket = unclosed(inside)
    if bracket is None:
        return False
    message = f"'{bracket.text}' is never closed in {failure.where}"
    findings.error(message, bracket.span, expected=(f"'{CLOSING[bracket.text]}'",))
    return True


def _report_unexpected(
    failure: Failure, lexeme: Lexeme, inside: Sequence[Lexeme], findings: Findings
) -> None:
    start = max(lexeme.span.start, failure.place)
    text = lexeme.text[start - lexeme.span.start :]
    foreign = None
    if failure.where != RSP_QUERY:
        foreign = advice_on(_place(failure, lexeme, inside, start, findings))
    if foreign is not None and not _string_error(lexeme):
        message = f"unexpected {quoted(foreign.written)} in {failure.where}: {foreign.text}"
        findings.error(message, foreign.span)
        return
    special = _string_error(lexeme) or _iri_error(lexeme, failure, findings)
    if special is not None:
        findings.error(*special)
        return
    if _wants_another(failure, lexeme) and _report_unclosed(failure, inside, findings):
        return
    advice = _advice(failure, lexeme)
    findings.error(
        f"unexpected {quoted(text)} in {failure.where}{advice}",
        Span(start, lexeme.span.end),
        expected=() if advice else _expected(failure),
        suggestion=_suggestion(failure, lexeme),
    )


def _place(
    failure: Failure, lexeme: Lexeme, inside: Sequence[Lexeme], start: int, findings: Findings
) -> Place:
    text = findings.text.text
    return Place(text, inside, inside.index(lexeme), start, failure.expected, failure.where)


def _wants_another(failure: Failure, lexeme: Lexeme) -> bool:
    """Whether this closing bracket is in the place of one of another kind."""
    if not lexeme.is_punct(*CLOSING.values()):
        return False
    closing = {f"'{mark}'" for mark in CLOSING.values()}
    return bool(failure.expected & (closing - {f"'{lexeme.text}'"}))


def _string_error(lexeme: Lexeme) -> tuple[str, Span] | None:
    if lexeme.is_punct('"', "'"):
        return "this string is never closed", lexeme.span
    if lexeme.kind != "string":
        return None
    for escape in _BAD_ESCAPE.finditer(lexeme.text):
        if escape[1]:
            start = lexeme.span.start + escape.start()
            message = f"\\{escape[1]} is not an escape; for a backslash write \\\\"
            return message, Span(start, start + 2)
    return None


def _iri_error(lexeme: Lexeme, failure: Failure, findings: Findings) -> tuple[str, Span] | None:
    if not lexeme.is_punct("<") or "an IRI" not in failure.expected:
        return None
    if findings.text.text.startswith("<<", lexeme.span.start):
        span = Span(lexeme.span.start, lexeme.span.start + 2)
        return _triple_error(findings.text.text.startswith("<<(", span.start), failure), span
    written = _BRACKETED_IRI.match(findings.text.text, lexeme.span.start)
    if written is None:
        return "this IRI is never closed", lexeme.span
    return 'an IRI may not contain spaces or any of " { } | ^ ` \\', Span(*written.span())


def _triple_error(is_term: bool, failure: Failure) -> str:
    if is_term:
        return "a triple term (<<) cannot be the subject of another one here, only its object"
    if "'<<('" in failure.expected:
        return "<< >> stands only in triple patterns: here write a triple term, <<( )>>"
    return "no triple can stand here"


def _advice(failure: Failure, lexeme: Lexeme) -> str:
    """Advice for common mistakes; empty for others."""
    expected, text = failure.expected, lexeme.text.upper()
    if not text.isprintable() and lexeme.kind == "punct":
        return ": write a space or a line end, or leave it out"
    if "a sequence operator" in expected and text in _BRANCHES:
        if expected & {"'|'", "'&'", "AND"}:
            return ": a bracket has one kind of operator; nest brackets to mix them"
        return f": put it in its own bracket, as in SEQ((A {text} B); C)"
    if expected & {"a selection strategy", "'*'"} and text in ALL_FUNCTIONS:
        return f": write ({text}(...) AS ?name)"
    if "'<<('" in expected and "'('" not in expected:
        if text in _PATH_SIGNS:
            return ": a triple in << >> or <<( )>> has one predicate, not a path"
        if text == "(":
            return ": a list cannot stand in << >> or <<( )>>"
    if lexeme.kind == "langtag" and "--" in lexeme.text:
        return ": a base direction is --ltr or --rtl"
    if lexeme.kind == "iri" and "an operator" in expected:
        return ": this is an IRI; for a comparison, put a space after <"
    if failure.where == "the HAVING clause" and expected == {"'('"}:
        return ": put the condition in brackets"
    if lexeme.kind == "var" and "a function" in expected and "a variable" not in expected:
        return ": put the condition in brackets"
    return ""


def _suggestion(failure: Failure, lexeme: Lexeme) -> str | None:
    """The keyword or function nearest to a word that is not allowed in its place."""
    if not lexeme.keyword:
        return None
    follows = failure.follows if THE_END in failure.expected else frozenset()
    choices = {word for name in failure.expected for word in name.split(" or ") if word.isupper()}
    functions = (words for name, words in _VOCABULARY.items() if name in failure.expected)
    near = nearest(lexeme.keyword, choices.union(follows, *functions))
    return near if near != lexeme.keyword else None


def quoted(text: str) -> str:
    """The first line of a piece of the query, in quotation marks for a message."""
    if not text[0].isprintable():
        return f"character U+{ord(text[0]):04X}"
    line = text.splitlines()[0]
    return f"'{line}'" if "'" not in line else line
