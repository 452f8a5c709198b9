"""In words: the effects of the planner's rules on a plan, and the common parts of several queries
of a run.

The common parts are families, their indexes, and graph patterns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_constant
from spaseq.algebra.nodes import certain, is_reserved, possible
from spaseq.algebra.translate import AWAITED
from spaseq.expr.place_tests import PlaceJoin, place_join
from spaseq.lang import ast
from spaseq.lang.shapes import parameter
from spaseq.lang.variables import conjuncts, exists_uses, walk
from spaseq.options import StageOptions
from spaseq.plan.families import Family, families_of, may_begin
from spaseq.plan.joint_plans import JointPlan, joint_plans
from spaseq.plan.pattern_plan import GpmPlan, KeptGroups
from spaseq.plan.pattern_templates import PatternTemplate, template_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules import RULES, name_of
from spaseq.render.query_words import QueryWords, variables_text

Effect: TypeAlias = Callable[[QueryPlan], Iterable[str]]
"""The effects of a rule, judged from the plan after all rules; nothing if there are none."""

_PARAMETER = re.compile(r"\??_:#\d+")

_MOST = 10
"""Maximum number of patterns that are listed."""


def effects(plan: QueryPlan) -> Iterator[tuple[str, list[str]]]:
    """(name of a rule, its effect) for each rule with an effect."""
    for name in map(name_of, RULES):
        if name not in plan.disabled:
            changes = list(EFFECTS[name](plan))
            if changes:
                yield name, changes


def basic_pattern(gpm: GpmPlan) -> tuple[n.TriplePattern, ...]:
    """The triple patterns of a GPM that are matched together, before all else."""
    pattern = gpm.core
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
            yield f"endpoints of {gpm.name} get requests only if a partial match awaits the event"


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
    return ()  # a plan knows no lifts; `lift_text` describes the effect on a lifted stream


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
        for join in _place_joins(gpm.core):
            yield f"{gpm.name}: {join.test} uses a spatial index"


def _place_joins(pattern: n.Pattern) -> Iterator[PlaceJoin]:
    """The joins by place between parts of a pattern that read the event and GRAPH blocks."""
    if isinstance(pattern, n.Filter) and not is_constant(pattern):
        parts = list(_operands(pattern.pattern))
        asking = frozenset[str]().union(*(possible(p) for p in parts if not is_constant(p)))
        for condition in conjuncts([pattern.expr]):
            joins = (
                place_join(condition, asking, certain(part))
                for part in parts
                if is_constant(part) and possible(part).isdisjoint(asking)
            )
            yield from islice((join for join in joins if join is not None), 1)
    for part in n.children(pattern):
        yield from _place_joins(part)


def _operands(pattern: n.Pattern) -> Iterator[n.Pattern]:
    match pattern:
        case n.Join(left, right):
            yield from _operands(left)
            yield from _operands(right)
        case n.Filter(pattern=inner):
            yield from _operands(inner)
        case n.Extend(n.Join(left, right), variable, expr) if is_constant(right):
            yield n.Extend(left, variable, expr)
            yield right
        case _:
            yield pattern


def _has_operands(gpm: GpmPlan) -> bool:
    """Whether a GPM has operands that read the event, besides its triple patterns."""
    waiting = [gpm.core]
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
            yield f"{gpm.name} does not pass on {variables_text(names)}"


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


def together_text(plans: Sequence[QueryPlan], words: Sequence[QueryWords]) -> str:
    """The units of queries that run together; `words` belong to the queries."""
    families = families_of(plans)
    alone = len(plans) - sum(len(family.members) for family in families)
    lines = [f"queries    {len(plans):,}: {_counted(len(families), alone)}"]
    everywhere = _begun(plans, StageOptions(most_waiting=1))
    begun = _begun(plans, StageOptions())
    for family in families:
        lines += _family(family, plans, words[family.members[0]])
        if family.members in begun:
            _, *later = family.plan.patterns.gpms
            where = "" if family.members in everywhere else ", in an Engine and in bounded runs"
            names = ", ".join(gpm.name for gpm in later)
            lines.append(f"  {names}: solutions are made once for all members{where}")
    lines += map(_joined, joint_plans(families))
    members = {number for family in families for number in family.members}
    lines += _templates([plan for number, plan in enumerate(plans) if number not in members])
    lines += _patterns(plans, words)
    return "\n".join(lines)


def _begun(plans: Sequence[QueryPlan], options: StageOptions) -> set[tuple[int, ...]]:
    """The members of each family that begins with the member, in runs with some options."""
    families = families_of(plans, may_begin(options))
    return {family.members for family in families if family.begins_with_member}


def _counted(families: int, alone: int) -> str:
    several = f"{families:,} {'family' if families == 1 else 'families'}"
    return f"{several}, and {alone:,} by themselves" if alone else several


def _family(family: Family, plans: Sequence[QueryPlan], words: QueryWords) -> Iterator[str]:
    """A family's members and, GPM by GPM, how an event finds the matching ones."""
    titles = [plans[n].identity.title for n in family.members]
    named = ", ".join(titles[:2]) + (f" and {len(titles) - 2:,} more" if len(titles) > 2 else "")
    used = sum(1 for owners in family.owners if owners)
    yield f"family     {named}: one automaton, and a table of constants with {used:,} rows"
    varying = {parameter(place).name for place in family.places}
    shaped = family.first.shaped
    assert shaped is not None
    for gpm, written in zip(family.plan.patterns.gpms, shaped.shape.query.gpms, strict=True):
        for triple in basic_pattern(gpm):
            if any(not isinstance(t, str) and t.name in varying for t in triple.terms):
                yield f"  {gpm.name}: {_shown(words.triple(triple))}, by term (hash)"
        for condition in _conditions(written):
            if any(isinstance(node, ast.Var) and node.name in varying for node in walk(condition)):
                by = "a column of partial matches"
                if not any(isinstance(node, ast.Arithmetic) for node in walk(condition)):
                    by = "by value (sorted thresholds)"
                yield f"  {gpm.name}: {_shown(words.condition(condition))}, {by}"


