"""The rules pushed-predicates and pruned-columns: what nobody reads is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from spaseq.algebra.needs import (
    Predicates,
    predicates_of_expression,
    predicates_read,
    together,
)
from spaseq.algebra.substitution import mentions
from spaseq.plan.pattern_plan import ContentPlan, GpmPlan
from spaseq.plan.query_plan import AnswerPlan, QueryPlan
from spaseq.rdf.schema import Schema


def pushed_predicates(plan: QueryPlan) -> QueryPlan:
    """Readers keep only the triples of an event that the query can read.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["pushed-predicates"]))
    >>> plan.inputs.predicates
    (None,)
    >>> pushed_predicates(plan).inputs.predicates
    (('http://e/is',),)
    """
    streams = range(len(plan.inputs.streams))
    predicates = tuple(_read(plan, stream) for stream in streams)
    return replace(plan, inputs=replace(plan.inputs, predicates=predicates))


def _read(plan: QueryPlan, stream: int) -> tuple[str, ...] | None:
    """The predicate IRIs, sorted, that the GPMs on a stream read; None if they may read all."""
    schema, patterns = plan.expressions.schema, plan.patterns
    gpms = (gpm for gpm in patterns.gpms if stream in gpm.streams)
    memberships = (
        membership for membership in patterns.memberships if stream in membership.streams
    )
    read = together(
        [
            *(_of_gpm(gpm, schema) for gpm in gpms),
            *(predicates_read(membership.pattern, schema) for membership in memberships),
            *(
                _of_content(content, schema)
                for content in patterns.contents
                if stream in content.gpm.streams
            ),
        ]
    )
    return None if read is None else tuple(sorted(text[1:-1] for text in read))


def _of_content(content: ContentPlan, schema: Schema | None) -> Predicates:
    kept = content.predicates
    return together(
        [predicates_read(content.gpm.pattern, schema), None if kept is None else frozenset(kept)]
    )


def _of_gpm(gpm: GpmPlan, schema: Schema | None) -> Predicates:
    return together(
        [
            predicates_read(gpm.pattern, schema),
            *(predicates_of_expression(e, schema) for e in gpm.conditions),
        ]
    )


def pruned_columns(plan: QueryPlan) -> QueryPlan:
    """Stage 1 drops the values that neither the sequence nor the answers need.

    It keeps them for an event with several solutions, which they distinguish, and for a correlated
    GPM.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT ?y WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A; B) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y }
    ...     DEFINE GPM B ON S { ?z <http://e/was> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["pruned-columns"]))
    >>> [sorted(gpm.private) for gpm in plan.patterns.gpms]
    [[], []]
    >>> [sorted(gpm.private) for gpm in pruned_columns(plan).patterns.gpms]
    [['x'], ['z']]
    """
    public = frozenset(_read_outside(plan))
    gpms = tuple(
        gpm if gpm.correlation else replace(gpm, private=frozenset(gpm.variables) - public)
        for gpm in plan.patterns.gpms
    )
    return replace(plan, patterns=replace(plan.patterns, gpms=gpms))


def _read_outside(plan: QueryPlan) -> Iterator[str]:
    """The variables that are read outside their GPM."""
    sequence = plan.sequence
    yield from (*sequence.evaluator.key, *sequence.partition, *(sequence.key.variables or ()))
    yield from plan.patterns.columns.numbers
    yield from _bound_twice(plan)
    for gpm in plan.patterns.gpms:
        if gpm.correlation is not None:
            yield from gpm.correlation.reads
            yield from (v for _, expr in gpm.correlation.parameters for v in mentions(expr))
    yield from _shown(plan.answers)


def _bound_twice(plan: QueryPlan) -> Iterator[str]:
    """The variables that more than one place in the sequence binds."""
    variables = {g.name: g.variables for g in plan.patterns.gpms}
    uses = plan.sequence.scope.occurrences
    bound = Counter(v for use in uses for v in variables[use.gpm])
    return (v for v, count in bound.items() if count > 1)


def _shown(answers: AnswerPlan) -> Iterator[str]:
    """The variables of the answers."""
    for item in answers.projection:
        yield from (item.name,) if item.expr is None else mentions(item.expr)
    for computed in answers.computed:
        yield from mentions(computed.expr)
    if answers.having is not None:
        yield from mentions(answers.having)
    if answers.template is not None:
        yield from answers.template.variables
