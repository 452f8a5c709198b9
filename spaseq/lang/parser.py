"""Parses the text of a query into its AST and collects every syntax error.

`spaseq.lang.reader` cuts the text into sections and parses each by itself, so an error in one
section does not hide the errors of another. Then names are resolved, and SPARQL's rules beyond its
grammar are checked (SPARQL 1.1 section 19.8, notes 7-13, and section 4.1.4): for the group graph
pattern of a GPM, the items of SELECT, and HAVING.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from spaseq.errors import Diagnostic, QueryError, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.depth import DEEPEST, too_deep, too_deep_groups
from spaseq.lang.findings import Findings, TooManyErrors
from spaseq.lang.functions import BUILT_INS, SET_FUNCTIONS
from spaseq.lang.names import NameResolver
from spaseq.lang.reader import Reading, read
from spaseq.lang.scan import MOST as MOST_LEXEMES
from spaseq.lang.scan import restore_spans
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.sections import FORMS
from spaseq.lang.variables import children, leaves, pattern_variables, walk, walk_patterns
from spaseq.records import record

MOST_CHARACTERS = 2**20
"""Longest query."""

TOO_DEEP = f"the query is more than {DEEPEST} levels deep here"
_SURROGATE = re.compile("[\ud800-\udfff]")
"""A text of Python may contain them, but no file in UTF-8 does."""


@record
class Parsed:
    """The readable parts of a query, with its diagnostics.

    `query` is None only for a text that is empty or too long, has surrogates or too many errors. A
    GPM in `broken_gpms` may lack its streams or its pattern. `broken_clauses` names the other parts
    with errors, which later checks must not report as missing: "prologue", "register", "form",
    "window", "partition", "skip", "streams", "kbs", "sequence", "gpms" (a GPM without a readable
    name) and "having".
    """

    query: ast.Query | None
    diagnostics: tuple[Diagnostic, ...]
    broken_gpms: frozenset[str] = frozenset()
    broken_clauses: frozenset[str] = frozenset()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics without the warnings."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


def parse(text: str, name: str = "<query>") -> ast.Query:
    """The AST of a query.

    Args:
        text: the query.
        name: the name of the query in messages, usually its path.

    Raises:
        QueryError: with every syntax error of the query.

    >>> parse("SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {"
    ...       "DEFINE GPM A ON S { ?s ?p ?o } }").gpms[0].name
    'A'
    """
    parsed = parse_source(QueryText(text, name))
    if parsed.errors or parsed.query is None:
        raise QueryError(parsed.diagnostics)
    return parsed.query


def parse_source(source: QueryText) -> Parsed:
    """Parse a query as far as possible; errors of the query become diagnostics."""
    try:
        return _parsed(source)
    except TooManyErrors as stop:
        return Parsed(None, stop.findings.in_order())


def scanned(source: QueryText) -> SectionParser:
    """The text of a query that is not empty, not too long and not too deep, ready to be parsed.

    Raises:
        QueryError: it is none.
    """
    if len(source.text) > MOST_CHARACTERS:
        end = Span(MOST_CHARACTERS, MOST_CHARACTERS + 1)
        message = f"a query has at most {MOST_CHARACTERS:,} characters"
        raise QueryError((Diagnostic("error", "too-long", message, end, source),))
    parser = SectionParser.of(source)
    surrogate, error = _SURROGATE.search(source.text), parser.findings.error
    if surrogate is not None:
        error("a surrogate is not a character", Span(*surrogate.span()))
    elif not parser.lexemes:
        error("the query is empty", Span(0, 0), expected=FORMS[:2])
    elif parser.too_long is not None:
        message = f"a query has at most {MOST_LEXEMES:,} words and signs"
        error(message, parser.too_long, code="too-long")
    elif (deep := too_deep_groups(parser.lexemes)) is not None:
        error(TOO_DEEP, deep, code="too-deep")
    else:
        return parser
    raise QueryError(parser.findings.in_order())


def _parsed(source: QueryText) -> Parsed:
    try:
        parser = scanned(source)
    except QueryError as error:
        return Parsed(None, tuple(error.diagnostics))
    reading = read(parser)
    deep = too_deep(reading.nodes())
    if deep is not None:
        parser.findings.error(TOO_DEEP, deep, code="too-deep")
        return Parsed(None, parser.findings.in_order())
    query = _assembled(reading, parser.findings)
    whole = Span(parser.lexemes[0].start, parser.lexemes[-1].end)
    return Parsed(
        restore_spans(replace(query, span=whole), parser.findings.text),
        parser.findings.in_order(),
        frozenset(reading.broken_gpms),
        frozenset(reading.broken_clauses),
    )


def _assembled(reading: Reading, findings: Findings) -> ast.Query:
    """The query with its names resolved; a missing or broken part of it is empty."""
    names = NameResolver(findings, frozenset(reading.unreadable_prefixes))
    prologue = reading.clauses.get("prologue", [])
    names.declare(prologue)
    register = reading.only("register")
    having = reading.only("having")
    window = reading.only("window")
    # The order of the canonical text, in which blank nodes get their labels.
    register = register and names.resolved(register)
    form = names.resolved(reading.only("form") or ast.Select(None))
    window = window and names.resolved(window)
    partition = reading.only("partition")
    streams = [names.resolved(stream) for stream in reading.clauses.get("streams", [])]
    kbs = [names.resolved(kb) for kb in reading.clauses.get("kbs", [])]
    windows = [names.resolved(window) for window in reading.clauses.get("windows", [])]
    gpms = [names.resolved(gpm) for gpm in reading.gpms]
    having = having and names.resolved(having)
    _check(findings, form, windows, gpms, having)
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
        windows=tuple(windows),
    )


def _check(
    findings: Findings,
    form: ast.Form,
    windows: Iterable[ast.FromWindow],
    gpms: Iterable[ast.Gpm],
    having: ast.Expr | None,
) -> None:
    """Report violations of the rules beyond the grammar."""
    violations: list[Violation] = [*check_node(form)]
    for key in (window.key for window in windows if window.key is not None):
        violations += [*check_node(key), *check_labels(key)]
    for gpm in gpms:
        violations += [*check_node(gpm), *check_labels(gpm.pattern)]
    if having is not None:
        violations += check_node(having)
    for violation in violations:
        findings.error(violation.message, violation.span)


@record
class Violation:
    """A violation of a rule, with its place."""

    message: str
    span: Span


def check_node(node: ast.Node) -> Iterator[Violation]:
    """All violations in a node and below it, except violations of the blank node label rules."""
    for inner in walk_patterns(node):
        match inner:
            case ast.Call():
                yield from _call(inner)
            case ast.Values():
                yield from _values(inner)
            case ast.Triples(triples):
                for triple in triples:
                    yield from _annotation(triple.object)
            case ast.GroupGraphPattern():
                yield from _bindings(inner)
            case ast.SubSelect():
                in_pattern = pattern_variables(inner.pattern)
                yield from _projection((*inner.group_by, *(inner.items or ())), in_pattern)
                yield from _grouping(inner)
                yield from _aggregates_in_place(inner)
            case ast.Select():
                yield from _projection(inner.items or (), frozenset())


def check_labels(group: ast.GroupGraphPattern) -> Iterator[Violation]:
    """Blank node labels used in more than one basic graph pattern (note 10)."""
    first_pattern: dict[str, int] = {}
    for number, pattern in enumerate(_basic_graph_patterns(group)):
        for node in _blank_nodes(pattern):
            if first_pattern.setdefault(node.label, number) != number:
                message = "another basic graph pattern uses this blank node label too"
                yield Violation(message, node.span)


def _blank_nodes(pattern: Iterable[ast.Triples]) -> Iterator[ast.BlankNode]:
    terms = (term for block in pattern for t in block.triples for term in (t.subject, t.object))
    return (leaf for term in terms for leaf in leaves(term) if isinstance(leaf, ast.BlankNode))


def _basic_graph_patterns(node: ast.Node) -> Iterator[list[ast.Triples]]:
    """The basic graph patterns: blocks of triples with nothing but FILTERs between them."""
    pattern: list[ast.Triples] = []
    for child in children(node):
        match child:
            case ast.Triples():
                pattern.append(child)
            case ast.Filter():
                yield from _basic_graph_patterns(child)
            case _:
                if pattern:
                    yield pattern
                pattern = []
                yield from _basic_graph_patterns(child)
    if pattern:
        yield pattern


def _annotation(term: ast.Term) -> Iterator[Violation]:
    """A triple with a property path is no single triple, so nothing can reify it."""
    if isinstance(term, ast.TripleTerm) and not isinstance(term.predicate, ast.Var | ast.Iri):
        message = (
            "only a triple whose predicate is an IRI or a variable can have a reifier (~) or "
            "an annotation ({| |}), not one with a path"
        )
        yield Violation(message, term.span)


def _call(call: ast.Call) -> Iterator[Violation]:
    fewest, most = BUILT_INS[call.function]
    if len(call.args) < fewest or (most is not None and len(call.args) > most):
        wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        plural = "" if wanted == "1" else "s"
        message = f"{call.function} takes {wanted} argument{plural}, not {len(call.args)}"
        yield Violation(message, call.span)
    elif call.function == "BOUND" and not isinstance(call.args[0], ast.Var | ast.Prev):
        yield Violation("BOUND takes a variable", call.args[0].span)


def _values(values: ast.Values) -> Iterator[Violation]:
    for row in values.rows:
        if len(row) != len(values.variables):
            message = (
                f"VALUES has {len(values.variables)} variables, but {len(row)} values in a row"
            )
            yield Violation(message, next((cell.span for cell in row if cell), values.span))


def _bindings(group: ast.GroupGraphPattern) -> Iterator[Violation]:
    """BIND to a variable that the group has bound before (note 12)."""
    for number, element in enumerate(group.elements):
        if isinstance(element, ast.Bind):
            before = pattern_variables(ast.GroupGraphPattern(group.elements[:number]))
            if element.var.name in before:
                message = f"?{element.var.name} is bound before this BIND in the same group"
                yield Violation(message, element.var.span)


def _projection(items: Iterable[ast.SelectItem], bound: frozenset[str]) -> Iterator[Violation]:
    """`AS ?v` where ?v has a value already (note 13)."""
    names = set(bound)
    for item in items:
        if item.var is None:
            continue
        if item.expr is not None and item.var.name in names:
            yield Violation(f"?{item.var.name} already has a value", item.var.span)
        names.add(item.var.name)


def _grouping(query: ast.SubSelect) -> Iterator[Violation]:
    """A sub-query with groups selects only values that are unique in a group (section 11.4)."""
    expressions = [item.expr for item in query.items or () if item.expr is not None]
    aggregates = any(_aggregates(expr) for expr in (*expressions, *query.having))
    if not query.group_by and not aggregates:
        return
    if query.items is None:
        yield Violation("SELECT * cannot stand with GROUP BY or an aggregate", query.span)
    keys = (item.var or item.expr for item in query.group_by)
    known = {key.name for key in keys if isinstance(key, ast.Var)}
    for item in query.items or ():
        for var in _ungrouped(item.expr or item.var):
            if var.name not in known:
                yield Violation(f"?{var.name} is neither grouped by nor in an aggregate", var.span)
        if item.var is not None:
            known.add(item.var.name)


def _aggregates_in_place(query: ast.SubSelect) -> Iterator[Violation]:
    """Aggregates stand only in SELECT, HAVING and ORDER BY, and not inside each other."""
    for use in _own_aggregates(query.pattern):
        yield Violation(
            f"{use.function} cannot stand in the pattern of a sub-query: "
            "test it in HAVING, or give it a name in SELECT",
            use.span,
        )
    for key in query.group_by:
        for use in _own_aggregates(key):
            message = f"{use.function} cannot stand in GROUP BY: it needs the groups first"
            yield Violation(message, use.span)
    exprs = [item.expr for item in query.items or () if item.expr is not None]
    for expr in (*exprs, *query.having, *(order.expr for order in query.order_by)):
        for outer in _own_aggregates(expr):
            for use in _own_aggregates(outer.operand) if outer.operand else ():
                message = f"{use.function} cannot stand in another aggregate, {outer.function}"
                yield Violation(f"{message}: compute it in an inner sub-query", use.span)


def _own_aggregates(node: ast.Node) -> Iterator[ast.Aggregate]:
    """The outermost SPARQL aggregates in a node, but not in its sub-queries."""
    match node:
        case ast.SubSelect():
            return
        case ast.Aggregate(function) if function in SET_FUNCTIONS:
            yield node
        case _:
            for child in children(node):
                yield from _own_aggregates(child)


def _aggregates(expr: ast.Expr) -> bool:
    return any(isinstance(n, ast.Aggregate) and n.function in SET_FUNCTIONS for n in walk(expr))


def _ungrouped(expr: ast.Node | None) -> Iterator[ast.Var]:
    """The variables of an expression outside aggregates and EXISTS."""
    match expr:
        case None | ast.Aggregate() | ast.Exists():
            return
        case ast.Var():
            yield expr
        case _:
            for child in children(expr):
                yield from _ungrouped(child)
