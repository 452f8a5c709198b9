"""The meaning of a word of a query: the text that an editor shows beside it, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.editor.document import Document, GpmPart, NamedPlace
from spaseq.editor.vocabulary import Vocabulary
from spaseq.editor.words import FUNCTIONS, KEYWORDS, OPERATORS
from spaseq.errors import QueryText, Span
from spaseq.lang import ast
from spaseq.lang.names import ASSUMED, WELL_KNOWN
from spaseq.lang.resolve import resolve
from spaseq.lang.scan import Lexeme
from spaseq.lang.variables import nested_groups, walk

_LONGEST = 600
"""Characters of a comment that are shown."""


@dataclass(frozen=True, slots=True)
class HoverText:
    """A Markdown text about a span."""

    text: str
    span: Span


def hover(document: Document, offset: int, vocabulary: Vocabulary) -> HoverText | None:
    """The hover text at an offset; None if there is none."""
    name = document.name_at(offset)
    if name is not None:
        return HoverText(_name(document, name), name.span)
    lexeme = document.lexeme_at(offset)
    if lexeme is None or lexeme.kind in ("comment", "string"):
        return None
    if document.in_sequence(lexeme.span.start):
        if lexeme.keyword in KEYWORDS:
            return HoverText(KEYWORDS[lexeme.keyword], lexeme.span)
        sign = document.text[offset]
        if sign in OPERATORS:
            return HoverText(f"`{sign}` {OPERATORS[sign]}", Span(offset, offset + 1))
        return None
    match lexeme.kind:
        case "var":
            return HoverText(_variable(document, lexeme.text[1:]), lexeme.span)
        case "pname" | "iri":
            return HoverText(_iri(document, lexeme, vocabulary), lexeme.span)
        case "word":
            text = _word(document, lexeme)
            return None if text is None else HoverText(text, lexeme.span)
    return None


def _word(document: Document, lexeme: Lexeme) -> str | None:
    word = lexeme.keyword
    following = document.text[lexeme.span.end :].lstrip()[:1]
    if word in FUNCTIONS and following == "(":
        return _function(word)
    if lexeme.text == "a" and document.gpm_at(lexeme.span.start) is not None:
        return "`a` is `rdf:type`: the subject is of this class."
    if word in KEYWORDS:
        return f"**{word}** {KEYWORDS[word]}"
    return _function(word) if word in FUNCTIONS else None


def _function(word: str) -> str:
    signature, _, meaning = FUNCTIONS[word].partition(": ")
    return f"`{signature}`: {meaning}"


# --- names of GPMs and streams


def _name(document: Document, place: NamedPlace) -> str:
    if place.kind == "stream":
        stream = next((s for s in document.streams if s.name == place.name), None)
        if stream is None:
            return f"`{place.name}`: no FROM STREAM names this stream."
        users = [g.name for g in document.gpms if place.name in g.streams and g.name]
        used = f" GPMs over it: {_listed(users)}." if users else ""
        return f"stream `{place.name}`{_iri_of(stream.iri)}.{used}"
    gpm = next((g for g in document.gpms if g.name == place.name), None)
    if gpm is None:
        return f"`{place.name}`: no DEFINE GPM defines it."
    return _gpm(document, gpm)


def _gpm(document: Document, gpm: GpmPart) -> str:
    streams = {s.name: s.iri for s in document.streams}
    over = ", ".join(f"`{s}`{_iri_of(streams.get(s))}" for s in gpm.streams)
    text = f"GPM `{gpm.name}` over {over or 'no stream'}, line {document.line(gpm.span.start)}"
    if gpm.pattern is None:
        return text
    span = gpm.pattern
    items = (v.text for v in document.variables if span.start <= v.span.start < span.end)
    variables = list(dict.fromkeys(items))
    body = document.text[gpm.span.start : gpm.span.end]
    shown = body if len(body) <= _LONGEST else f"{body[:_LONGEST]} ..."
    return f"{text}. Variables: {_listed(variables)}.\n\n{_fenced(shown)}"


def _iri_of(iri: str | None) -> str:
    return "" if iri is None else f" (`{iri}`)"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _fenced(text: str) -> str:
    """A block of code. No text can end it: its fence is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}spaseq\n{text}\n{fence}"


# --- IRIs


