"""The evaluators of sequences: the sequences that each can run, and its other properties.

The evaluators of sets share the parts of partial matches. They never read two events of a match
together. Whether they take an event may depend only on that event, on the state of the automaton,
and on values that are equal throughout the match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from spaseq.automaton.program.alternatives import inlined
from spaseq.automaton.program.any_order import (
    NotContiguous,
    contiguous,
    contiguous_around,
    in_every_order,
)
from spaseq.automaton.program.nfa import (
    Automaton,
    BracketLabel,
    GpmColumns,
    Label,
    NoKernel,
    Program,
    TakeLabel,
)
from spaseq.automaton.program.outer_steps import NotChecked, has_outer_negations, outer_negations
from spaseq.automaton.registers.compilable_runs import tested_program
from spaseq.automaton.registers.tested_edges import TestedProgram
from spaseq.automaton.sets.compilable_sets import check_letters, check_sets, check_waits
from spaseq.automaton.sets.python.expand import TooManyWaits
from spaseq.errors import UsageError
from spaseq.lang import sequence as seq
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import EvaluatorChoice, EvaluatorName, QueryPlan

SET_EVALUATORS: tuple[EvaluatorName, ...] = ("compiled-compact", "compiled-chain")
"""The evaluators whose partial matches are sets that share parts."""


def with_evaluator(plan: QueryPlan, choice: EvaluatorChoice) -> QueryPlan:
    """The plan with another evaluator."""
    return replace(plan, sequence=replace(plan.sequence, evaluator=choice))


def asked_evaluator(plan: QueryPlan, name: str) -> EvaluatorChoice:
    """The evaluator that a caller requests by name; `check_evaluator` says whether it is suitable.

    Raises:
        UsageError: there is no such evaluator.
    """
    for known in get_args(EvaluatorName):
        if name == known:
            key = sharing_key(plan) if name in SET_EVALUATORS else ()
            return EvaluatorChoice(known, "asked for", key, asked=True)
    raise UsageError(f"no evaluator {name!r}: {', '.join(get_args(EvaluatorName))}")


def check_evaluator(plan: QueryPlan) -> None:
    """Check that the requested evaluator can run the plan.

    Raises:
        UsageError: it cannot.
    """
    choice = plan.sequence.evaluator
    against = obstacle_to(choice.name, plan) if choice.asked else None
    if against is not None:
        raise UsageError(f"the {choice.name} evaluator cannot run this query: {against}")


def obstacle_to(evaluator: EvaluatorName, plan: QueryPlan) -> str | None:
    """The reason why an evaluator cannot run the sequence of a plan; None if it can."""
    match evaluator:
        case "registers":
            return None
        case "compiled-registers":
            return obstacle_to_compiled_registers(plan)
        case "compiled-compact":
            return obstacle_to_sharing(plan) or obstacle_to_compiled_sets(plan)
        case "compiled-chain":
            chain = obstacle_to_sharing(plan) or obstacle_to_chain(plan)
            return chain or obstacle_to_compiled_sets(plan)


def may_be_better_unrolled(plan: QueryPlan) -> bool:
    """Whether sets might run a sequence whose repetitions are counted, if they were unrolled.

    They run no counted repetition beside a bracket with `&` or AND.
    """
    if not plan.sequence.program.bounds:
        return False
    steps = seq.steps(plan.sequence.chain)
    return any(isinstance(step, seq.BinaryStep) and step.kind != "|" for step in steps)


def obstacle_to_compiled_sets(plan: QueryPlan) -> str | None:
    """The reason why no kernel of sets can run a sequence of shareable matches, if any."""
    sequence = plan.sequence
    try:
        compares = plan.answers.strategy == "MAX" and not plan.keeps_all_matches
        gpms, streams = len(plan.patterns.gpms), len(plan.inputs.sources)
        check_letters(sequence.program, gpms, streams, compares)
        check_sets(sequence.partition, sequence.window)
    except NoKernel as reason:
        return str(reason)
    return None


def obstacle_to_compiled_registers(plan: QueryPlan) -> str | None:
    """The reason why the register kernel cannot run a sequence; None if it can."""
    form = for_registers(plan)
    return form if isinstance(form, str) else None


def for_registers(plan: QueryPlan) -> TestedProgram | str:
    """The program of a sequence for the register kernel, or the reason why it cannot run it."""
    correlation = obstacle_of_correlation(plan)
    if correlation is not None:
        return correlation
    try:
        return _tested(plan)
    except (NoKernel, NotContiguous) as reason:
        return str(reason)


def is_threshold_sequence(plan: QueryPlan) -> bool:
    """Whether the threshold-sequence kernel runs the plan's sequence."""
    if plan.sequence.evaluator.name != "compiled-registers":
        return False
    return _tested(plan).is_threshold_sequence


