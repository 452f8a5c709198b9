"""Reads a query of RSP-QL or C-SPARQL: SPARQL's grammar, with windows in FROM and REGISTER.

The grammar accepts the form of rsp4j, and of earlier drafts. WINDOW is first replaced by GRAPH, so
that patterns are SPARQL's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any
from typing import Literal as L

from pyparsing import ParserElement

from spaseq.errors import QueryError, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.depth import too_deep
from spaseq.lang.findings import Findings
from spaseq.lang.grammar.patterns import GROUP, MODIFIERS, PROJECTION
from spaseq.lang.grammar.rules import (
    INTEGER,
    IRI,
    IRI_REFERENCE,
    NAME,
    NAMESPACE,
    Word,
    keyword,
    mark,
    rule,
    terminal,
    whole,
    words,
)
from spaseq.lang.grammar.triples import TRIPLES_TEMPLATE
from spaseq.lang.iris import is_absolute
from spaseq.lang.names import BaseClause, NameResolver, PrefixClause, WrittenIri
from spaseq.lang.parser import TOO_DEEP, check_labels, check_node, scanned
from spaseq.lang.scan import Lexeme
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.syntax_errors import RSP_QUERY
from spaseq.lang.variables import walk
from spaseq.records import record

OPERATORS = ("RSTREAM", "ISTREAM", "DSTREAM")
_UNITS = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000, "MS": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(MS|[DHMS])")

BASE = "http://example.org/"
"""The base IRI without BASE."""

_NO_COUNTERPART = {
    ("UNDER", "ENTAILMENT"): "entailment is an option of spaseq run (--entailment rdfs)",
    ("BEGIN", "AT"): "BEGIN AT: events here have one time, which EVENT AT ?t { ... } binds",
    ("WITH", "DURATION"): "WITH DURATION: events here have one time and no duration",
    ("AGGREGATE", "{"): "AGGREGATE { }: write SPARQL's GROUP BY and HAVING behind the pattern",
    ("PERCENTILE", "("): "PERCENTILE is an aggregate of C-SPARQL's engine only",
    ("DESCRIBE", ""): "DESCRIBE is not defined by SPARQL: write CONSTRUCT",
    ("NAMED", "STREAM"): "FROM NAMED STREAM is SPARQLStream's: RSP-QL and C-SPARQL are translated",
}
_CQELS = "STREAM in a pattern is CQELS-QL's: RSP-QL and C-SPARQL are translated"


@record
class Length(ast.Node):
    """A duration, in milliseconds."""

    ms: int


@record
class WindowExtent(ast.Node):
    """The extent of a window in brackets; `strange` names a part without a counterpart here."""

    length_ms: int = 0
    slide_ms: int = 0
    each_event: int = 0  # ELEMENTS n STEP 1: the number of events
    strange: str | None = None


@record
class StreamWindow(ast.Node):
    """`FROM NAMED WINDOW name ON stream [...]`; in C-SPARQL, whose windows have no names, None."""

    name: ast.Iri | None
    stream: ast.Iri
    extent: WindowExtent


@record
class StoredGraph(ast.Node):
    """`FROM iri` or `FROM NAMED iri`."""

    iri: ast.Iri
    named: bool


@record
class Register(ast.Node):
    """`REGISTER RSTREAM iri AS`; C-SPARQL's names need be no IRIs."""

    operator: str  # RSTREAM, ISTREAM, DSTREAM, STREAM or QUERY
    iri: WrittenIri | None
    name: str | None = None


@record
class AnswerForm(ast.Node):
    """The form of a query's answers; `operator` is the one after SELECT or CONSTRUCT, in older
    drafts.
    """

    kind: L["SELECT", "CONSTRUCT", "ASK"]
    operator: str | None
    template: tuple[ast.Triple, ...] = ()


@record
class RspQuery(ast.Node):
    """A query with its names resolved.

    `select` has the SPARQL parts: the projection, the pattern and the solution modifiers. Its
    WINDOW blocks are GRAPH there, at the offsets `blocks`.
    """

    prologue: ast.Prologue
    register: Register | None
    form: AnswerForm
    windows: tuple[StreamWindow, ...]
    graphs: tuple[StoredGraph, ...]
    select: ast.SubSelect
    blocks: frozenset[int]
    notes: tuple[str, ...] = ()

    @property
    def operator(self) -> str:
        """RSTREAM, ISTREAM or DSTREAM."""
        said = [self.form.operator, self.register and self.register.operator]
        return next((o for o in said if o in ("ISTREAM", "DSTREAM")), "RSTREAM")

    @property
    def merges(self) -> bool:
        """Whether all streams and stored graphs are one graph, as in C-SPARQL."""
        return any(window.name is None for window in self.windows)


def _length(text: str, span: Span) -> Length:
    parts = _PART.findall(text.upper())
    return Length(int(sum(Decimal(n) * _UNITS[unit] for n, unit in parts)), span=span)


