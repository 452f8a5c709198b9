"""From the text of a lift to its syntax tree (docs/lift.md), with errors and warnings as for
queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from spaseq.errors import Diagnostic, QueryError, QueryText, Span
from spaseq.expr.compile import Options, problems
from spaseq.expr.extension import known_functions
from spaseq.lang import ast
from spaseq.lang.depth import DEEPEST, too_deep, too_deep_groups
from spaseq.lang.findings import Findings, TooManyErrors
from spaseq.lang.grammar.patterns import NOT_TRIPLES
from spaseq.lang.grammar.rules import (
    IRI,
    IRI_REFERENCE,
    NAMESPACE,
    VAR,
    just,
    keyword,
    mark,
    rule,
    whole,
)
from spaseq.lang.grammar.triples import TRIPLES_BLOCK, TRIPLES_TEMPLATE
from spaseq.lang.names import BaseClause, NameResolver, PrefixClause
from spaseq.lang.parser import MOST_CHARACTERS, check_node
from spaseq.lang.scan import restore_spans, scan
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.variables import expression_variables, walk
from spaseq.lift.lift_plan import (
    LiftPlan,
    LiftQuery,
    LiftTemplate,
    LiftWhere,
    TemplateGraph,
    Unnest,
    plan_lift,
)
from spaseq.rdf.terms.term import GENERATED_AT_TIME

_UNREPEATABLE = frozenset({"NOW", "RAND", "UUID", "STRUUID"})

_KINDS = {
    ast.Triples: "triple patterns",
    ast.OptionalGraphPattern: "OPTIONAL",
    ast.GroupOrUnionGraphPattern: "UNION",
    ast.MinusGraphPattern: "MINUS",
    ast.GraphGraphPattern: "GRAPH",
    ast.ServiceGraphPattern: "SERVICE",
    ast.EventGraphPattern: "EVENT",
    ast.GroupGraphPattern: "a group in braces",
    ast.SubSelect: "a sub-query",
}


def _flat(blocks: Any) -> tuple[ast.Triple, ...]:
    return tuple(triple for block in blocks for triple in block.triples)


def _graph(span: Span, name: ast.Var | ast.Iri, *blocks: ast.Triples) -> TemplateGraph:
    return TemplateGraph(name, _flat(blocks), span=span)


def _template(span: Span, *parts: ast.Triples | TemplateGraph) -> LiftTemplate:
    graphs = tuple(part for part in parts if isinstance(part, TemplateGraph))
    blocks = [part for part in parts if isinstance(part, ast.Triples)]
    return LiftTemplate(_flat(blocks), graphs, span=span)


def _unnest(span: Span, items: ast.Var, item: ast.Var) -> Unnest:
    return Unnest(items, item, span=span)


def _where(span: Span, *elements: Unnest | ast.Element) -> LiftWhere:
    return LiftWhere(elements, span=span)


_PROLOGUE = (
    rule(keyword("BASE") + just(IRI_REFERENCE), lambda span, iri: BaseClause(iri, span=span))
    | rule(
        keyword("PREFIX") + NAMESPACE + IRI_REFERENCE,
        lambda span, namespace, iri: PrefixClause(namespace.text[:-1], iri, span=span),
    )
)[...]
_GRAPH = rule(
    keyword("GRAPH") + (VAR | IRI) + mark("{") + TRIPLES_TEMPLATE[0, 1] + mark("}"), _graph
)
_TEMPLATE = rule(
    keyword("CONSTRUCT")
    + mark("{")
    + (_GRAPH + mark(".")[0, 1] | TRIPLES_TEMPLATE)[...]
    + mark("}"),
    _template,
)
_UNNEST = rule(keyword("UNNEST") + VAR + keyword("AS") + VAR, _unnest)
# All of SPARQL's patterns are read here; the checks refuse the others with their place.
_ELEMENT = (_UNNEST | NOT_TRIPLES) + mark(".")[0, 1] | TRIPLES_BLOCK
_WHERE = rule(keyword("WHERE")[0, 1] + mark("{") + _ELEMENT[...] + mark("}"), _where)

WHOLE_LIFT = whole(_PROLOGUE + _TEMPLATE + _WHERE)

NodeT = TypeVar("NodeT", bound=ast.Node)

_OF_QUERIES = frozenset({"SEQ", "WITHIN", "DEFINE", "STREAM"})


@dataclass(frozen=True, slots=True)
class ParsedLift:
    """A lift with its diagnostics; `lift` is None if it cannot be read."""

    source: QueryText
    lift: LiftQuery | None
    diagnostics: tuple[Diagnostic, ...]


def is_lift(text: str, name: str = "") -> bool:
    """Whether a text is a lift rather than a query, by its name (`.lift.rq`) or by its words.

    >>> is_lift("CONSTRUCT { ?s ?p ?o } WHERE { }"), is_lift("CONSTRUCT {} WITHIN 1 HOURS")
    (True, False)
    """
    if name.endswith(".lift.rq"):
        return True
    words = {lexeme.keyword for lexeme in scan(text[:MOST_CHARACTERS])}
    return "CONSTRUCT" in words and not words & _OF_QUERIES


def parse_lift(text: str, name: str = "<lift>") -> ParsedLift:
    """Parse a lift and resolve its names. Mistakes become diagnostics."""
    source = QueryText(text, name)
    try:
        if len(text) > MOST_CHARACTERS:
            end = Span(MOST_CHARACTERS, MOST_CHARACTERS + 1)
            message = f"a lift has at most {MOST_CHARACTERS:,} characters"
            return ParsedLift(
                source, None, (Diagnostic("error", "too-long", message, end, source),)
            )
        parser = SectionParser.of(source)
        lift = _read(parser)
        return ParsedLift(source, lift, parser.findings.in_order())
    except TooManyErrors as stop:
        return ParsedLift(source, None, stop.findings.in_order())


def _read(parser: SectionParser) -> LiftQuery | None:

    findings = parser.findings
    if not parser.lexemes:
        findings.error("the lift is empty", Span(0, 0), expected=("CONSTRUCT",))
        return None
    if parser.too_long is not None:
        findings.error("the lift has too many words and signs", parser.too_long, code="too-long")
        return None
    deep, nodes = too_deep_groups(parser.lexemes), None
    if deep is None:
        nodes = parser.parse(WHOLE_LIFT, Span(0, len(parser.text)), "the lift", then="the end")
        deep = too_deep(nodes or ())
    if deep is not None:
        findings.error(f"the lift is more than {DEEPEST} levels deep here", deep, code="too-deep")
        return None
    return None if nodes is None else _resolved(nodes, findings)


def _resolved(nodes: list[ast.Node], findings: Findings) -> LiftQuery:
    names = NameResolver(findings)
    names.declare([n for n in nodes if isinstance(n, BaseClause | PrefixClause)])
    template = _only(nodes, LiftTemplate)
    where = _only(nodes, LiftWhere)
    span = Span(nodes[0].span.start, nodes[-1].span.end)
    lift = LiftQuery(names.resolved(template), names.resolved(where), names.base, span=span)
    return restore_spans(lift, findings.text)


def _only(nodes: list[ast.Node], kind: type[NodeT]) -> NodeT:
    return next(node for node in nodes if isinstance(node, kind))


@dataclass(frozen=True, slots=True)
class _Finding:
    code: str
    message: str
    node: ast.Node
    suggestion: str | None = None
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True, slots=True)
class CheckedLift:
    """A lift with all findings; `plan` is None if there are errors."""

    plan: LiftPlan | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that keep no lift from running."""
        return tuple(d for d in self.diagnostics if d.severity == "warning")


