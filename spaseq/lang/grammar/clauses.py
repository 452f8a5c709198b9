"""The clauses of the header, the head of a GPM, and HAVING (docs/lookup.md#grammar).

Each element begins after the keyword that opens its clause. `spaseq.lang.sections` has read that
keyword.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pyparsing import And, Empty, ParserElement

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.expressions import EXPRESSION
from spaseq.lang.grammar.patterns import DURATION, GROUP, REF, SELECT_ITEM, STAR
from spaseq.lang.grammar.rules import (
    DATE_TIME,
    INTEGER,
    IRI,
    IRI_REFERENCE,
    NAME,
    NAMESPACE,
    RDF_LITERAL,
    SHORT_STRING,
    VAR,
    Word,
    just,
    keyword,
    mark,
    rule,
    whole,
    words,
)
from spaseq.lang.grammar.triples import TRIPLES_TEMPLATE
from spaseq.lang.names import BaseClause, PrefixClause, TypedLiteral, VersionClause, WrittenIri
from spaseq.records import record

STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")


@record
class PartitionClause(ast.Node):
    """The variables of PARTITION BY."""

    variables: tuple[ast.Var, ...]


@record
class GpmHead(ast.Node):
    """`DEFINE GPM name ON stream, ...`, without the pattern."""

    name: str
    streams: tuple[ast.GpmSource, ...]


def _select(span: Span, *tokens: Word | ast.SelectItem) -> ast.Select:
    modifiers = [token.text for token in tokens if isinstance(token, Word)]
    items = tuple(token for token in tokens if isinstance(token, ast.SelectItem))
    strategy: Any = next((word for word in modifiers if word in STRATEGIES), "ALL")
    return ast.Select(items or None, "DISTINCT" in modifiers, strategy, span=span)


def _construct(span: Span, *blocks: ast.Triples) -> ast.Construct:
    return ast.Construct(tuple(t for block in blocks for t in block.triples), span=span)


def _maintain(span: Span, graph: WrittenIri, *parts: Word | ast.Triples) -> ast.Maintain:
    given: dict[str, tuple[ast.Triple, ...]] = {}
    for word, block in pairwise([*parts, None]):
        if isinstance(word, Word):
            given[word.text] = block.triples if isinstance(block, ast.Triples) else ()
    iri: Any = graph
    return ast.Maintain(iri, given.get("DELETE", ()), given.get("INSERT", ()), span=span)


def _time_window(
    span: Span,
    length: ast.TimeSpan,
    tumbling: Word | None = None,
    origin: ast.Literal | TypedLiteral | Word | None = None,
) -> ast.TimeWindow:
    # `spaseq.lang.names` checks the datatype of a literal and replaces it by its lexical form.
    start: Any = origin.text if isinstance(origin, Word) else origin
    return ast.TimeWindow(length, tumbling is not None, start, span=span)


def _count_window(span: Span, count: Word) -> ast.CountWindow:
    return ast.CountWindow(int(count.text), span=span)


def _partition(span: Span, *variables: ast.Var) -> PartitionClause:
    return PartitionClause(variables, span=span)


def _skip(span: Span, *tokens: Word | ast.Ref | ast.TimeSpan) -> ast.Skip:
    kind: Any = " ".join(token.text for token in tokens if isinstance(token, Word))
    gpm = next((token for token in tokens if isinstance(token, ast.Ref)), None)
    mute = next((token for token in tokens if isinstance(token, ast.TimeSpan)), None)
    return ast.Skip(kind.removeprefix("SKIP ") or "NO SKIP", gpm, mute, span=span)


def _stream(span: Span, name: Word, iri: WrittenIri) -> ast.FromStream:
    return ast.FromStream(name.text, iri, span=span)  # type: ignore[arg-type]


def _panes(span: Span, length: ast.TimeSpan, *more: Any) -> ast.Panes:
    # `spaseq.lang.names` checks the datatype of an origin and replaces it by its lexical form.
    slide = next((m for m in more if isinstance(m, ast.TimeSpan)), None)
    origin: Any = next((m for m in more if not isinstance(m, ast.TimeSpan)), None)
    start: Any = origin.text if isinstance(origin, Word) else origin
    return ast.Panes(length, slide, start, span=span)


def _each_event(span: Span, length: ast.TimeSpan | Word) -> ast.EachEvent:
    return ast.EachEvent(int(length.text) if isinstance(length, Word) else length, span=span)


def _from_window(span: Span, name: Word, *parts: Any) -> ast.FromWindow:
    streams = tuple(part for part in parts if isinstance(part, ast.Ref))
    key = parts[-1] if isinstance(parts[-1], ast.GroupGraphPattern) else None
    return ast.FromWindow(name.text, streams, parts[len(streams)], key, span=span)


def _source(span: Span, *words: Word) -> ast.GpmSource:
    change: Any = words[0].text if len(words) > 1 else None
    return ast.GpmSource(words[-1].text, change, span=span)


def _gpm_head(span: Span, name: Word, *streams: ast.GpmSource) -> GpmHead:
    return GpmHead(name.text, streams, span=span)


def _phrase(*expected: str) -> ParserElement:
    return And([words(word) for word in expected])


_TUMBLING = words("TUMBLING") + (keyword("FROM") + (DATE_TIME | RDF_LITERAL))[0, 1]
_WINDOW = rule(DURATION + _TUMBLING[0, 1], _time_window) | rule(
    INTEGER + keyword("EVENTS?", "EVENTS"), _count_window
)
_TEMPLATE = mark("{") + TRIPLES_TEMPLATE[0, 1] + mark("}")
_INSERT = words("INSERT") + _TEMPLATE
_SKIP = (
    _phrase("NO", "SKIP")
    | _phrase("CONSUME")
    | _phrase("SKIP", "TO", "NEXT", "EVENT")
    | _phrase("SKIP", "PAST", "LAST", "EVENT")
    | _phrase("SKIP", "TO") + words("FIRST", "LAST") + REF
)
_MUTE = keyword("MUTE") + DURATION
_VARIABLES = mark("(") + VAR + (mark(",")[0, 1] + VAR)[...] + mark(")") | VAR
_STREAM = rule(keyword("STREAM") + NAME + IRI, _stream)
_EACH_EVENT = keyword("EACH") + keyword("EVENT")
_EXTENT = (
    rule(keyword("RANGE") + DURATION + _EACH_EVENT, _each_event)
    | rule(keyword("RANGE") + INTEGER + keyword("EVENTS?", "EVENTS") + _EACH_EVENT, _each_event)
    | rule(
        keyword("RANGE")
        + DURATION
        + (keyword("SLIDE") + DURATION + (keyword("FROM") + (DATE_TIME | RDF_LITERAL))[0, 1])[0, 1],
        _panes,
    )
    | rule(keyword("SESSION") + DURATION, lambda span, gap: ast.Session(gap, span=span))
)
_FROM_WINDOW = rule(
    keyword("WINDOW")
    + NAME
    + keyword("ON")
    + REF
    + (mark(",") + REF)[...]
    + _EXTENT
    + (keyword("KEY") + GROUP)[0, 1],
    _from_window,
)
_KB = rule(keyword("NAMED") + IRI, lambda span, iri: ast.FromKb(iri, span=span))

# The keyword that opens a clause -> the element for the text after it.
CLAUSES: Mapping[str, ParserElement] = {
    opening: whole(element)
    for opening, element in {
        "BASE": rule(just(IRI_REFERENCE), lambda span, iri: BaseClause(iri, span=span)),
        "VERSION": rule(just(SHORT_STRING), lambda span, word: VersionClause(word.text, span=span)),
        "PREFIX": rule(
            NAMESPACE + IRI_REFERENCE,
            lambda span, namespace, iri: PrefixClause(namespace.text[:-1], iri, span=span),
        ),
        "REGISTER": keyword("STREAM") + IRI + keyword("AS"),
        "SELECT": rule(
            words("DISTINCT")[0, 1]
            + words(*STRATEGIES, name="a selection strategy")[0, 1]
            + (STAR | SELECT_ITEM[1, ...]),
            _select,
        ),
        "CONSTRUCT": rule(mark("{") + TRIPLES_TEMPLATE[0, 1] + mark("}"), _construct),
        "MAINTAIN": rule(
            keyword("GRAPH")
            + IRI
            + keyword("AS")
            + (words("DELETE") + _TEMPLATE + _INSERT[0, 1] | _INSERT),
            _maintain,
        ),
        "WITHIN": _WINDOW,
        "PARTITION": rule(keyword("BY") + _VARIABLES, _partition),
        "AFTER": rule(keyword("MATCH") + (_SKIP + _MUTE[0, 1] | _MUTE), _skip),
        "FROM": _STREAM | _FROM_WINDOW | _KB,
        "WHERE": Empty(),
        "HAVING": mark("(") + EXPRESSION + mark(")"),
    }.items()
}

_SOURCE = rule(words("NEW", "GONE") + NAME, _source) | rule(just(NAME), _source)
GPM_HEAD = rule(
    keyword("GPM") + NAME + keyword("ON") + _SOURCE + (mark(",") + _SOURCE)[...], _gpm_head
)
WHOLE_GPM_HEAD = whole(GPM_HEAD)