def _extent(span: Span, *parts: Any) -> WindowExtent:
    lengths = [part.ms for part in parts if isinstance(part, Length)]
    said = [part.text for part in parts if isinstance(part, Word)]
    if lengths:
        return WindowExtent(lengths[0], lengths[-1], span=span)
    if said[0] == "TRIPLES":
        text = "a window counts triples here, and in spaseq events, which are whole graphs"
        return WindowExtent(strange=text, span=span)
    if said[0] == "ELEMENTS" and said[2:] == ["1"]:
        return WindowExtent(each_event=int(said[1]), span=span)
    if said[0] == "ELEMENTS":
        text = "a window of elements moves by one only: write STEP 1"
        return WindowExtent(strange=text, span=span)
    return WindowExtent(strange="a window ends at its close, not before it", span=span)


def _window(span: Span, *parts: Any) -> StreamWindow:
    extent = next(part for part in parts if isinstance(part, WindowExtent))
    first, *more = (part for part in parts if not isinstance(part, WindowExtent | Word))
    name, stream = (first, more[0]) if more else (None, first)
    if any(isinstance(part, Word) for part in parts):  # AS: the stream stands before the name
        name, stream = stream, name
    return StreamWindow(name, stream, extent, span=span)


def _register(span: Span, operator: Word, name: Word | WrittenIri) -> Register:
    if isinstance(name, Word):
        return Register(operator.text, None, name.text, span=span)
    return Register(operator.text, name, span=span)


def _graph(span: Span, *parts: Any) -> StoredGraph:
    return StoredGraph(parts[-1], len(parts) > 1, span=span)


def _form(span: Span, kind: Word, *parts: Any) -> AnswerForm:
    operator = next((part.text for part in parts if isinstance(part, Word)), None)
    template = (t for part in parts if isinstance(part, ast.Triples) for t in part.triples)
    return AnswerForm(kind.text, operator, tuple(template), span=span)  # type: ignore[arg-type]


_XSD_LENGTH = r"(?i:P(?=[\dT])(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)(?!\w)"
_LENGTH = terminal(_XSD_LENGTH, "a duration", _length, "Pp") | terminal(
    r"\d+\s*(?i:ms|[smhd])(?!\w)", "a duration", _length, "0123456789"
)
_PAST = terminal(r"(?i:FROM\s+NOW)[^\]]*", "RANGE", lambda text, span: Word("PAST", span), "Ff")
_STEP = mark(",")[0, 1] + keyword("STEP|SLIDE", "STEP") + _LENGTH
_EXTENT = rule(
    mark("[")
    + (
        keyword("RANGE") + words("TRIPLES") + INTEGER
        | keyword("RANGE") + _LENGTH + (keyword("TUMBLING") | _STEP)[0, 1]
        | words("ELEMENTS") + INTEGER + (keyword("STEP") + INTEGER)[0, 1]
        | _PAST
    )
    + mark("]"),
    _extent,
)
_ON = keyword("ON") + keyword("STREAM")[0, 1]
_WINDOW: ParserElement = (
    rule(keyword("NAMED") + keyword("WINDOW") + _ON + IRI + _EXTENT + words("AS") + IRI, _window)
    | rule(keyword("NAMED") + keyword("WINDOW") + IRI + _ON + IRI + _EXTENT, _window)
    | rule(keyword("NAMED") + keyword("WINDOW") + IRI + _EXTENT + _ON + IRI, _window)
    | rule(keyword("STREAM") + IRI + _EXTENT, _window)
)
_GRAPH = rule(words("NAMED")[0, 1] + keyword("GRAPH")[0, 1] + IRI, _graph)
_REGISTER = rule(
    keyword("REGISTER") + words(*OPERATORS, "STREAM", "QUERY") + (IRI | NAME) + keyword("AS"),
    _register,
)
_PROLOGUE = (
    rule(keyword("BASE") + IRI_REFERENCE, lambda span, iri: BaseClause(iri, span=span))
    | rule(
        keyword("PREFIX") + NAMESPACE + IRI_REFERENCE,
        lambda span, name, iri: PrefixClause(name.text[:-1], iri, span=span),
    )
    | _REGISTER
)
_OPERATOR = words(*OPERATORS)[0, 1]
_CONSTRUCT = rule(
    words("CONSTRUCT") + _OPERATOR + mark("{") + TRIPLES_TEMPLATE[0, 1] + mark("}"), _form
)
_FROM = keyword("FROM") + (_WINDOW | _GRAPH)
_BODY = _FROM[...] + keyword("WHERE")[0, 1] + GROUP + MODIFIERS

QUERY = whole(
    _PROLOGUE[...]
    + (
        rule(words("SELECT") + _OPERATOR, _form)
        + words("DISTINCT", "REDUCED")[0, 1]
        + PROJECTION
        + _BODY
        | _CONSTRUCT + _BODY
        | rule(words("ASK") + _OPERATOR, _form) + _BODY
    )
)


