"""The rule pruned-columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from spaseq.algebra.substitution import mentions
from spaseq.plan.query_plan import AnswerPlan, QueryPlan


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
    public = frozenset(_read(plan))
    gpms = tuple(
        gpm if gpm.correlation else replace(gpm, private=frozenset(gpm.variables) - public)
        for gpm in plan.patterns.gpms
    )
    return replace(plan, patterns=replace(plan.patterns, gpms=gpms))


def _read(plan: QueryPlan) -> Iterator[str]:
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
