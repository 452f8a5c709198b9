"""The query in question: its text, syntax tree and plan, and the parts of a group graph pattern
that every solution must match, each as a group by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from spaseq.diagnosis.nearest_terms import as_written
from spaseq.diagnosis.report import Cause
from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.format_triples import TermText
from spaseq.lang.resolve import Resolved
from spaseq.lang.variables import conjuncts
from spaseq.plan.gpm_plans import membership_plans
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.schema import Schema
from spaseq.records import record

Node: TypeAlias = ast.Triple | ast.Element

FREE = " free"
"""The variable that takes the place of a constant. No query can write its name."""


@record
class Part:
    """A triple pattern, or another element of a group."""

    node: Node

    @property
    def alone(self) -> ast.GroupGraphPattern:
        """The part as a group."""
        return group_of([self.node])

    @property
    def demands(self) -> bool:
        """Whether the part must match: OPTIONAL, MINUS and BIND need not."""
        optional = ast.OptionalGraphPattern | ast.MinusGraphPattern | ast.Bind
        return not isinstance(self.node, optional)

    @property
    def is_remote(self) -> bool:
        """Whether the part reads no event: GRAPH and SERVICE."""
        return isinstance(self.node, ast.GraphGraphPattern | ast.ServiceGraphPattern)


def group_of(nodes: Iterable[Node]) -> ast.GroupGraphPattern:
    """Parts and FILTERs as a group."""
    return ast.GroupGraphPattern(
        tuple(ast.Triples((n,)) if isinstance(n, ast.Triple) else n for n in nodes)
    )


def parts_of(group: ast.GroupGraphPattern) -> list[Part]:
    """The parts of a group in the order of the text, without its FILTERs."""
    parts: list[Part] = []
    for element in group.elements:
        if isinstance(element, ast.Triples):
            parts.extend(map(Part, element.triples))
        elif not isinstance(element, ast.Filter):
            parts.append(Part(element))
    return parts


@record
class Condition:
    """A conjunct of a FILTER."""

    filter: ast.Filter
    expr: ast.Expr


def conditions_of(group: ast.GroupGraphPattern) -> list[Condition]:
    """The conjuncts of a group's own FILTERs, in the order of the text."""
    filters = (e for e in group.elements if isinstance(e, ast.Filter))
    return [Condition(node, expr) for node in filters for expr in conjuncts([node.expr])]


def inner_groups(node: Node) -> tuple[ast.GroupGraphPattern, ...]:
    """The groups inside a part, one of which must match."""
    match node:
        case ast.GroupGraphPattern():
            return (node,)
        case ast.GroupOrUnionGraphPattern(alternatives):
            return alternatives
        case ast.SubSelect(pattern=pattern) | ast.EventGraphPattern(pattern=pattern):
            return (pattern,)
        case _:
            return ()


def needed_predicates(predicate: ast.Var | ast.Path) -> Iterator[ast.Iri]:
    """The predicates without which a triple pattern cannot match."""
    match predicate:
        case ast.Iri():
            yield predicate
        case ast.PathSequence(parts):
            for part in parts:
                yield from needed_predicates(part)
        case ast.PathInverse(inner) | ast.PathRepeat(inner, "+"):
            yield from needed_predicates(inner)


def all_predicates(group: ast.GroupGraphPattern) -> Iterator[ast.Iri]:
    """The predicates without which the events of a group cannot match."""
    for part in parts_of(group):
        if isinstance(part.node, ast.Triple):
            yield from needed_predicates(part.node.predicate)
        elif len(inner := inner_groups(part.node)) == 1:
            yield from all_predicates(inner[0])


def constants(triple: ast.Triple) -> Iterator[tuple[str, ast.Iri | ast.Literal]]:
    """(place, constant) of the subject and the object, the object first."""
    for role, term in (("object", triple.object), ("subject", triple.subject)):
        if isinstance(term, ast.Iri | ast.Literal):
            yield role, term


def freed(triple: ast.Triple, role: str) -> ast.Triple:
    """A triple pattern with the variable `FREE` in place of its subject or its object."""
    if role == "object":
        return replace(triple, object=ast.Var(FREE))
    return replace(triple, subject=ast.Var(FREE))


def shown_triple(terms: TermText, triple: ast.Triple) -> str:
    """A triple pattern written out, with the subject that the text may have left out."""
    texts = (terms.term(triple.subject), terms.verb(triple.predicate), terms.term(triple.object))
    return " ".join("[]" if text.startswith("_:") else text for text in texts)


