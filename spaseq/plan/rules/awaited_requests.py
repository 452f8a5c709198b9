"""The rule awaited-requests."""

from __future__ import annotations

from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import with_gpms


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