def _tested(plan: QueryPlan) -> TestedProgram:
    sequence = plan.sequence
    program = _by_registers(plan)
    return tested_program(program, _columns(plan), sequence.partition, sequence.window)


def _columns(plan: QueryPlan) -> list[GpmColumns]:
    return [GpmColumns(g.variables, g.conditions, g.certain) for g in plan.patterns.gpms]


def program_of(plan: QueryPlan) -> Program:
    """The program that the plan's evaluator runs."""
    if plan.sequence.evaluator.name == "compiled-registers":
        return _by_registers(plan)
    if plan.sequence.evaluator.name == "registers" and obstacle_of_correlation(plan) is None:
        program, gpms = plan.sequence.program, _columns(plan)
        return inlined(in_every_order(program, gpms, _streams(plan), late=False))
    return plan.sequence.program


def _by_registers(plan: QueryPlan) -> Program:
    """The program that the compiled registers run.

    Raises:
        NotContiguous: the strategy is STRICT, and no program finds its matches only.
    """
    program, strict = plan.sequence.program, plan.answers.strategy == "STRICT"
    columns, streams = _columns(plan), _streams(plan)

    def make() -> Program:
        if strict:
            around = in_every_order(contiguous_around(program), columns, streams)
            return inlined(contiguous(around))
        return inlined(in_every_order(program, columns, streams))

    return program.made("in registers", (strict, columns, streams), make)


def _streams(plan: QueryPlan) -> list[tuple[int, ...]]:
    """The streams and windows of each GPM, for `in_every_order`."""
    first = len(plan.inputs.streams)
    return [
        (*gpm.streams, *(first + source.window for source in gpm.windows))
        for gpm in plan.patterns.gpms
    ]


def selects(plan: QueryPlan) -> bool:
    """Whether the plan's evaluator applies the selection strategy itself.

    STRICT concerns each match alone, and instants that only the evaluator knows. Evaluators of sets
    apply the others where that is the same as selecting among all answers of one end: HAVING comes
    first; MAX compares the matches of one key only; and negated steps in first or last place are
    checked on the matches of the sets.
    """
    answers, evaluator = plan.answers, plan.sequence.evaluator
    if answers.strategy == "STRICT":
        return True
    if evaluator.name not in SET_EVALUATORS or plan.keeps_all_matches:
        return False
    if answers.strategy == "MAX" and evaluator.key:
        return False
    return answers.having is None and not has_outer_negations(plan.sequence.program)


def consumes(plan: QueryPlan) -> bool:
    """Whether the plan's evaluator drops the partial matches that AFTER MATCH consumes.

    CONSUME and PAST LAST EVENT forbid all later answers that begin up to the end of a kept one. If
    each match is an answer, an instant at which matches end has a kept one, and no partial match of
    its partition may continue. (Muted answers forbid nothing, so this is not so with MUTE.) The
    evaluator drops the partial matches of one key, so the key must be the partition.
    """
    answers, evaluator = plan.answers, plan.sequence.evaluator
    return (
        evaluator.name in SET_EVALUATORS
        and not evaluator.key
        and answers.after_match.kind in ("CONSUME", "PAST LAST EVENT")
        and not answers.after_match.mute_ms
        and (plan.keeps_all_matches or (selects(plan) and answers.strategy == "STRICT"))
        and answers.having is None
        and not has_outer_negations(plan.sequence.program)
    )


