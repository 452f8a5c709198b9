"""Whether partial matches of a sequence can share their parts.

The evaluators of sets never read two events of a match together. Whether they take an event may
depend only on that event, on the state of the automaton, and on values that are equal throughout
the match.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Label, TakeLabel
from spaseq.automaton.program.outer_steps import NotChecked, outer_negations
from spaseq.automaton.sets.compilable_sets import check_waits
from spaseq.automaton.sets.python.expand import TooManyWaits
from spaseq.lang import sequence as seq
from spaseq.plan.query_plan import GpmPlan, QueryPlan


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
