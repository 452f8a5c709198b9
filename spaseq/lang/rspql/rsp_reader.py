"""Reads the text of an RSP-QL or C-SPARQL query, and resolves its names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from spaseq.errors import QueryError, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.depth import too_deep
from spaseq.lang.findings import Findings
from spaseq.lang.iris import is_absolute
from spaseq.lang.names import BaseClause, NameResolver, PrefixClause
from spaseq.lang.parser import TOO_DEEP, scanned
from spaseq.lang.rspql.nodes import AnswerForm, Register, RspQuery, StoredGraph, StreamWindow
from spaseq.lang.scan import Lexeme
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.syntax_errors import RSP_QUERY
from spaseq.lang.variables import walk
from spaseq.lang.wellformed import check_labels, check_node

BASE = "http://example.org/"
"""What relative IRIs are resolved against without BASE."""

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


def read(source: QueryText, base: str | None = None) -> tuple[RspQuery, Findings]:
    """The query, and what was found so far: warnings.

    Args:
        source: the text of the query.
        base: what relative IRIs are resolved against if the query has no BASE.

    Raises:
        QueryError: with the errors of the query.
    """
    from spaseq.lang.rspql.grammar import QUERY

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
    """What other languages and drafts have, and RSP-QL has not."""
    depth = 0
    for lexeme, following in pairwise([*lexemes, *lexemes[-1:]]):
        depth += lexeme.is_punct("{") - lexeme.is_punct("}")
        span = Span(lexeme.span.start, following.span.end)
        after = following.keyword or following.text
        for words, message in _NO_COUNTERPART.items():
            if lexeme.keyword == words[0] and words[1] in ("", after):
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
    """Whether an IRI is relative, but for some."""
    inner = (i for node in nodes for i in walk(node))
    iris = (i for i in inner if isinstance(i, ast.Iri) and i not in but)
    return any(not is_absolute(iri.value) for iri in iris)


def _notes(relative: bool, prologue: Sequence[Any], base: str | None) -> tuple[str, ...]:
    if not relative or any(isinstance(clause, BaseClause) for clause in prologue):
        return ()
    return (f"Relative IRIs are resolved against <{base or BASE}>, as there is no BASE.",)