def check_lift(
    text: str, name: str = "<lift>", time_predicate: str = GENERATED_AT_TIME, time_unit: str = "ms"
) -> CheckedLift:
    """Parse and check a lift.

    >>> [d.message for d in check_lift("CONSTRUCT { ?s ?p 1 } WHERE { ?s ?p ?o }").diagnostics][:1]
    ['triple patterns cannot stand in a lift: its WHERE has BIND, FILTER, VALUES and UNNEST']
    """
    parsed = parse_lift(text, name)
    diagnostics = list(parsed.diagnostics)
    if parsed.lift is not None:
        for each in _findings(parsed.lift, time_predicate):
            details = each.node.span, parsed.source, (), each.suggestion
            diagnostics.append(Diagnostic(each.severity, each.code, each.message, *details))
    diagnostics = sorted(dict.fromkeys(diagnostics), key=lambda d: (d.span.start, d.severity))
    failed = parsed.lift is None or any(d.severity == "error" for d in diagnostics)
    if failed:
        return CheckedLift(None, tuple(diagnostics))
    assert parsed.lift is not None
    plan = plan_lift(parsed.lift, name, time_predicate, time_unit)
    return CheckedLift(plan, tuple(diagnostics))


def compiled_lift(
    text: str, name: str = "<lift>", time_predicate: str = GENERATED_AT_TIME, time_unit: str = "ms"
) -> LiftPlan:
    """The plan of a lift.

    Raises:
        QueryError: with every error of the lift.
    """
    checked = check_lift(text, name, time_predicate, time_unit)
    if checked.plan is None:
        raise QueryError(tuple(d for d in checked.diagnostics if d.severity == "error"))
    return checked.plan


