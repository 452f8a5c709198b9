"""What each rule of the planner has changed in a plan, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import is_reserved
from spaseq.algebra.translate import AWAITED
from spaseq.expr.place_tests import place_joins
from spaseq.lang.variables import exists_uses
from spaseq.plan.query_plan import GpmPlan, KeptGroups, QueryPlan
from spaseq.plan.rules import RULES, name_of
from spaseq.render.query_words import variables_text

Effect: TypeAlias = Callable[[QueryPlan], Iterable[str]]
"""What a rule has changed, judged from the plan after all rules; nothing if it changed nothing."""


def effects(plan: QueryPlan) -> Iterator[tuple[str, list[str]]]:
    """(name of a rule, what it has changed) for each rule that has changed something."""
    for name in map(name_of, RULES):
        if name not in plan.disabled:
            changes = list(EFFECTS[name](plan))
            if changes:
                yield name, changes


def basic_pattern(gpm: GpmPlan) -> tuple[n.TriplePattern, ...]:
    """The triple patterns of a GPM that are matched together, before all else."""
    pattern = gpm.correlation.core if gpm.correlation is not None else gpm.pattern
    while True:
        match pattern:
            case n.LeftJoin(left=inner) | n.Minus(left=inner):
                pattern = inner
            case n.Filter(pattern=inner) | n.Extend(pattern=inner):
                pattern = inner
            case _:
                return tuple(_triples(pattern))


def shared_patterns(plan: QueryPlan) -> list[tuple[list[str], tuple[n.TriplePattern, ...]]]:
    """(names of GPMs, their triple patterns) where several GPMs have them in common.

    The triple patterns are written with the variables of the first GPM.
    """
    if not plan.patterns.evaluation.shared:
        return []
    by_shape: dict[object, list[GpmPlan]] = {}
    for gpm in plan.patterns.gpms:
        triples = basic_pattern(gpm)
        if triples:
            by_shape.setdefault(basic_shape(triples), []).append(gpm)
    return [
        ([gpm.name for gpm in gpms], basic_pattern(gpms[0]))
        for gpms in by_shape.values()
        if len(gpms) > 1 and set(gpms[0].streams).intersection(*(g.streams for g in gpms[1:]))
    ]


def _triples(pattern: n.Pattern) -> Iterator[n.TriplePattern]:
    match pattern:
        case n.BGP(triples):
            yield from triples
        case n.Join(left, right):
            yield from _triples(left)
            yield from _triples(right)
        case n.Filter(pattern=inner):
            yield from _triples(inner)


def basic_shape(triples: tuple[n.TriplePattern, ...]) -> object:
    """Equal for triple patterns that differ only in the names of variables."""
    numbers: dict[str, int] = {}
    return tuple(
        term if isinstance(term, str) else numbers.setdefault(term.name, len(numbers))
        for triple in triples
        for term in triple.terms
    )


def _awaited_requests(plan: QueryPlan) -> Iterator[str]:
    for gpm in plan.patterns.gpms:
        if gpm.correlation is not None and gpm.correlation.reason == AWAITED:
            yield f"endpoints of {gpm.name} are asked only if a partial match awaits the event"


def _kept_groups(plan: QueryPlan) -> Iterator[str]:
    for kept in plan.patterns.kept:
        what = "groups" if isinstance(kept, KeptGroups) else "solutions"
        yield f"the {what} of {plan.patterns.gpms[kept.gpm].name} are kept, from window to window"


def _pushed_predicates(plan: QueryPlan) -> Iterator[str]:
    for name, predicates in zip(plan.inputs.stream_names, plan.inputs.predicates, strict=True):
        if predicates is not None:
            count = len(predicates)
            yield f"{name}: triples of {count} predicate{'s' * (count != 1)} are kept"


def _virtual_triples(plan: QueryPlan) -> tuple[str, ...]:
    return ()  # a plan knows no lifts; `lift_text` says what the rule does to a lifted stream


def _rare_triples_first(plan: QueryPlan) -> Iterator[str]:
    names = [gpm.name for gpm in plan.patterns.gpms if len(basic_pattern(gpm)) > 1]
    if names:
        yield f"triple patterns of {', '.join(names)} are matched in order of their counts"


def _shared_patterns(plan: QueryPlan) -> Iterator[str]:
    for names, triples in shared_patterns(plan):
        count = len(triples)
        yield f"{count} triple pattern{'s' * (count != 1)} of {', '.join(names)} evaluated once"


def _lazy_operands(plan: QueryPlan) -> Iterator[str]:
    names = [gpm.name for gpm in plan.patterns.gpms if basic_pattern(gpm) and _has_operands(gpm)]
    if names:
        yield f"{', '.join(names)}: the rest waits until the triple patterns match"


def _indexed_places(plan: QueryPlan) -> Iterator[str]:
    for gpm in plan.patterns.gpms:
        pattern = gpm.correlation.core if gpm.correlation is not None else gpm.pattern
        for join in place_joins(pattern):
            yield f"{gpm.name}: {join.test} asks a spatial index"


def _has_operands(gpm: GpmPlan) -> bool:
    """Whether a GPM has operands that read the event, besides its triple patterns."""
    waiting = [gpm.correlation.core if gpm.correlation is not None else gpm.pattern]
    while waiting:
        match waiting.pop():
            case n.Join(left, right):
                waiting += (left, right)
            case n.Filter(expr, inner):
                if exists_uses(expr):
                    return True
                waiting.append(inner)
            case n.BGP() | n.Table() | n.Graph():
                continue
            case _:
                return True
    return False


def _shared_runs(plan: QueryPlan) -> Iterator[str]:
    if plan.sequence.evaluator.name in ("compiled-compact", "compiled-chain"):
        yield "partial matches share their parts"


def _compiled_runs(plan: QueryPlan) -> Iterator[str]:
    if plan.sequence.evaluator.name == "compiled-registers":
        yield "compiled code processes a batch of solutions at a time"


def _pruned_columns(plan: QueryPlan) -> Iterator[str]:
    for gpm in plan.patterns.gpms:
        names = [v for v in sorted(gpm.private) if not is_reserved(v)]
        if names:
            yield f"{gpm.name} does not hand on {variables_text(names)}"


def _unless_asked(effect: Effect) -> Effect:
    """The effect of a rule that leaves the evaluator alone if the caller chose it."""
    return lambda plan: () if plan.sequence.evaluator.asked else effect(plan)


def _query_families(plan: QueryPlan) -> Iterator[str]:
    if plan.is_member:
        yield "may run as one with queries that differ in constants only"


EFFECTS: Mapping[str, Effect] = MappingProxyType(
    {
        "awaited-requests": _awaited_requests,
        "kept-groups": _kept_groups,
        "pushed-predicates": _pushed_predicates,
        "virtual-triples": _virtual_triples,
        "rare-triples-first": _rare_triples_first,
        "shared-patterns": _shared_patterns,
        "lazy-operands": _lazy_operands,
        "indexed-places": _indexed_places,
        "shared-runs": _unless_asked(_shared_runs),
        "compiled-runs": _unless_asked(_compiled_runs),
        "pruned-columns": _pruned_columns,
        "query-families": _query_families,
    }
)
