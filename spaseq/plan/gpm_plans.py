"""The GPMs of a query as algebra, and as parts of a plan."""

from __future__ import annotations

from dataclasses import replace

from spaseq.algebra.nodes import possible, visible
from spaseq.algebra.schema import Schema
from spaseq.algebra.translate import EVENT, GpmAlgebra, membership_pattern, split_gpm
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import seen_before
from spaseq.lang.windows import is_on_windows, windows_of
from spaseq.plan.query_plan import GpmPlan, Membership, SequencePlan
from spaseq.plan.window_plans import algebra_on_windows, sources_of, values_needed


def gpm_algebra(
    resolved: Resolved, schema: Schema | None = None, awaited: bool = False
) -> dict[str, GpmAlgebra]:
    """The algebra of each GPM that the sequence uses, by name, in the order of the text.

    `awaited` is that of `split_gpm`.
    """
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    used = {o.gpm for o in resolved.scope.occurrences}

    def algebra(gpm: ast.Gpm) -> GpmAlgebra:
        before = frozenset(seen.get(gpm.name, ()))
        if windows_of(gpm, resolved.query):
            return algebra_on_windows(gpm, resolved, before, schema)
        return split_gpm(gpm, before, schema, awaited)

    return {gpm.name: algebra(gpm) for gpm in resolved.query.gpms if gpm.name in used}


def gpm_plans(resolved: Resolved, schema: Schema | None) -> tuple[GpmPlan, ...]:
    """The GPMs that the sequence uses, in the order of the text."""
    algebra = gpm_algebra(resolved, schema)
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    return tuple(_gpm_plan(resolved, gpms[name], of_gpm) for name, of_gpm in algebra.items())


def with_awaited(
    resolved: Resolved, schema: Schema | None, plans: tuple[GpmPlan, ...]
) -> tuple[GpmPlan, ...]:
    """The GPMs, each with its `awaited` form if it has one.

    There is none for a GPM that asks no endpoint, that comes first in the sequence, or whose
    endpoints bind a variable of PARTITION BY.
    """
    algebra = gpm_algebra(resolved, schema, awaited=True)
    partition = {v.name for v in resolved.query.partition}
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    made = []
    for plan in plans:
        awaited = algebra[plan.name]
        waits = plan.correlation is None and awaited.correlation is not None
        if waits and partition & plan.certain <= awaited.certain:
            plan = replace(plan, awaited=_gpm_plan(resolved, gpms[plan.name], awaited))
        made.append(plan)
    return tuple(made)


def membership_plans(
    resolved: Resolved,
    schema: Schema | None,
    gpms: tuple[GpmPlan, ...],
    sequence: SequencePlan,
) -> tuple[Membership, ...]:
    """The patterns that decide the partitions of events; none if stage 1 need not know them.

    Stage 1 has to know the partitions of all events if stage 2 needs the instants of all events, or
    if a GPM, which must be a negated one, does not bind every variable of PARTITION BY. All GPMs
    that may bind these variables count, also the GPMs that the sequence does not use.
    """
    partition = set(sequence.partition)
    spread = any(not partition <= gpm.certain for gpm in gpms)
    if not partition or not (spread or sequence.needs_instants):
        return ()
    memberships = (
        Membership(gpm.name, _streams(resolved, gpm), membership_pattern(gpm, schema))
        for gpm in resolved.query.gpms
        if not is_on_windows(gpm, resolved.query)
    )
    return tuple(m for m in memberships if partition <= visible(possible(m.pattern)))


def _streams(resolved: Resolved, gpm: ast.Gpm) -> tuple[int, ...]:
    streams = [s.name for s in resolved.query.streams]
    return tuple(sorted({streams.index(r.name) for r in gpm.streams if r.name in streams}))


def _gpm_plan(resolved: Resolved, gpm: ast.Gpm, algebra: GpmAlgebra) -> GpmPlan:
    positive = {o.gpm for o in resolved.scope.occurrences if o.negation is None}
    variables = sorted(algebra.possible)
    if algebra.correlation is not None:
        variables.append(EVENT)
    return GpmPlan(
        gpm.name,
        _streams(resolved, gpm),
        algebra.pattern,
        tuple(variables),
        algebra.certain,
        algebra.deferred,
        gpm.name not in positive,
        algebra.correlation,
        windows=sources_of(gpm, resolved.query),
        needed=values_needed(algebra, (v.name for v in resolved.query.partition)),
    )
