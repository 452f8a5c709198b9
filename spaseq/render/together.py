"""What several queries of a run have in common: families, their indexes, and graph patterns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from spaseq import thresholds
from spaseq.lang import ast
from spaseq.lang.shapes import parameter
from spaseq.lang.variables import walk
from spaseq.options import StageOptions
from spaseq.plan.families import Family, families_of, may_begin
from spaseq.plan.joint_plans import JointPlan, joint_plans
from spaseq.plan.pattern_templates import PatternTemplate, is_stateless, template_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.render.query_words import QueryWords
from spaseq.render.rule_effects import basic_pattern, basic_shape

_PARAMETER = re.compile(r"\??_:#\d+")

_MOST = 10
"""The most patterns that are listed."""


def together_text(plans: Sequence[QueryPlan], words: Sequence[QueryWords]) -> str:
    """What is evaluated as one when the queries run together; `words` are those of each query."""
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
    """A family's members and, GPM by GPM, how an event finds those that it matches."""
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
    """How many families are matched together."""
    gpms, tables = len({(f, g) for f, g, _ in joint.origins}), len(joint.plan.patterns.gpms)
    several = f"{tables:,} joint {'table' if tables == 1 else 'tables'} of constants"
    return (
        f"matched    {len(joint.families):,} families together: {several} for {gpms:,} GPMs, "
        f"with {len(joint.origins):,} rows"
    )


def _templates(plans: Sequence[QueryPlan]) -> Iterator[str]:
    """How many templates the GPMs of queries by themselves have."""
    together = [plan for plan in plans if is_stateless(plan)]
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
    """How many graph patterns there are, and which ones several GPMs share.

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
