"""The rules that change only how, or when, graph patterns are evaluated.

>>> from spaseq.compile import CompileOptions, compile_query
>>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
>>> plan = compile_query(query, options=CompileOptions(disable=["lazy-operands"]))
>>> plan.patterns.evaluation.lazy, lazy_operands(plan).patterns.evaluation.lazy
(False, True)
"""

from __future__ import annotations

from dataclasses import replace

from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import with_gpms


def virtual_triples(plan: QueryPlan) -> QueryPlan:
    """Triple patterns over lifted events are evaluated on the columns of the rows, without triples.

    Events without a lift are evaluated as without this rule.
    """
    return _with_evaluation(plan, virtual=True)


def rare_triples_first(plan: QueryPlan) -> QueryPlan:
    """The triple pattern with the fewest matches in the stream comes first."""
    return _with_evaluation(plan, rare_first=True)


def shared_patterns(plan: QueryPlan) -> QueryPlan:
    """Triple patterns that several GPMs share are evaluated once."""
    return _with_evaluation(plan, shared=True)


def lazy_operands(plan: QueryPlan) -> QueryPlan:
    """OPTIONAL, paths, EXISTS and others wait until the triple patterns of their group match."""
    return _with_evaluation(plan, lazy=True)


def indexed_places(plan: QueryPlan) -> QueryPlan:
    """FILTERs that compare an event's place with places of the KB use a spatial index."""
    return _with_evaluation(plan, places=True)


def _with_evaluation(plan: QueryPlan, **switches: bool) -> QueryPlan:
    """The plan with some fields of its `PatternEvaluation` changed."""
    evaluation = replace(plan.patterns.evaluation, **switches)
    return replace(plan, patterns=replace(plan.patterns, evaluation=evaluation))


def awaited_requests(plan: QueryPlan) -> QueryPlan:
    """A pushed event causes a request to an endpoint only if a partial match awaits the event.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A; B) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y }
    ...     DEFINE GPM B ON S { ?z <e:at> ?w SERVICE <e:p> { ?w <e:in> ?v } } }'''
    >>> options = CompileOptions(disable=["awaited-requests"], pushed=True)
    >>> plan = compile_query(query, options=options)
    >>> [gpm.correlation is not None for gpm in plan.patterns.gpms]
    [False, False]
    >>> [gpm.correlation is not None for gpm in awaited_requests(plan).patterns.gpms]
    [False, True]
    """
    if all(gpm.awaited is None for gpm in plan.patterns.gpms):
        return plan
    return with_gpms(plan, tuple(map(_awaited, plan.patterns.gpms)))


def _awaited(gpm: GpmPlan) -> GpmPlan:
    return gpm if gpm.awaited is None else gpm.awaited
