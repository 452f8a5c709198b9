"""The grammar of RSP-QL and C-SPARQL: SPARQL's, with windows in FROM and REGISTER.

It reads the form of rsp4j, and those of earlier drafts. `spaseq.lang.rspql.rsp_reader` has written
GRAPH for WINDOW before, so that patterns are SPARQL's.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from pyparsing import ParserElement

from spaseq.errors import Span
from spaseq.lang import ast
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
from spaseq.lang.names import BaseClause, PrefixClause, WrittenIri
from spaseq.lang.rspql.nodes import (
    AnswerForm,
    Length,
    Register,
    StoredGraph,
    StreamWindow,
    WindowExtent,
)

OPERATORS = ("RSTREAM", "ISTREAM", "DSTREAM")
_UNITS = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000, "MS": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(MS|[DHMS])")


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
