"""Changes that an editor offers: remedies of findings, and the canonical text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.compile import CompileOptions, check_query
from spaseq.editor.document import Document
from spaseq.errors import Diagnostic, QueryText, Span, SpaseqError
from spaseq.lang.format import format_query
from spaseq.lang.names import ASSUMED, WELL_KNOWN

_PREFIX = re.compile(r"prefix ([\w.-]*): is not declared")


@dataclass(frozen=True, slots=True)
class Change:
    """A remedy: its title, and the text that replaces a span."""

    title: str
    span: Span
    text: str


def findings(document: Document, options: CompileOptions) -> tuple[Diagnostic, ...]:
    """What `spaseq check` says of a query. A check that cannot be made is a finding, too."""
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
            yield Change(f"Add {line}", Span(0, 0), f"{line}\n")


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
    heading = "".join(f"{comment.text.rstrip()}\n" for comment in document.comments)
    return heading + format_query(parsed.query)
