"""The levels of a sequence: its first k steps, each planned as a query (docs/meaning.md, Partial
matches).

All levels share the GPMs and the columns of the query, so stage 1 runs once. A level has its own
automaton, variable scopes and evaluator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from spaseq.algebra.nodes import is_reserved
from spaseq.automaton.program.window import Counted
from spaseq.errors import UsageError
from spaseq.lang import sequence as seq
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import scopes
from spaseq.lang.sequence import Chain, ChainStep, Link
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import AfterMatch, AnswerPlan, Level, ProjectedVariable, QueryPlan
from spaseq.plan.rules.shared_runs import compiled_runs, shared_runs
from spaseq.plan.rules.unread_parts import pruned_columns
from spaseq.plan.sequencing import UNDECIDED, program_for

_CHOICE = {
    "shared-runs": shared_runs,
    "compiled-runs": compiled_runs,
}
"""The rules that choose an evaluator, by name and in order."""


class NoPartialMatches(UsageError):
    """A query can run, but has no partial matches; the message says why."""


def prefixes(chain: Chain) -> list[Chain]:
    """The first step, the first two, and so on; a negated step belongs to the step after it.

    No prefix has negated steps in last place.
    """
    links = chain.links
    ends = [i + 1 for i, link in enumerate(links) if not isinstance(link.step, seq.Negation)]
    return [Chain(links[:end]) for end in ends]


def _not_greedy(chain: Chain) -> Chain:
    """A chain without a greedy loop in last place, which no window of events can close.

    The longest of the loop's matches has the traces of all others, so partial matches stay.
    """
    *others, last = chain.links
    if isinstance(last.step, seq.Repeat):
        last = replace(last, step=replace(last.step, greedy=False))
    return Chain((*others, last))


def with_levels(plan: QueryPlan, resolved: Resolved, disabled: Collection[str]) -> QueryPlan:
    """The plan with its levels, and with columns for all of them.

    A sequence of one step has no partial matches, and so no levels.

    Raises:
        NoPartialMatches: the first steps may end in a negated step under WITHIN n EVENTS.
    """
    chains = prefixes(plan.sequence.chain)
    if isinstance(plan.sequence.window, Counted):
        chains = [_not_greedy(chain) for chain in chains]
    if len(chains) < 2:
        return plan
    levels = [_level(plan, resolved, chain, disabled) for chain in chains]
    if isinstance(plan.sequence.window, Counted) and any(map(_ends_in_negation, levels)):
        raise NoPartialMatches(
            "its first steps may end in a negated step, because the step after it may be empty, "
            "and WITHIN n EVENTS has no end for it to wait for"
        )
    gpms = plan.patterns.gpms
    if "pruned-columns" not in disabled:
        gpms = _pruned([plan, *(level.plan for level in levels)])
    patterns = replace(plan.patterns, gpms=gpms)
    return replace(plan, patterns=patterns, levels=tuple(levels))


def _level(plan: QueryPlan, resolved: Resolved, chain: Chain, disabled: Collection[str]) -> Level:
    """The level of the first steps, which form `chain`."""
    sequence, links = plan.sequence, plan.sequence.chain.links
    # Variables keep the kind, single or group, that they have in the whole query.
    scope = scopes(chain, resolved.binds, {*sequence.partition, *sequence.scope.singles})
    used = {use.gpm for use in scope.occurrences}
    gpms = tuple(gpm if gpm.name in used else unused(gpm, plan) for gpm in plan.patterns.gpms)
    program = program_for(chain, scope, gpms)
    level_plan = replace(
        plan,
        patterns=replace(plan.patterns, gpms=gpms),
        sequence=replace(sequence, chain=chain, scope=scope, program=program, evaluator=UNDECIDED),
        answers=_answers(plan),
        expressions=replace(plan.expressions, groups=frozenset(program.owner)),
    )
    for name, rule in _CHOICE.items():
        if name not in disabled:
            level_plan = rule(level_plan)
    return Level(level_plan, tuple(sorted({*_next_names(links[len(chain.links) :])})))


def _ends_in_negation(level: Level) -> bool:
    states = level.plan.sequence.program.automaton.states
    return any(accepts.negations for state in states for accepts in state.acceptances)


def unused(gpm: GpmPlan, plan: QueryPlan) -> GpmPlan:
    """A GPM that a form of a query does not use; it must not affect the evaluation of the form."""
    certain = frozenset(plan.patterns.columns.variables)
    return replace(gpm, conditions=(), correlation=None, certain=certain, awaited=None)


def _answers(plan: QueryPlan) -> AnswerPlan:
    """The query's projection, without conditions that drop a match.

    A CONSTRUCT query has no projection. The variables of its template replace one, because a part
    of a match makes no event.
    """
    answers = plan.answers
    projection = answers.projection
    if answers.template is not None:
        names = answers.template.variables
        projection = tuple(ProjectedVariable(n) for n in names if not is_reserved(n))
    after_match = AfterMatch("NO SKIP")
    return AnswerPlan(projection, False, "ALL", after_match, None, None, answers.computed)


def _pruned(plans: Sequence[QueryPlan]) -> tuple[GpmPlan, ...]:
    """The GPMs of the first plan, with the variables that are private in every plan."""
    pruned = [pruned_columns(plan).patterns.gpms for plan in plans]
    return tuple(
        replace(variants[0], private=frozenset.intersection(*(gpm.private for gpm in variants)))
        for variants in zip(*pruned, strict=True)
    )


# --- the first names of steps ---------------------------------------------------------------------


def first_names(chain: Chain) -> frozenset[str]:
    """The names of the GPMs that may have the first event of a match of a chain."""
    return frozenset(_first_names(chain.links))


def _next_names(links: Sequence[Link]) -> Iterator[str]:
    """The names that the next step begins with."""
    following = (link.step for link in links if not isinstance(link.step, seq.Negation))
    yield from _names_of(next(following, None))


def _first_names(links: Sequence[Link]) -> Iterator[str]:
    """The first names of some links; a step that may be empty adds the names after it."""
    for link in links:
        if isinstance(link.step, seq.Negation):
            continue
        yield from _names_of(link.step)
        if not seq.can_be_empty(Chain((link,))):
            return


def _names_of(step: ChainStep | None) -> Iterator[str]:
    if isinstance(step, seq.GpmStep):
        yield step.occurrence.gpm
    elif step is not None:
        for inner in seq.inner_chains(step):
            yield from _first_names(inner.links)