@record
class Question:
    """A question about a query.

    `plan` is the plan of a run. `watched` is the same plan, but its stage 1 passes on the values of
    all variables and the instants of all events.
    """

    resolved: Resolved
    plan: QueryPlan
    watched: QueryPlan
    schema: Schema | None = None

    @classmethod
    def of(cls, resolved: Resolved, plan: QueryPlan, schema: Schema | None = None) -> Question:
        """The question about a query with a plan, without partial matches."""
        plan = replace(plan, levels=())
        return cls(resolved, plan, _watched(resolved, plan, schema), schema)

    def place(self, span: Span) -> tuple[int, int]:
        """(line, column) of the first character, from 1."""
        return self.resolved.source.place(span.start)

    def text(self, span: Span) -> str:
        """The text of the query at a place."""
        return self.resolved.source.text[span.start : span.end]

    def line(self, span: Span) -> str:
        """The text of the query at a place, on one line."""
        return " ".join(self.text(span).split())

    @property
    def terms(self) -> TermText:
        """Writes terms with the prefixes of the query."""
        return TermText(self.resolved.query.prologue)

    def event_iri(self, text: str) -> str:
        """The IRI of an event as users write it: `<iri>`, a prefixed name or the bare IRI.

        A name whose prefix the query does not declare is an IRI, such as `urn:e1`.
        """
        text = text.strip()
        if text.startswith("<") and text.endswith(">"):
            return text[1:-1]
        prefix, colon, local = text.partition(":")
        for declared in self.resolved.query.prologue.prefixes:
            if colon and declared.prefix == prefix and not local.startswith("//"):
                return declared.iri + re.sub(r"\\(.)", r"\1", local)
        return text

    def gpm(self, name: str) -> ast.Gpm:
        """The definition of a GPM."""
        return next(gpm for gpm in self.resolved.query.gpms if gpm.name == name)

    def streams_of(self, gpm: str) -> set[str]:
        """The names of the streams that a GPM reads, by windows, too."""
        of_windows = {window.name: window.streams for window in self.resolved.query.windows}
        refs = (of_windows.get(ref.name, (ref,)) for ref in self.gpm(gpm).streams)
        return {ref.name for some in refs for ref in some}

    def gpm_plan(self, name: str) -> GpmPlan:
        """The plan of a GPM that the sequence uses."""
        return next(gpm for gpm in self.watched.patterns.gpms if gpm.name == name)

    def gpm_number(self, name: str) -> int:
        """The number of a GPM in `SolutionBatch.gpm`."""
        return [gpm.name for gpm in self.watched.patterns.gpms].index(name)

    def step_of(self, gpm: str) -> int | None:
        """The number of the first top-level step that uses a GPM, from 1."""
        for number, step in enumerate(self.resolved.query.sequence.steps, 1):
            if gpm in _names(step):
                return number
        return None


def _names(node: ast.Step | ast.Sequence) -> set[str]:
    """The GPMs of a step or a sequence; UNTIL's, too."""
    if isinstance(node, ast.Sequence):
        return {name for step in node.steps for name in _names(step)}
    until = None if node.quantifier is None else node.quantifier.until
    names = set() if until is None else {until.name}
    if isinstance(node.atom, ast.Ref):
        return names | {node.atom.name}
    return names | {name for operand in node.atom.operands for name in _names(operand)}


def _watched(resolved: Resolved, plan: QueryPlan, schema: Schema | None) -> QueryPlan:
    sequence = replace(plan.sequence, needs_instants=True)
    gpms = tuple(replace(gpm, private=frozenset[str]()) for gpm in plan.patterns.gpms)
    memberships = membership_plans(resolved, schema, gpms, sequence)
    patterns = replace(plan.patterns, gpms=gpms, memberships=memberships)
    return replace(plan, patterns=patterns, sequence=sequence)


@record
class GpmPlace:
    """One GPM of a question, and the number of the step that uses it."""

    question: Question
    gpm: str
    step: int | None

    def cause(
        self,
        kind: str,
        node: ast.Node,
        text: str,
        count: int = 0,
        term: str | None = None,
        suggestion: str | None = None,
        example: str | None = None,
    ) -> Cause:
        """A cause at a node of the query."""
        line, column = self.question.place(node.span)
        return Cause(
            kind=kind,
            gpm=self.gpm,
            step=self.step,
            line=line,
            column=column,
            count=count,
            term=term,
            suggestion=suggestion,
            example=example,
            text=text,
            shown=self.shown(node),
        )

    def condition(
        self,
        kind: str,
        condition: Condition,
        text: str,
        count: int,
        term: str | None = None,
        suggestion: str | None = None,
        example: str | None = None,
    ) -> Cause:
        """A cause at a FILTER, which shows one conjunct of it."""
        cause = self.cause(kind, condition.filter, text, count, term, suggestion, example)
        return replace(cause, shown=self.shown(condition.expr))

    def shown(self, node: ast.Node) -> str:
        """The text of a node on one line, cut where it is long."""
        if isinstance(node, ast.Triple):
            return shown_triple(self.question.terms, node)
        text = self.question.line(node.span)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."

    def written(self, text: str) -> str:
        """A term's N-Triples text with the prefixes of the query."""
        return as_written(self.question.terms, text)


_LONGEST = 60
"""Maximum number of characters of the query that a cause shows."""
