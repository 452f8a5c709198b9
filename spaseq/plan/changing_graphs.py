"""Queries that read changing graphs (docs/meaning.md#knowledge-that-changes).

Stage 1 evaluates the patterns that read the event alone; stage 2 joins these solutions with the
graphs at the event's time. If a pattern cannot be split so, stage 1 passes the events on, and stage
2 matches them in order. A query that maintains a graph is like one that registers a stream: its
readers read the stream of its changes, too, and wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.graph_changes import changes_of
from spaseq.algebra.nodes import mapped
from spaseq.algebra.substitution import core
from spaseq.plan.query_plan import ChangingGraphs, QueryPlan, StageKey
from spaseq.plan.rules.kept_groups import keeping_lasting
from spaseq.plan.signatures import Hashes, Signature, hash_of
from spaseq.plan.split_patterns import SplitPattern, reads, split
from spaseq.rdf.columns.solution_columns import SolutionColumns

HANDED_ON = tuple(n.RESERVED + place for place in ("subject", "predicate", "object"))
"""The variables that hold the triples of a passed-on event, one triple per row."""

_KEY = StageKey(None, "graphs that change are read when the events stand in order")


def connected(plans: Sequence[QueryPlan], outside: Collection[str] = ()) -> tuple[QueryPlan, ...]:
    """The plans of a run, with changing graphs where they read such graphs.

    Args:
        plans: all queries of the run.
        outside: the IRIs of graphs that change externally.
    """
    maintained = {plan.maintained for plan in plans if plan.maintained is not None}
    changing = {*maintained, *outside}
    if not changing:
        return tuple(plans)
    return tuple(_reading(plan, changing, maintained) for plan in plans)


def reading_kept(plan: QueryPlan, graphs: Collection[str]) -> QueryPlan:
    """A plan that reads graphs as if queries maintained them."""
    return _reading(plan, graphs, graphs)


def _reading(plan: QueryPlan, changing: Collection[str], maintained: Collection[str]) -> QueryPlan:
    graphs = tuple(iri for iri in plan.inputs.kbs if iri in changing)
    if not graphs or plan.changing is not None:
        return plan
    makers = tuple(iri for iri in graphs if iri in maintained)
    streams = tuple(map(changes_of, makers))
    plan = keeping_lasting(plan, graphs)
    inputs, patterns = plan.inputs, plan.patterns
    splits = _splits(plan, graphs)
    if splits is None:
        own = tuple(_candidate(gpm.pattern, graphs) for gpm in patterns.gpms)
    else:
        own = tuple(each.own for each in splits)
    handed_on = {v for each in splits or () for v in each.handed_on}
    by_windows = _is_read_by_windows(plan, graphs)
    has_steps = any(each.steps for each in splits or ())
    form = [word for word, own in (("steps", has_steps), ("windows", by_windows)) if own]
    columns = dict.fromkeys((*patterns.columns.variables, *sorted(handed_on), *HANDED_ON))
    return replace(
        plan,
        changing=ChangingGraphs(
            graphs,
            makers,
            own,
            splits,
            _looks_at_every_event(plan),
            by_windows,
        ),
        inputs=replace(
            inputs,
            streams=(*inputs.streams, *streams),
            stream_names=(*inputs.stream_names, *streams),
            predicates=(*inputs.predicates, *(None for _ in streams)),
        ),
        patterns=replace(
            patterns,
            columns=SolutionColumns((*columns,), patterns.columns.numbers),
            evaluation=replace(patterns.evaluation, virtual=False),
        ),
        sequence=replace(plan.sequence, key=_KEY),
        shaped=None,
        is_member=False,
        signature=_signed(plan.signature, (*graphs, *streams, *form)),
    )


def _looks_at_every_event(plan: QueryPlan) -> bool:
    return bool(plan.sequence.needs_instants or plan.patterns.memberships or plan.inputs.windows)


def _is_read_by_windows(plan: QueryPlan, graphs: Collection[str]) -> bool:
    """Whether only GPMs on windows read the graphs."""
    patterns = plan.patterns
    others = [gpm.pattern for gpm in patterns.gpms if not gpm.windows]
    others += [each.pattern for each in patterns.memberships]
    return bool(plan.inputs.windows) and not any(reads(each, graphs) for each in others)


def _splits(plan: QueryPlan, graphs: Collection[str]) -> tuple[SplitPattern, ...] | None:
    """The split GPMs; None unless the split is correct for each."""
    if _looks_at_every_event(plan) or any(gpm.correlation for gpm in plan.patterns.gpms):
        return None
    schema = plan.expressions.schema
    splits = [split(gpm.pattern, graphs, schema) for gpm in plan.patterns.gpms]
    return None if None in splits else tuple(each for each in splits if each is not None)


def _candidate(pattern: n.Pattern, graphs: Collection[str]) -> n.Pattern:
    """A pattern with a solution on each event on which `pattern` may have one."""

    def without(part: n.Pattern) -> n.Pattern:
        if isinstance(part, n.Graph) and not _is_constant(part, graphs):
            return n.UNIT
        return mapped(part, without)

    return without(core(pattern))


def _is_constant(part: n.Graph, graphs: Collection[str]) -> bool:
    return isinstance(part.name, str) and part.name[1:-1] not in graphs


def _signed(signature: Signature, read: Sequence[str]) -> Signature:
    def made() -> Hashes:
        text = "\n".join([signature.fingerprint, "changing rows", *read])
        return hash_of(text), signature.canonical

    return Signature(made)
