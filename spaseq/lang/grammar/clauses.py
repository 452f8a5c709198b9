"""The clauses of the header, the head of a GPM, and HAVING (docs/language.md#grammar).

Each element begins after the keyword that opens its clause. `spaseq.lang.sections` has read that
keyword.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyparsing import And, Empty, ParserElement

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.grammar.expressions import EXPRESSION
from spaseq.lang.grammar.rules import Word, just, keyword, mark, rule, whole, words
from spaseq.lang.grammar.sequences import DURATION, REF
from spaseq.lang.grammar.subselect import SELECT_ITEM, STAR
from spaseq.lang.grammar.terminals import (
    DATE_TIME,
    INTEGER,
    IRI,
    IRI_REFERENCE,
    NAME,
    NAMESPACE,
    RDF_LITERAL,
    VAR,
)
from spaseq.lang.grammar.triples import TRIPLES_TEMPLATE
from spaseq.lang.unresolved import BaseClause, PrefixClause, TypedLiteral, WrittenIri
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
    streams: tuple[ast.Ref, ...]


def _prefix(span: Span, namespace: Word, iri: ast.Iri) -> PrefixClause:
    return PrefixClause(namespace.text[:-1], iri, span=span)


def _select(span: Span, *tokens: Word | ast.SelectItem) -> ast.Select:
    modifiers = [token.text for token in tokens if isinstance(token, Word)]
    items = tuple(token for token in tokens if isinstance(token, ast.SelectItem))
    strategy: Any = next((word for word in modifiers if word in STRATEGIES), "ALL")
    return ast.Select(items or None, "DISTINCT" in modifiers, strategy, span=span)


def _construct(span: Span, *blocks: ast.Triples) -> ast.Construct:
    return ast.Construct(tuple(t for block in blocks for t in block.triples), span=span)


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


def _skip(span: Span, *tokens: Word | ast.Ref) -> ast.Skip:
    kind: Any = " ".join(token.text for token in tokens if isinstance(token, Word))
    gpm = next((token for token in tokens if isinstance(token, ast.Ref)), None)
    return ast.Skip(kind.removeprefix("SKIP "), gpm, span=span)


def _stream(span: Span, name: Word, iri: WrittenIri) -> ast.FromStream:
    return ast.FromStream(name.text, iri, span=span)  # type: ignore[arg-type]


def _gpm_head(span: Span, name: Word, *streams: ast.Ref) -> GpmHead:
    return GpmHead(name.text, streams, span=span)


def _phrase(*expected: str) -> ParserElement:
    return And([words(word) for word in expected])


_TUMBLING = words("TUMBLING") + (keyword("FROM") + (DATE_TIME | RDF_LITERAL))[0, 1]
_WINDOW = rule(DURATION + _TUMBLING[0, 1], _time_window) | rule(
    INTEGER + keyword("EVENTS?", "EVENTS"), _count_window
)
_SKIP = (
    _phrase("NO", "SKIP")
    | _phrase("CONSUME")
    | _phrase("SKIP", "TO", "NEXT", "EVENT")
    | _phrase("SKIP", "PAST", "LAST", "EVENT")
    | _phrase("SKIP", "TO") + words("FIRST", "LAST") + REF
)
_VARIABLES = mark("(") + VAR + (mark(",")[0, 1] + VAR)[...] + mark(")") | VAR
_STREAM = rule(keyword("STREAM") + NAME + IRI, _stream)
_KB = rule(keyword("NAMED") + IRI, lambda span, iri: ast.FromKb(iri, span=span))

# The keyword that opens a clause -> the element for the text after it.
CLAUSES: Mapping[str, ParserElement] = {
    opening: whole(element)
    for opening, element in {
        "BASE": rule(just(IRI_REFERENCE), lambda span, iri: BaseClause(iri, span=span)),
        "PREFIX": rule(NAMESPACE + IRI_REFERENCE, _prefix),
        "REGISTER": keyword("STREAM") + IRI + keyword("AS"),
        "SELECT": rule(
            words("DISTINCT")[0, 1]
            + words(*STRATEGIES, name="a selection strategy")[0, 1]
            + (STAR | SELECT_ITEM[1, ...]),
            _select,
        ),
        "CONSTRUCT": rule(mark("{") + TRIPLES_TEMPLATE[0, 1] + mark("}"), _construct),
        "WITHIN": _WINDOW,
        "PARTITION": rule(keyword("BY") + _VARIABLES, _partition),
        "AFTER": rule(keyword("MATCH") + _SKIP, _skip),
        "FROM": _STREAM | _KB,
        "WHERE": Empty(),
        "HAVING": mark("(") + EXPRESSION + mark(")"),
    }.items()
}

GPM_HEAD = rule(keyword("GPM") + NAME + keyword("ON") + REF + (mark(",") + REF)[...], _gpm_head)
WHOLE_GPM_HEAD = whole(GPM_HEAD)