def read(source: QueryText, base: str | None = None) -> tuple[RspQuery, Findings]:
    """The query, and the warnings so far.

    Args:
        source: the text of the query.
        base: the base IRI if the query has no BASE.

    Raises:
        QueryError: with the errors of the query.
    """

    parser = scanned(source)
    for message, span in _strange(parser.lexemes):
        parser.findings.error(message, span, code="no-counterpart")
    stop(parser.findings)
    text, blocks = _with_graph_for_window(parser)
    last = parser.lexemes[-1].span.end
    nodes = replace(parser, text=text).parse(QUERY, Span(0, last), RSP_QUERY, then="the end")
    stop(parser.findings)
    assert nodes is not None  # else there is an error
    return _assembled(nodes, blocks, parser.findings, base), parser.findings


def stop(findings: Findings) -> None:
    """End here if there are errors.

    Raises:
        QueryError: with all of them.
    """
    if any(finding.severity == "error" for finding in findings.diagnostics):
        raise QueryError(findings.in_order())


def _strange(lexemes: Sequence[Lexeme]) -> Iterator[tuple[str, Span]]:
    """Findings about syntax of other languages and drafts that RSP-QL does not have."""
    depth = 0
    for lexeme, following in pairwise([*lexemes, *lexemes[-1:]]):
        depth += lexeme.is_punct("{") - lexeme.is_punct("}")
        span = Span(lexeme.span.start, following.span.end)
        after = following.keyword or following.text
        for keywords, message in _NO_COUNTERPART.items():
            if lexeme.keyword == keywords[0] and keywords[1] in ("", after):
                yield message, span
        if depth and lexeme.keyword == "STREAM" and following.kind in ("iri", "pname"):
            yield _CQELS, span


def _with_graph_for_window(parser: SectionParser) -> tuple[str, frozenset[int]]:
    """The text with GRAPH for each WINDOW of a pattern, and the offsets where that was done."""
    text, places = parser.text, set[int]()
    depth = 0
    for lexeme, following in pairwise(parser.lexemes):
        depth += lexeme.is_punct("{") - lexeme.is_punct("}")
        if depth and lexeme.keyword == "WINDOW" and following.kind in ("iri", "pname", "var"):
            start, end = lexeme.span.start, lexeme.span.end
            text = f"{text[:start]}GRAPH {text[end:]}"
            places.add(start)
    return text, frozenset(places)


def _assembled(
    nodes: Sequence[Any], blocks: frozenset[int], findings: Findings, base: str | None
) -> RspQuery:
    from spaseq.lang.grammar.patterns import ClausePart, sub_select
    from spaseq.lang.grammar.rules import Word

    prologue = _of(nodes, BaseClause | PrefixClause)
    names = NameResolver(findings, base=base or BASE)
    names.declare(prologue)
    parts = _of(nodes, Word | ClausePart | ast.GroupGraphPattern | ast.Values)
    written = sub_select(_whole(parts), *parts)
    deep = too_deep([written, *_of(nodes, AnswerForm)])
    if deep is not None:
        findings.error(TOO_DEEP, deep, code="too-deep")
        stop(findings)
    register = next(iter(_of(nodes, Register)), None)
    if register is not None and register.iri is None and register.operator != "QUERY":
        name = ast.Iri(register.name or "", span=register.span)
        register = replace(register, iri=name, name=None)
    windows = _of(nodes, StreamWindow)
    given = [
        written,
        *(w.stream for w in windows),
        *_of(nodes, StoredGraph),
        *_of(nodes, AnswerForm),
    ]
    relative = _relative([*given, *([register] if register else [])], {w.name for w in windows})
    select = names.resolved(written)
    form = names.resolved(_of(nodes, AnswerForm)[0])
    query = RspQuery(
        prologue=replace(names.prologue(Span(0, 0)), base=None),
        register=names.resolved(register) if register else None,
        form=form,
        windows=tuple(names.resolved(w) for w in windows),
        graphs=tuple(names.resolved(g) for g in _of(nodes, StoredGraph)),
        select=select,
        blocks=blocks,
        notes=_notes(relative, prologue, base),
    )
    for finding in (*check_node(select), *check_labels(select.pattern)):
        if form.kind == "SELECT" or "SELECT *" not in finding.message:
            findings.error(finding.message, finding.span)
    stop(findings)
    return query


def _of(nodes: Sequence[Any], kind: Any) -> list[Any]:
    return [node for node in nodes if isinstance(node, kind)]


def _whole(parts: Sequence[Any]) -> Span:
    return Span(min(p.span.start for p in parts), max(p.span.end for p in parts))


def _relative(nodes: Sequence[ast.Node], but: Collection[ast.Node | None]) -> bool:
    """Whether an IRI is relative, with some exceptions."""
    inner = (i for node in nodes for i in walk(node))
    iris = (i for i in inner if isinstance(i, ast.Iri) and i not in but)
    return any(not is_absolute(iri.value) for iri in iris)


def _notes(relative: bool, prologue: Sequence[Any], base: str | None) -> tuple[str, ...]:
    if not relative or any(isinstance(clause, BaseClause) for clause in prologue):
        return ()
    return (f"Relative IRIs are resolved against <{base or BASE}>, as there is no BASE.",)