def _joined(joint: JointPlan) -> str:
    """The number of families that are matched together."""
    gpms, tables = len({(f, g) for f, g, _ in joint.origins}), len(joint.plan.patterns.gpms)
    several = f"{tables:,} joint {'table' if tables == 1 else 'tables'} of constants"
    return (
        f"matched    {len(joint.families):,} families together: {several} for {gpms:,} GPMs, "
        f"with {len(joint.origins):,} rows"
    )


def _templates(plans: Sequence[QueryPlan]) -> Iterator[str]:
    """The number of templates of the GPMs of single queries."""
    together = [plan for plan in plans if plan.is_stateless]
    if len(together) < thresholds.current.template_queries:
        return
    known: dict[PatternTemplate, PatternTemplate] = {}
    uses = Counter(
        id(use.template)
        for plan in together
        for gpm in plan.patterns.gpms
        if (use := template_of(plan, gpm, known)) is not None
    )
    shared = [count for count in uses.values() if count >= thresholds.current.template_uses]
    yield (
        f"matched    {len(together):,} queries by themselves together: {len(shared):,} templates, "
        f"each for several of {sum(shared):,} GPMs that are equal but for names and constants"
    )


def _conditions(gpm: ast.Gpm) -> Iterator[ast.Expr]:
    """The conjuncts of the FILTERs in a GPM's own group."""
    for element in gpm.pattern.elements:
        if isinstance(element, ast.Filter):
            expr = element.expr
            yield from expr.operands if isinstance(expr, ast.And) else (expr,)


def _shown(text: str) -> str:
    """The text with a star in the place of each constant."""
    return _PARAMETER.sub("*", text)


def _patterns(plans: Sequence[QueryPlan], words: Sequence[QueryWords]) -> Iterator[str]:
    """The number of graph patterns, and the patterns that several GPMs share.

    A family's GPM has the pattern of its members, with variables for constants.
    """
    gpms_of: dict[object, list[tuple[int, str]]] = {}
    texts: dict[object, str] = {}
    families = {n: family for family in families_of(plans) for n in family.members}
    gpms = 0
    for number, plan in enumerate(plans):
        evaluated = families[number].plan if number in families else plan
        for gpm in evaluated.patterns.gpms:
            triples = basic_pattern(gpm)
            gpms += 1
            if triples:
                key = basic_shape(triples)
                gpms_of.setdefault(key, []).append((number, gpm.name))
                texts.setdefault(key, " . ".join(map(words[number].triple, triples)))
    yield f"patterns   {len(gpms_of):,} basic graph patterns for {gpms:,} GPMs"
    shared = sorted((k for k in gpms_of if len(gpms_of[k]) > 1), key=lambda k: -len(gpms_of[k]))
    for key in shared[:_MOST]:
        queries = len({number for number, _ in gpms_of[key]})
        yield f"  shared by {len(gpms_of[key]):,} GPMs of {queries:,}: {_shown(texts[key])}"
    if len(shared) > _MOST:
        yield f"  {len(shared) - _MOST:,} more are shared"
