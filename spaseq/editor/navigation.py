"""Definitions and uses of the names of a query, its outline, and its code actions.

The actions are new names, remedies of findings, and the canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spaseq.compile import CompileOptions, check_query
from spaseq.editor.document import Document, NamedPlace
from spaseq.errors import Diagnostic, QueryText, Span, SpaseqError, UsageError
from spaseq.lang import lexical
from spaseq.lang.format import format_query
from spaseq.lang.names import ASSUMED, WELL_KNOWN
from spaseq.lang.scan import Lexeme, head_lines

_NAME = lexical.NamePattern(lexical.NAME)
_VARIABLE = lexical.NamePattern(lexical.VARIABLE)
_NO_GPM = ("AND",)

_PREFIX = re.compile(r"prefix ([\w.-]*): is not declared")


@dataclass(frozen=True, slots=True)
class Outlined:
    """One entry of the outline of a query, with the span of its name and the whole span."""

    name: str
    kind: Literal["stream", "graph", "sequence", "GPM"]
    detail: str
    span: Span
    whole: Span


def outline(document: Document) -> list[Outlined]:
    """The streams, graphs, sequence and GPMs of a query."""
    return sorted(_outlined(document), key=lambda entry: entry.whole.start)


def _outlined(document: Document) -> Iterator[Outlined]:
    for stream in document.streams:
        yield Outlined(stream.name or "?", "stream", stream.iri or "", stream.span, stream.span)
    for graph in document.graphs:
        yield Outlined(f"<{graph.iri}>", "graph", "", graph.span, graph.span)
    section = document.layout.sequence
    if section is not None:
        span = Span(section.start, section.end)
        text = " ".join(document.plain[section.body : section.end].split())
        yield Outlined("SEQ", "sequence", text, span, span)
    definitions = {place.name: place.span for place in document.names if place.defines}
    for gpm in document.gpms:
        span = definitions.get(gpm.name or "", gpm.span)
        inside = gpm.span.start <= span.start and span.end <= gpm.span.end
        name_span = span if inside else gpm.span
        yield Outlined(gpm.name or "?", "GPM", ", ".join(gpm.streams), name_span, gpm.span)


def definition(document: Document, offset: int) -> Span | None:
    """The definition of the name at an offset: of a GPM, a stream, a variable or a prefix."""
    place = _name(document, offset)
    if place is not None:
        same = (p for p in document.names if (p.kind, p.name) == (place.kind, place.name))
        return next((p.span for p in same if p.defines), None)
    lexeme = _lexeme(document, offset)
    if lexeme is None:
        return None
    if lexeme.kind == "pname":
        return document.prefix_places.get(lexeme.text.partition(":")[0])
    if lexeme.kind != "var":
        return None
    uses = _variable_places(document, lexeme)
    return next((span for span in uses if document.gpm_at(span.start) is not None), uses[0])


def references(document: Document, offset: int) -> list[Span]:
    """All places of the GPM, stream or variable at an offset; none if there is none."""
    place = _name(document, offset)
    if place is not None:
        same = (p for p in document.names if (p.kind, p.name) == (place.kind, place.name))
        return [p.span for p in same]
    lexeme = _lexeme(document, offset)
    if lexeme is None or lexeme.kind != "var":
        return []
    return _variable_places(document, lexeme)


def renamed(document: Document, offset: int, new: str) -> list[tuple[Span, str]]:
    """The changes that give the GPM, stream or variable at an offset a new name.

    Raises:
        UsageError: there is no such name at the offset, or the new one is invalid or taken.
    """
    place, places = _name(document, offset), references(document, offset)
    if not places:
        raise UsageError("only GPMs, streams and variables can be renamed")
    if place is not None:
        reserved = place.kind == "GPM" and new.upper() in _NO_GPM
        if _NAME.fullmatch(new) is None or reserved:
            raise UsageError(f"{new!r} is not a name of a {place.kind}")
        if any(p.kind == place.kind and p.name == new for p in document.names):
            raise UsageError(f"there is a {place.kind} {new} already")
        return [(span, new) for span in places]
    name = new[1:] if new[:1] in ("?", "$") else new
    if _VARIABLE.fullmatch(f"?{name}") is None:
        raise UsageError(f"{new!r} is not a name of a variable")
    if any(item.text[1:] == name for item in document.variables):
        raise UsageError(f"there is a variable ?{name} already")
    return [(Span(span.start + 1, span.end), name) for span in places]


def _name(document: Document, offset: int) -> NamedPlace | None:
    """The name at an offset, or that ends there."""
    return document.name_at(offset) or document.name_at(offset - 1)


def _lexeme(document: Document, offset: int) -> Lexeme | None:
    """The variable or prefixed name at an offset, or that ends there."""
    for lexeme in (document.lexeme_at(offset), document.lexeme_at(offset - 1)):
        in_sequence = lexeme is not None and document.in_sequence(lexeme.span.start)
        if lexeme is not None and lexeme.kind in ("var", "pname") and not in_sequence:
            return lexeme
    return None


def _variable_places(document: Document, variable: Lexeme) -> list[Span]:
    return [item.span for item in document.variables if item.text[1:] == variable.text[1:]]


@dataclass(frozen=True, slots=True)
class Change:
    """A remedy: its title, and the text that replaces a span."""

    title: str
    span: Span
    text: str


def findings(document: Document, options: CompileOptions) -> tuple[Diagnostic, ...]:
    """The findings of `spaseq check` about a query; an impossible check is a finding, too."""
    try:
        return check_query(document.text, "query", options).diagnostics
    except SpaseqError as error:
        source = QueryText(document.text, document.name)
        return (Diagnostic("error", "not-checked", str(error), Span(0, 0), source),)


def remedies(document: Document, finding: Diagnostic) -> Iterator[Change]:
    """The changes that may remedy a finding."""
    span = finding.span
    if finding.suggestion and span.end > span.start:
        written = document.text[span.start : span.end]
        if written != finding.suggestion:
            yield Change(f"Replace {written} by {finding.suggestion}", span, finding.suggestion)
    undeclared = _PREFIX.match(finding.message)
    if undeclared is not None:
        prefix = undeclared[1]
        namespace = {**ASSUMED, **WELL_KNOWN}.get(prefix)
        if namespace is not None:
            line = f"PREFIX {prefix}: <{namespace}>"
            yield Change(f"Add {line}", document.top, f"{line}\n")


def canonical(document: Document) -> str | None:
    """The canonical text; None for a query with syntax errors, or where comments would be lost.

    Comments before the first clause stay.
    """
    parsed = document.parsed
    if parsed.query is None or parsed.errors:
        return None
    first = document.lexemes[0].span.start if document.lexemes else 0
    if any(comment.span.start > first for comment in document.comments):
        return None
    return "".join(f"{line}\n" for line in head_lines(document.text)) + format_query(parsed.query)