def _iri(document: Document, lexeme: Lexeme, vocabulary: Vocabulary) -> str:
    iri = document.iri_of(lexeme)
    if iri is None:
        prefix = lexeme.text.partition(":")[0]
        known = {**ASSUMED, **WELL_KNOWN}.get(prefix)
        hint = "" if known is None else f" Known is `PREFIX {prefix}: <{known}>`."
        return f"The prefix `{prefix}:` is not declared.{hint}"
    lines = [f"`<{iri}>`"]
    for stream in document.streams:
        if stream.iri == iri:
            lines.append(f"the stream `{stream.name}`")
    if any(graph.iri == iri for graph in document.graphs):
        lines.append("a graph of the knowledge base")
    label, kind = vocabulary.labels.get(iri), vocabulary.kind(iri)
    if label is not None or kind is not None:
        lines.append(" ".join([f"**{_escaped(label)}**" if label else "", kind or ""]).strip())
    comment = vocabulary.comments.get(iri)
    if comment is not None:
        lines.append(_escaped(comment))
    return "\n\n".join(lines)


def _escaped(text: str) -> str:
    """A text of a knowledge base, in which no sign means anything to Markdown."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+-.!|~&" else c for c in shown)


# --- variables


def _variable(document: Document, name: str) -> str:
    lines = [f"**?{name}**", *(f"- {line}" for line in dict.fromkeys(_bindings(document, name)))]
    if len(lines) == 1:
        lines.append("nothing that can be read binds it")
    if _is_group_variable(document, name):
        lines.append(
            "- a group variable: it has a value for each repetition of its step, and "
            f"PREV(?{name}), COUNT(?{name}) and the like range over them"
        )
    return "\n".join([lines[0], "", *lines[1:]])


def _bindings(document: Document, name: str) -> Iterator[str]:
    parsed = document.parsed
    readable = set()
    if parsed.query is not None:
        for gpm in parsed.query.gpms:
            if gpm.name in parsed.broken_gpms:
                continue
            readable.add(gpm.name)
            where = f"GPM `{gpm.name}` over {_listed([s.name for s in gpm.streams])}"
            for how, span in _binding_elements(gpm.pattern, name, "the event"):
                yield f"{where}: {how}, line {document.line(span.start)}"
        if isinstance(parsed.query.form, ast.Select):
            for item in parsed.query.form.items or ():
                if item.var is not None and item.var.name == name and item.expr is not None:
                    yield f"SELECT: AS gives it a value, line {document.line(item.span.start)}"
    for part in document.gpms:
        if part.name not in readable:
            yield from _occurrences(document, part, name)


def _occurrences(document: Document, gpm: GpmPart, name: str) -> Iterator[str]:
    """The occurrences of a variable in a GPM that cannot be read."""
    for item in document.variables:
        if item.text[1:] == name and gpm.span.start <= item.span.start < gpm.span.end:
            yield f"GPM `{gpm.name or '?'}` mentions it, line {document.line(item.span.start)}"


def _binding_elements(
    group: ast.GroupGraphPattern, name: str, graph: str
) -> Iterator[tuple[str, Span]]:
    """How the elements of a group bind a variable, and where."""
    for element in group.elements:
        match element:
            case ast.Triples(triples):
                for triple in triples:
                    for node in walk(triple):
                        if isinstance(node, ast.Var) and node.name == name:
                            yield f"a triple pattern of {graph}", node.span
            case ast.Bind(var=var) if var.name == name:
                yield "BIND", var.span
            case ast.Values(variables):
                yield from (("VALUES", v.span) for v in variables if v.name == name)
            case ast.MinusGraphPattern() | ast.Filter():
                pass
            case ast.GraphGraphPattern(inner) | ast.ServiceGraphPattern(inner):
                kind = "GRAPH" if isinstance(element, ast.GraphGraphPattern) else "SERVICE"
                if isinstance(inner, ast.Var):
                    if inner.name == name:
                        yield f"the name of {kind}", inner.span
                    here = f"{kind} `?{inner.name}`"
                else:
                    here = f"{kind} `<{inner.value}>`"
                yield from _binding_elements(element.pattern, name, here)
            case _:
                for inner_group in nested_groups(element):
                    yield from _binding_elements(inner_group, name, graph)


def _is_group_variable(document: Document, name: str) -> bool:
    parsed = document.parsed
    if parsed.query is None or not parsed.query.sequence.steps:
        return False
    try:
        resolved = resolve(
            parsed.query,
            QueryText(document.text, document.name),
            parsed.broken_gpms,
            parsed.broken_clauses,
        )
    except (ValueError, RecursionError):
        return False
    return name in resolved.scope.owner
