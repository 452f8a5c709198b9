"""Parses the text of a query into its AST and collects every syntax error.

`spaseq.lang.reader` cuts the text into sections and parses each by itself, so an error in one
section does not hide the errors of another. Then names are resolved, and SPARQL's rules beyond its
grammar are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from spaseq.errors import Diagnostic, QueryError, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.depth import DEEPEST, too_deep, too_deep_groups
from spaseq.lang.findings import Findings, TooManyErrors
from spaseq.lang.names import NameResolver
from spaseq.lang.reader import Reading, read
from spaseq.lang.scan import MOST as MOST_LEXEMES
from spaseq.lang.scan import restore_spans
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.sections import FORMS
from spaseq.lang.wellformed import Violation, check_labels, check_node
from spaseq.records import record

MOST_CHARACTERS = 2**20
"""Longest query."""

TOO_DEEP = f"the query is more than {DEEPEST} levels deep here"
_SURROGATE = re.compile("[\ud800-\udfff]")
"""A text of Python may contain them, but no file in UTF-8 does."""


@record
class Parsed:
    """The readable parts of a query, with its diagnostics.

    `query` is None only for a text that is empty or too long, has surrogates or too many errors. A
    GPM in `broken_gpms` may lack its streams or its pattern. `broken_clauses` names the other parts
    with errors, which later checks must not report as missing: "prologue", "register", "form",
    "window", "partition", "skip", "streams", "kbs", "sequence", "gpms" (a GPM without a readable
    name) and "having".
    """

    query: ast.Query | None
    diagnostics: tuple[Diagnostic, ...]
    broken_gpms: frozenset[str] = frozenset()
    broken_clauses: frozenset[str] = frozenset()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics without the warnings."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


def parse(text: str, name: str = "<query>") -> ast.Query:
    """The AST of a query.

    Args:
        text: the query.
        name: the name of the query in messages, usually its path.

    Raises:
        QueryError: with every syntax error of the query.

    >>> parse("SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {"
    ...       "DEFINE GPM A ON S { ?s ?p ?o } }").gpms[0].name
    'A'
    """
    parsed = parse_source(QueryText(text, name))
    if parsed.errors or parsed.query is None:
        raise QueryError(parsed.diagnostics)
    return parsed.query


def parse_source(source: QueryText) -> Parsed:
    """Parse a query as far as possible; errors of the query become diagnostics."""
    try:
        return _parsed(source)
    except TooManyErrors as stop:
        return Parsed(None, stop.findings.in_order())


def scanned(source: QueryText) -> SectionParser:
    """The text of a query that is not empty, not too long and not too deep, ready to be parsed.

    Raises:
        QueryError: it is none.
    """
    if len(source.text) > MOST_CHARACTERS:
        end = Span(MOST_CHARACTERS, MOST_CHARACTERS + 1)
        message = f"a query has at most {MOST_CHARACTERS:,} characters"
        raise QueryError((Diagnostic("error", "too-long", message, end, source),))
    parser = SectionParser.of(source)
    surrogate, error = _SURROGATE.search(source.text), parser.findings.error
    if surrogate is not None:
        error("a surrogate is not a character", Span(*surrogate.span()))
    elif not parser.lexemes:
        error("the query is empty", Span(0, 0), expected=FORMS[:2])
    elif parser.too_long is not None:
        message = f"a query has at most {MOST_LEXEMES:,} words and signs"
        error(message, parser.too_long, code="too-long")
    elif (deep := too_deep_groups(parser.lexemes)) is not None:
        error(TOO_DEEP, deep, code="too-deep")
    else:
        return parser
    raise QueryError(parser.findings.in_order())


def _parsed(source: QueryText) -> Parsed:
    try:
        parser = scanned(source)
    except QueryError as error:
        return Parsed(None, tuple(error.diagnostics))
    reading = read(parser)
    deep = too_deep(reading.nodes())
    if deep is not None:
        parser.findings.error(TOO_DEEP, deep, code="too-deep")
        return Parsed(None, parser.findings.in_order())
    query = _assembled(reading, parser.findings)
    whole = Span(parser.lexemes[0].start, parser.lexemes[-1].end)
    return Parsed(
        restore_spans(replace(query, span=whole), parser.findings.text),
        parser.findings.in_order(),
        frozenset(reading.broken_gpms),
        frozenset(reading.broken_clauses),
    )


def _assembled(reading: Reading, findings: Findings) -> ast.Query:
    """The query with its names resolved; a missing or broken part of it is empty."""
    names = NameResolver(findings, frozenset(reading.unreadable_prefixes))
    prologue = reading.clauses.get("prologue", [])
    names.declare(prologue)
    register = reading.only("register")
    having = reading.only("having")
    window = reading.only("window")
    # The order of the canonical text, in which blank nodes get their labels.
    register = register and names.resolved(register)
    form = names.resolved(reading.only("form") or ast.Select(None))
    window = window and names.resolved(window)
    partition = reading.only("partition")
    streams = [names.resolved(stream) for stream in reading.clauses.get("streams", [])]
    kbs = [names.resolved(kb) for kb in reading.clauses.get("kbs", [])]
    windows = [names.resolved(window) for window in reading.clauses.get("windows", [])]
    gpms = [names.resolved(gpm) for gpm in reading.gpms]
    having = having and names.resolved(having)
    _check(findings, form, windows, gpms, having)
    span = Span(prologue[0].span.start, prologue[-1].span.end) if prologue else Span(0, 0)
    return ast.Query(
        prologue=names.prologue(span),
        form=form,
        sequence=reading.sequence or ast.Sequence((), ()),
        gpms=tuple(gpms),
        streams=tuple(streams),
        kbs=tuple(kbs),
        register=register,
        window=window,
        partition=partition.variables if partition else (),
        skip=reading.only("skip"),
        having=having,
        windows=tuple(windows),
    )


def _check(
    findings: Findings,
    form: ast.Form,
    windows: Iterable[ast.FromWindow],
    gpms: Iterable[ast.Gpm],
    having: ast.Expr | None,
) -> None:
    """Report violations of the rules beyond the grammar."""
    violations: list[Violation] = [*check_node(form)]
    for key in (window.key for window in windows if window.key is not None):
        violations += [*check_node(key), *check_labels(key)]
    for gpm in gpms:
        violations += [*check_node(gpm), *check_labels(gpm.pattern)]
    if having is not None:
        violations += check_node(having)
    for violation in violations:
        findings.error(violation.message, violation.span)