def skips_nothing(plan: QueryPlan) -> bool:
    """Whether AFTER MATCH keeps all answers that the plan's evaluator finds."""
    skip = plan.answers.after_match
    return skip.keeps_all or (skip.kind == "CONSUME" and consumes(plan))


def limits(plan: QueryPlan) -> bool:
    """Whether the plan's evaluator can apply a limit on answers, as each match is one answer."""
    answers = plan.answers
    return (
        plan.sequence.evaluator.name in SET_EVALUATORS
        and (plan.keeps_all_matches or selects(plan))
        and answers.having is None
        and not answers.computed  # the evaluator takes the first ones, by their variables
        and not has_outer_negations(plan.sequence.program)
        and not answers.distinct
        and skips_nothing(plan)
    )


def obstacle_to_sharing(plan: QueryPlan) -> str | None:
    """The reason why the evaluators of sets cannot run the sequence of a plan; None if they can."""
    return obstacle_of_correlation(plan) or next(_Sharing(plan).obstacles(), None)


def obstacle_of_correlation(plan: QueryPlan) -> str | None:
    """The reason why only registers can run a plan with a correlated GPM, which needs a run's
    bindings.

    None if the plan has no such GPM.
    """
    for gpm in plan.patterns.gpms:
        if gpm.correlation is not None:
            return f"{gpm.name} is evaluated for each partial match: {gpm.correlation.reason}"
    return None


def sharing_key(plan: QueryPlan) -> tuple[str, ...]:
    """The variables by whose values the evaluators of sets split a partition, sorted.

    These are the variables that two events of a match may both bind, and the inferred key.
    """
    return _Sharing(plan).key


def obstacle_to_chain(plan: QueryPlan) -> str | None:
    """The reason why a sequence is more than single GPMs in a row; None if it is not."""
    for step in seq.steps(plan.sequence.chain):
        match step:
            case seq.Repeat():
                return "it repeats a step"
            case seq.BinaryStep(kind):
                return "it has alternatives" if kind == "|" else f"it has {kind}"
    if plan.answers.strategy == "MAX" and not plan.keeps_all_matches:
        return "SELECT MAX compares matches"
    return None


