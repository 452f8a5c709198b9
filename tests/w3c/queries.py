"""Queries as SPAseq queries over one GPM: a SELECT is a sub-SELECT, CONSTRUCT stays CONSTRUCT."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.lang.scan import Lexeme, scan

STREAM = "http://w3c.example/stream"


def as_gpm(text: str, base: str, named: Sequence[str] = (), select: str = "*") -> str:
    """The query text; `base` resolves relative IRIs, and `named` lists the graphs it may use."""
    lexemes = [lexeme for lexeme in scan(text) if lexeme.kind != "comment"]
    forms = ("SELECT", "ASK")
    form = next((item for item in lexemes if item.keyword in forms), lexemes[0])
    body = _without_from(text, lexemes, form)
    if form.keyword == "ASK":
        body = f"SELECT * {body[len('ASK') :]}"
    graphs = " ".join(f"FROM NAMED <{name}>" for name in named)
    return (
        f"BASE <{base}> {text[: form.span.start]}\n SELECT {select} WITHIN 1 HOURS "
        f"FROM STREAM S <{STREAM}> {graphs} SEQ(A) {{ DEFINE GPM A ON S {{ {body}\n}} }}"
    )


def form_of(text: str) -> str:
    """SELECT, ASK, CONSTRUCT or DESCRIBE; "" if there is none."""
    forms = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
    return next((item.keyword for item in scan(text) if item.keyword in forms), "")


def as_construct(text: str, base: str, named: Sequence[str] = ()) -> str | None:
    """A CONSTRUCT query that makes an event for each solution.

    None if the pattern is followed by solution modifiers such as ORDER BY or LIMIT.
    """
    lexemes = [lexeme for lexeme in scan(text) if lexeme.kind != "comment"]
    start = next(i for i, item in enumerate(lexemes) if item.keyword == "CONSTRUCT")
    opened = [i for i, item in enumerate(lexemes) if i > start and item.is_punct("{")]
    first = _block(lexemes, opened[0])
    blocks = [first]
    if lexemes[start + 1].is_punct("{"):
        blocks.append(_block(lexemes, next(i for i in opened if i > first[1])))
    if blocks[-1][1] + 1 < len(lexemes):
        return None
    template, pattern = (
        text[lexemes[a].span.start : lexemes[b].span.end] for a, b in (blocks[0], blocks[-1])
    )
    graphs = " ".join(f"FROM NAMED <{name}>" for name in named)
    return (
        f"BASE <{base}> {text[: lexemes[start].span.start]}\n CONSTRUCT {template} WITHIN 1 HOURS "
        f"FROM STREAM S <{STREAM}> {graphs} SEQ(A) {{ DEFINE GPM A ON S {pattern} }}"
    )


def _block(lexemes: Sequence[Lexeme], start: int) -> tuple[int, int]:
    """The places of a bracket and of its closing bracket."""
    depth = 0
    for i in range(start, len(lexemes)):
        depth += lexemes[i].is_punct("{") - lexemes[i].is_punct("}")
        if depth == 0:
            return start, i
    raise ValueError("a bracket is not closed")


def _without_from(text: str, lexemes: Sequence[Lexeme], form: Lexeme) -> str:
    """The query from its form on, without FROM and FROM NAMED."""
    cut = []
    for i, lexeme in enumerate(lexemes):
        if lexeme.keyword == "FROM":
            last = lexemes[i + 2 if lexemes[i + 1].keyword == "NAMED" else i + 1]
            cut.append((lexeme.span.start, last.span.end))
    parts, start = [], form.span.start
    for first, end in cut:
        parts.append(text[start:first])
        start = end
    return " ".join([*parts, text[start:]])


def files_named(text: str, clause: str) -> list[str]:
    """The IRIs, as they are written, after FROM or after FROM NAMED."""
    lexemes = [lexeme for lexeme in scan(text) if lexeme.kind != "comment"]
    found = []
    for i, lexeme in enumerate(lexemes):
        if lexeme.keyword == "FROM":
            is_named = lexemes[i + 1].keyword == "NAMED"
            iri = lexemes[i + 2 if is_named else i + 1]
            if is_named == (clause == "FROM NAMED"):
                found.append(iri.text.strip("<>"))
    return found
