"""From the text of a query to its AST, collecting every syntax error on the way.

The text is cut into sections that are parsed one by one, so that an error in one does not hide
those in another (`spaseq.lang.reader`); then names are looked up and the rules of SPARQL beyond
its grammar are checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spaseq.errors import Diagnostic, QueryError, Source, Span
from spaseq.lang import ast
from spaseq.lang.escapes import restore_spans
from spaseq.lang.findings import Findings
from spaseq.lang.names import NameResolver
from spaseq.lang.reader import Reading, read
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.wellformed import Fault, faults, shared_labels


@dataclass(frozen=True, slots=True)
class Parsed:
    """A query as far as it could be read, and all that is wrong with it.

    `query` is None only for an empty text. A GPM in `broken_gpms` may lack its streams or its
    pattern. `broken_parts` names what else had to be left out, so that nobody complains that it is
    missing: "prologue", "register", "form", "window", "partition", "skip", "streams", "kbs",
    "sequence", "gpms" (a GPM without a readable name) and "having".
    """

    query: ast.Query | None
    diagnostics: tuple[Diagnostic, ...]
    broken_gpms: frozenset[str] = frozenset()
    broken_parts: frozenset[str] = frozenset()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are not mere warnings."""
        return tuple(found for found in self.diagnostics if found.severity == "error")


def parse(text: str, name: str = "<query>") -> ast.Query:
    """The AST of a query.

    Args:
        text: the query.
        name: what to call it in messages, usually its path.

    Raises:
        QueryError: with every syntax error of the query.

    >>> parse("SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {"
    ...       "DEFINE GPM A ON S { ?s ?p ?o } }").gpms[0].name
    'A'
    """
    parsed = parse_source(Source(text, name))
    if parsed.errors or parsed.query is None:
        raise QueryError(parsed.diagnostics)
    return parsed.query


def parse_source(source: Source) -> Parsed:
    """Reads a query as far as possible; never raises for what is wrong with it."""
    parser = SectionParser.of(source)
    if not parser.lexemes:
        parser.findings.error("the query is empty", Span(0, 0), expected=("SELECT", "CONSTRUCT"))
        return Parsed(None, parser.findings.in_order())
    reading = read(parser)
    query = _assembled(reading, parser.findings)
    whole = Span(parser.lexemes[0].span.start, parser.lexemes[-1].span.end)
    return Parsed(
        restore_spans(replace(query, span=whole), parser.findings.text),
        parser.findings.in_order(),
        frozenset(reading.broken_gpms),
        frozenset(reading.broken_parts),
    )


def _assembled(reading: Reading, findings: Findings) -> ast.Query:
    """The query with its names looked up; a part that is missing or broken is empty."""
    names = NameResolver(findings, frozenset(reading.unreadable_prefixes))
    given = reading.given
    prologue = given.get("prologue", [])
    names.declare(prologue)
    register = reading.only("register")
    having = reading.only("having")
    window = reading.only("window")
    # In the order of the canonical text, which is the order of blank node labels.
    register = register and names.resolved(register)
    form = names.resolved(reading.only("form") or ast.Select(None))
    window = window and names.resolved(window)
    partition = reading.only("partition")
    streams = [names.resolved(stream) for stream in given.get("streams", [])]
    kbs = [names.resolved(kb) for kb in given.get("kbs", [])]
    gpms = [names.resolved(gpm) for gpm in reading.gpms]
    having = having and names.resolved(having)
    _check(findings, form, gpms, having)
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
    )


def _check(
    findings: Findings,
    form: ast.Select | ast.Construct,
    gpms: Iterable[ast.Gpm],
    having: ast.Expr | None,
) -> None:
    """Reports what breaks the rules beyond the grammar."""
    found: list[Fault] = [*faults(form)]
    for gpm in gpms:
        found += [*faults(gpm), *shared_labels(gpm.pattern)]
    if having is not None:
        found += faults(having)
    for fault in found:
        findings.error(fault.message, fault.span)
