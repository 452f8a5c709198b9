"""From the GPMs of a plan to its columns, its automaton and its key."""

from __future__ import annotations

from dataclasses import replace

from spaseq.algebra.substitution import mentions
from spaseq.automaton.program.compiler import FEW_STATES, compile_program
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.program.window import Counted, Sliding, Tumbling, Window
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import Scope
from spaseq.lang.sequence import Chain
from spaseq.plan.pattern_plan import (
    ContentPlan,
    GpmPlan,
    KeptGroups,
    KeptJoin,
    Membership,
    PatternPlan,
)
from spaseq.plan.query_plan import AnswerPlan, EvaluatorChoice, QueryPlan, SequencePlan, StageKey
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.terms.term import XSD_DATE_TIME, literal_text
from spaseq.rdf.terms.times import parse_time

UNDECIDED = EvaluatorChoice("registers", "shared-runs is disabled")
"""The evaluator of a plan as written. The rule shared-runs replaces it, or at least the reason."""

_MOST_DRAWN = 50
"""Number of edges beyond which an automaton with repeated steps is drawn with counters."""


def pattern_plan(
    gpms: tuple[GpmPlan, ...],
    memberships: tuple[Membership, ...] = (),
    contents: tuple[ContentPlan, ...] = (),
    kept: tuple[KeptGroups | KeptJoin, ...] = (),
) -> PatternPlan:
    """Stage 1: the columns are all variables of the GPMs.

    Variables in conditions between steps also have number columns, and so have operands.
    """
    every = (*gpms, *(content.gpm for content in contents))
    variables = tuple(sorted({v for g in every for v in g.variables}))
    read = {v for g in gpms for c in g.conditions for v in mentions(c)}
    operands = sorted({each.number for content in contents for each in content.operands or ()})
    columns = SolutionColumns(variables, (*(v for v in variables if v in read), *operands))
    return PatternPlan(gpms, columns, memberships, contents=contents, kept=kept)


def sequence_plan(
    resolved: Resolved,
    gpms: tuple[GpmPlan, ...],
    answers: AnswerPlan,
    most_states: int | None = None,
) -> SequencePlan:
    """Stage 2, run by registers, which run every sequence.

    `most_states` is as for `compile_program`.
    """
    chain, scope = resolved.chain, resolved.scope
    partition = tuple(v.name for v in resolved.query.partition)
    program, window = program_for(chain, scope, gpms, most_states), sequence_window(resolved.query)
    counted, strict = isinstance(window, Counted), answers.strategy == "STRICT"
    needs_instants = program.strict or counted or strict
    key = _key(gpms, scope, partition, needs_instants, answers)
    return SequencePlan(chain, scope, program, window, partition, key, needs_instants, UNDECIDED)


def with_gpms(plan: QueryPlan, gpms: tuple[GpmPlan, ...]) -> QueryPlan:
    """The plan with other GPMs, and all parts that depend on them."""
    sequence = plan.sequence
    most_states = FEW_STATES if sequence.program.bounds else None
    program = program_for(sequence.chain, sequence.scope, gpms, most_states)
    key = _key(gpms, sequence.scope, sequence.partition, sequence.needs_instants, plan.answers)
    before = plan.patterns
    patterns = pattern_plan(gpms, before.memberships, before.contents, before.kept)
    return replace(
        plan,
        patterns=replace(patterns, evaluation=plan.patterns.evaluation),
        sequence=replace(sequence, program=program, key=key),
    )


def drawn_program(plan: QueryPlan) -> Program:
    """The plan's automaton for people: with counters if it would be long without."""
    sequence = plan.sequence
    if len(sequence.program.edges) <= _MOST_DRAWN:
        return sequence.program
    return program_for(sequence.chain, sequence.scope, plan.patterns.gpms, _MOST_DRAWN)


def sequence_window(query: ast.Query) -> Window:
    """The window of a query without errors."""
    window = query.window
    if window is None:  # each match is one event
        return Sliding(0)
    if isinstance(window, ast.CountWindow):
        return Counted(window.events)
    if not window.tumbling:
        return Sliding(window.length.ms)
    origin = 0
    if window.origin is not None:
        start = parse_time(literal_text(window.origin, XSD_DATE_TIME, None))
        assert start is not None
        origin = start
    return Tumbling(window.length.ms, origin)


def program_for(
    chain: Chain, scope: Scope, gpms: tuple[GpmPlan, ...], most_states: int | None = None
) -> Program:
    """The automaton of a sequence; `most_states` is as for `compile_program`."""
    certain = {g.name: g.certain for g in gpms}
    return compile_program(chain, scope, [g.name for g in gpms], certain, most_states)


def _key(
    gpms: tuple[GpmPlan, ...],
    scope: Scope,
    partition: tuple[str, ...],
    needs_instants: bool,
    answers: AnswerPlan,
) -> StageKey:
    # Answers of different keys can be equal, unless they show the key.
    shown = {item.name for item in answers.projection if item.expr is None}
    if answers.distinct and not shown.issuperset(partition):
        return StageKey(None, "DISTINCT looks across partitions")
    if partition:
        return StageKey(partition, "PARTITION BY")
    if any(gpm.windows for gpm in gpms):
        return StageKey(None, "a window holds events of all keys")
    if needs_instants:
        return StageKey(None, "strict contiguity, WITHIN n EVENTS or STRICT look across keys")
    if answers.strategy != "ALL" or not answers.after_match.keeps_all:
        return StageKey(None, "selection and AFTER MATCH look across keys")
    shared = frozenset.intersection(*(g.certain for g in gpms)) - set(scope.owner)
    if not shared:
        return StageKey(None, "no variable is certainly bound by every GPM")
    if answers.distinct:
        shared &= shown
        if not shared:
            return StageKey(None, "DISTINCT looks across keys")
    best = min(shared)
    return StageKey((best,), f"every GPM binds ?{best} in every solution")