def _findings(lift: LiftQuery, time_predicate: str) -> Iterator[_Finding]:
    yield from _template_findings(lift, time_predicate)
    for element in lift.where.elements:
        kind = _KINDS.get(type(element))
        if kind is not None:
            message = (
                f"{kind} cannot stand in a lift: its WHERE has BIND, FILTER, VALUES and UNNEST"
            )
            yield _Finding("lift-pattern", message, element)
        else:
            yield from _expression_findings(element)
            for violation in check_node(element):
                yield _Finding("syntax", violation.message, ast.Node(span=violation.span))
    yield from _names(lift)


def _template_findings(lift: LiftQuery, time_predicate: str) -> Iterator[_Finding]:
    template = lift.template
    inside = [triple for graph in template.graphs for triple in graph.triples]
    if template.graphs:
        for triple in template.triples:
            if triple.predicate != ast.Iri(time_predicate):
                message = (
                    f"outside GRAPH only the event's time may stand, a triple of <{time_predicate}>"
                )
                yield _Finding("lift-outside-graph", message, triple)
    every = [*template.triples, *inside]
    if not any(
        t.predicate == ast.Iri(time_predicate) or isinstance(t.predicate, ast.Var) for t in every
    ):
        message = f"no triple of <{time_predicate}> gives the event its time"
        yield _Finding("lift-time", message, template, severity="warning")


def _expression_findings(element: ast.Node) -> Iterator[_Finding]:
    for node in walk(element):
        match node:
            case ast.Call(name, args) if name in _UNREPEATABLE or (name == "BNODE" and not args):
                message = f"{name}() cannot stand in a lift: the same row must give the same event"
                yield _Finding("lift-function", message, node)
            case ast.Aggregate(name) | ast.Call(name) if isinstance(node, ast.Aggregate):
                yield _Finding("lift-function", f"{name} cannot stand in a lift", node)
            case ast.Prev() | ast.Timestamp():
                yield _Finding("lift-function", "PREV and TIMESTAMP belong to sequences", node)
            case ast.Exists():
                yield _Finding("lift-function", "EXISTS cannot stand in a lift", node)
    if isinstance(element, ast.Bind | ast.Filter):
        wrong = ast.Aggregate | ast.Exists
        if not any(isinstance(n, wrong) for n in walk(element.expr)):
            for problem in problems(element.expr, Options(functions=known_functions())):
                yield _Finding("expression", str(problem), problem.node, problem.suggestion)


def _names(lift: LiftQuery) -> Iterator[_Finding]:
    """A variable that BIND or UNNEST would bind a second time, or after it was used."""
    used: dict[str, str] = {}
    for element in lift.where.elements:
        match element:
            case ast.Bind(expr, var):
                if used.get(var.name) == "bound":
                    message = f"?{var.name} is bound before this BIND"
                    yield _Finding("syntax", message, var)
                elif used.get(var.name) == "read" or var.name in expression_variables(expr):
                    message = f"?{var.name} is read before this BIND: BIND gives a new name"
                    yield _Finding("lift-field", message, var)
                used.update(dict.fromkeys(expression_variables(expr) - used.keys(), "read"))
                used[var.name] = "bound"
            case Unnest(items, item):
                if item.name in used or item.name == items.name:
                    message = f"?{item.name} has a value before this UNNEST, which needs a new name"
                    yield _Finding("lift-field", message, item)
                if used.get(items.name) == "bound":
                    message = f"?{items.name} is computed, and only a field can be a list"
                    yield _Finding("lift-field", message, items)
                used.setdefault(items.name, "read")
                used[item.name] = "element"
            case ast.Values(variables):
                used.update({v.name: "bound" for v in variables})