class _Sharing:
    """`binders` has for each variable the GPMs of positive steps that may bind it."""

    def __init__(self, plan: QueryPlan) -> None:
        self._sequence = sequence = plan.sequence
        self._strategy = plan.answers.strategy
        self._plans = {g.name: g for g in plan.patterns.gpms}
        self._binders: dict[str, list[GpmPlan]] = {}
        for use in sequence.scope.occurrences:
            if use.negation is None:
                for variable in self._plans[use.gpm].variables:
                    self._binders.setdefault(variable, []).append(self._plans[use.gpm])
        steps = seq.steps(sequence.chain)
        self._repeated = {step.id: step.body for step in steps if isinstance(step, seq.Repeat)}
        fixed = set(sequence.partition)
        self._joined = sorted(v for v in self._binders if v not in fixed and self._joins(v))
        self.key = tuple(sorted({*self._joined, *(sequence.key.variables or ())} - fixed))

    def obstacles(self) -> Iterator[str]:
        """Each reason why parts cannot be shared, in words."""
        yield from self._conjunctions()
        for gpm in self._plans.values():
            if gpm.conditions:
                yield f"a FILTER of {gpm.name} looks at earlier steps"
        yield from self._joins_beside_keys()
        for variable in sorted(self._sequence.scope.owner):
            for gpm in self._binders.get(variable, ()):
                if variable not in gpm.certain:
                    yield f"{gpm.name} may leave the group variable ?{variable} unbound"
        yield from self._negations()
        yield from self._edges()
        yield from self._waits()

    def _conjunctions(self) -> Iterator[str]:
        program = self._sequence.program
        for step in seq.steps(self._sequence.chain):
            if isinstance(step, seq.BinaryStep) and step.kind != "|":
                if program.bounds:
                    yield f"the repetitions of a sequence with {step.kind} would be counted"
                if program.untils or program.further:
                    yield f"{step.kind} stands beside a greedy loop or UNTIL"
                if self._strategy == "MAX":
                    yield f"SELECT MAX compares matches of {step.kind}, which may share events"

    # --- variables --------------------------------------------------------------------------------

    def _joins_beside_keys(self) -> Iterator[str]:
        everywhere = frozenset.intersection(*(g.certain for g in self._plans.values()))
        for variable in self._joined:
            if variable in self._sequence.scope.owner:
                yield f"the steps of a repetition join on ?{variable}"
            elif variable not in everywhere:
                yield f"steps join on ?{variable}, and not every GPM binds it"

    def _joins(self, variable: str) -> bool:
        """Whether two events of a match, which must then agree, may both bind a variable.

        For a group variable: two events of one repetition.
        """
        owner = self._sequence.scope.owner.get(variable)
        within = self._sequence.chain if owner is None else self._repeated[owner]
        return self._bound(within, variable) > 1

    def _bound(self, chain: seq.Chain, variable: str) -> int:
        """Maximum number of events of one match of a chain that may bind a variable; 2 for more
        than one.
        """
        return min(2, sum(self._bound_by(link.step, variable) for link in chain.links))

    def _bound_by(self, step: seq.ChainStep, variable: str) -> int:
        match step:
            case seq.GpmStep(use):
                return int(variable in self._plans[use.gpm].variables)
            case seq.BinaryStep("|", operands):
                return max(self._bound(operand, variable) for operand in operands)
            case seq.BinaryStep(_, operands):
                return sum(self._bound(operand, variable) for operand in operands)
            case seq.Repeat():
                return self._bound(step.body, variable) * (2 if step.is_scope else 1)
            case seq.Negation():
                return 0

    # --- negated steps and operators --------------------------------------------------------------

    def _negations(self) -> Iterator[str]:
        try:
            outer_negations(self._sequence.program)
        except NotChecked as reason:
            yield str(reason)
        for step in seq.steps(self._sequence.chain):
            if isinstance(step, seq.Negation):
                yield from self._negation(step)

    def _negation(self, step: seq.Negation) -> Iterator[str]:
        match step.body.links:
            case (seq.Link(step=seq.GpmStep(use)),):
                gpm, keys = self._plans[use.gpm], {*self.key, *self._sequence.partition}
                shared = sorted(self._binders.keys() & set(gpm.variables) - keys)
                if shared:
                    yield f"the negated {gpm.name} shares ?{shared[0]} with the match"
            case _:
                yield "a negated step is more than a single GPM"

    def _edges(self) -> Iterator[str]:
        for edge in self._sequence.program.edges:
            if edge.join is None:
                continue
            if edge.join.gap_ms is not None:
                yield "an operator bounds the gap between two steps"
            if edge.join.kind == ";" and _has_long_alternative(edge.label):
                yield "an alternative behind ; has several steps"

    def _waits(self) -> Iterator[str]:
        """Comes last: a sequence with another obstacle has no waits."""
        try:
            check_waits(self._sequence.program)
        except TooManyWaits as reason:
            yield str(reason)


def _has_long_alternative(label: Label) -> bool:
    """Whether a bracket has an alternative of more than one event."""
    if not isinstance(label, BracketLabel) or label.kind != "|":
        return False
    return not all(map(_is_one_event, label.operands))


def _is_one_event(automaton: Automaton) -> bool:
    """Whether every match of an automaton is a single event."""
    start, *others = automaton.states
    if any(state.edges for state in others):
        return False
    return all(
        isinstance(e.label, TakeLabel)
        or (e.label.kind == "|" and all(map(_is_one_event, e.label.operands)))
        for e in start.edges
    )
