"""Which evaluator runs a sequence, and why.

The chain and the compact evaluator keep partial matches as sets that share their parts, so they
never look at two events of a match together: whether an event is taken may depend on nothing but
that event, the state of the automaton, and values that are the same throughout the match. What
needs more is matched from the rarest step on (`lazy`) if the order in which events are looked at
does not matter, and runs on registers, which run everything, if it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from spaseq.automaton.batch.not_compilable import NotCompilable
from spaseq.automaton.program.nfa import Automaton, BracketLabel, Program, TakeLabel
from spaseq.automaton.program.partial_order import NotReorderable, patterns_of
from spaseq.automaton.program.window import Window
from spaseq.automaton.registers.compilable import tested_program
from spaseq.automaton.run.machine import GpmColumns
from spaseq.automaton.sets.compilable import check_sets
from spaseq.errors import UsageError
from spaseq.lang import sequence as seq
from spaseq.lang.scope import Scope
from spaseq.plan.query_plan import EvaluatorName, GpmPlan, QueryPlan
from spaseq.plan.rules import COMPILED_RUNS, RARE_STEPS_FIRST, SHARED_RUNS, Rule

__all__ = ["Candidate", "Choice", "EvaluatorName", "choose", "limits", "selects"]

_SHARING = ("compact", "compiled-compact", "compiled-chain")
"""The evaluators whose partial matches are sets that share parts."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The evaluator of a plan; `key` are the variables by which it splits a partition."""

    evaluator: EvaluatorName
    reason: str
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is known of a sequence when its evaluator is chosen.

    `partition` are the partition variables; `inferred` the variables of a key that the planner
    inferred from the GPMs.
    """

    chain: seq.Chain
    scope: Scope
    program: Program
    gpms: Sequence[GpmPlan]
    window: Window
    partition: tuple[str, ...]
    inferred: tuple[str, ...]
    strategy: str

    @property
    def fixed(self) -> frozenset[str]:
        """The partition variables."""
        return frozenset(self.partition)


_RULES: Mapping[str, Rule] = {"compact": SHARED_RUNS, "lazy": RARE_STEPS_FIRST}
"""The rule by which an evaluator is chosen, compiled or not."""


def choose(
    candidate: Candidate, forced: str | None = None, disabled: frozenset[Rule] = frozenset()
) -> Choice:
    """The evaluator that blows up least and that no disabled rule chooses; or the `forced` one.

    Raises:
        UsageError: there is no such evaluator, or it cannot run the sequence.
    """
    choice = _chosen(candidate, forced)
    if forced is not None:
        return choice
    plain = _IN_PYTHON.get(choice.evaluator, choice.evaluator)
    rule = _RULES.get(plain)
    if rule is not None and rule in disabled:
        choice = _on_registers(candidate, f"{rule.name} is disabled")
        plain = "registers"
    if COMPILED_RUNS in disabled and choice.evaluator != plain:
        return replace(choice, evaluator=plain, reason=f"{choice.reason}; not compiled")
    return choice


def _chosen(candidate: Candidate, forced: str | None) -> Choice:
    correlated = next((g for g in candidate.gpms if g.correlation is not None), None)
    if correlated is not None and correlated.correlation is not None:
        return _of_correlated(correlated.name, correlated.correlation.reason, forced)
    facts = _Facts(candidate)
    obstacle = next(facts.obstacles(), None)
    beyond_chain = facts.not_a_chain()
    match forced:
        case None if obstacle is not None:
            return _with_conditions(candidate, obstacle)
        case None if beyond_chain is not None:
            reason = f"{_INDEPENDENT}; {beyond_chain}"
            return _as_sets(candidate, "compiled-compact", reason, facts.key)
        case None:
            reason = f"GPMs in a row; {_INDEPENDENT}"
            return _as_sets(candidate, "compiled-chain", reason, facts.key)
        case "registers":
            return Choice("registers", "asked for")
        case "compiled-registers":
            against = _not_compiled(candidate)
            if against is not None:
                raise UsageError(f"the register kernel cannot run this query: {against}")
            return Choice("compiled-registers", "asked for")
        case "lazy":
            try:
                patterns_of(candidate.program)
            except NotReorderable as reason:
                raise UsageError(f"the lazy evaluator cannot run this query: {reason}") from None
            return Choice("lazy", "asked for")
        case "compact" | "compiled-compact" | "compiled-chain":
            against = obstacle
            if forced == "compiled-chain":
                against = against or beyond_chain
            if forced != "compact":
                against = against or _not_compiled_sets(candidate)
            if against is not None:
                raise UsageError(f"the {forced} evaluator cannot run this query: {against}")
            return Choice(forced, "asked for", facts.key)
        case _:
            known = ", ".join(get_args(EvaluatorName))
            raise UsageError(f"no evaluator {forced!r}: {known}")


def _of_correlated(gpm: str, reason: str, forced: str | None) -> Choice:
    """Runs are what knows the bindings that are to be substituted."""
    if forced not in (None, "registers"):
        raise UsageError(f"the {forced} evaluator cannot run this query: {gpm}: {reason}")
    return Choice("registers", f"{gpm} is evaluated for each partial match: {reason}")


def _with_conditions(candidate: Candidate, obstacle: str) -> Choice:
    """The evaluator of a sequence that `obstacle` bars from sharing parts."""
    try:
        patterns = patterns_of(candidate.program)
    except NotReorderable as reason:
        return _on_registers(candidate, f"{obstacle}; {reason}")
    if max(len(p.slots) for p in patterns) < 2:
        return _on_registers(candidate, f"{obstacle}; there is one step only")
    return Choice("lazy", f"{obstacle}; its steps can be matched in any order, the rarest first")


_IN_PYTHON: Mapping[EvaluatorName, EvaluatorName] = {
    "compiled-registers": "registers",
    "compiled-compact": "compact",
    "compiled-chain": "compact",
}
"""The evaluator in Python that gives the same matches as a compiled one."""

_INDEPENDENT = "no step looks at another's event"


def _as_sets(
    candidate: Candidate, compiled: EvaluatorName, reason: str, key: tuple[str, ...]
) -> Choice:
    """An evaluator of sets, compiled if it can be."""
    against = _not_compiled_sets(candidate)
    if against is not None:
        return Choice(_IN_PYTHON[compiled], f"{reason}; not compiled, as {against}", key)
    return Choice(compiled, reason, key)


def _not_compiled_sets(candidate: Candidate) -> str | None:
    """Why the kernels of sets cannot run a sequence, in words."""
    try:
        gpms = len(candidate.gpms)
        check_sets(gpms, candidate.partition, candidate.window, candidate.strategy)
    except NotCompilable as reason:
        return str(reason)
    return None


def _on_registers(candidate: Candidate, reason: str) -> Choice:
    """Registers, compiled if they can be."""
    against = _not_compiled(candidate)
    if against is not None:
        return Choice("registers", f"{reason}; not compiled, as {against}")
    return Choice("compiled-registers", reason)


def _not_compiled(candidate: Candidate) -> str | None:
    """Why the register kernel cannot run a sequence, in words."""
    if candidate.strategy == "STRICT":
        return "SELECT STRICT asks for all instants of the window"
    columns = [GpmColumns(g.variables, g.conditions, g.certain) for g in candidate.gpms]
    try:
        tested_program(candidate.program, columns, candidate.partition, candidate.window)
    except NotCompilable as reason:
        return str(reason)
    return None


def selects(plan: QueryPlan) -> bool:
    """Whether the plan's evaluator applies the selection strategy itself.

    It does where that is the same as selecting among all answers of one end: HAVING comes first,
    unless the strategy is STRICT, which looks at each match alone; and MAX compares the matches of
    one key only.
    """
    if plan.evaluator not in _SHARING or plan.strategy == "ALL":
        return False
    if plan.strategy == "MAX" and plan.evaluator_key:
        return False
    return plan.having is None or plan.strategy == "STRICT"


def limits(plan: QueryPlan) -> bool:
    """Whether the plan's evaluator can see to a limit on answers: each match it gives is one."""
    return (
        plan.evaluator in _SHARING
        and (plan.strategy == "ALL" or selects(plan))
        and plan.having is None
        and not plan.distinct
        and plan.after_match.kind == "NO SKIP"
    )


class _Facts:
    def __init__(self, candidate: Candidate) -> None:
        self._of = candidate
        self._plans = {g.name: g for g in candidate.gpms}
        self._binders: dict[str, list[GpmPlan]] = {}  # variable -> GPMs of positive steps
        for use in candidate.scope.occurrences:
            if use.negation is None:
                for variable in self._plans[use.gpm].variables:
                    self._binders.setdefault(variable, []).append(self._plans[use.gpm])
        joined = {v for v in self._binders if v not in candidate.fixed and self._joins(v)}
        self._joined = sorted(joined)
        self.key = tuple(sorted(joined.union(candidate.inferred)))
        self._key = frozenset(self.key) | candidate.fixed

    def obstacles(self) -> Iterator[str]:
        """What the compact evaluator cannot do, in words."""
        for step in seq.steps(self._of.chain):
            if isinstance(step, seq.BinaryStep) and step.kind != "|":
                yield f"{step.kind} brings events together in any order"
        for gpm in self._of.gpms:
            if gpm.conditions:
                yield f"a FILTER of {gpm.name} looks at earlier steps"
        yield from self._joins_beside_keys()
        for variable in sorted(self._of.scope.owner):
            for gpm in self._binders.get(variable, ()):
                if variable not in gpm.certain:
                    yield f"{gpm.name} may leave the group variable ?{variable} unbound"
        yield from self._negations()
        yield from self._edges()

    def not_a_chain(self) -> str | None:
        """Why a sequence is none of single GPMs in a row, in words."""
        for step in seq.steps(self._of.chain):
            match step:
                case seq.Repeat():
                    return "it repeats a step"
                case seq.BinaryStep():
                    return "it has alternatives"
        if self._of.strategy == "MAX":
            return "SELECT MAX compares matches"
        return None

    # --- variables --------------------------------------------------------------------------------

    def _joins_beside_keys(self) -> Iterator[str]:
        everywhere = frozenset.intersection(*(g.certain for g in self._of.gpms))
        for variable in self._joined:
            if variable in self._of.scope.owner:
                yield f"the steps of a repetition join on ?{variable}"
            elif variable not in everywhere:
                yield f"steps join on ?{variable}, and not every GPM binds it"

    def _joins(self, variable: str) -> bool:
        """Whether two events of one match (of one repetition, for a group variable) may both bind
        a variable, so that they must agree."""
        owner = self._of.scope.owner.get(variable)
        within = self._of.chain
        for step in seq.steps(self._of.chain):
            if isinstance(step, seq.Repeat) and step.id == owner:
                within = step.body
        return self._bound(within, variable) > 1

    def _bound(self, chain: seq.Chain, variable: str) -> int:
        """How many events of one match of a chain may bind a variable; 2 for more than one."""
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
        negated = [isinstance(link.step, seq.Negation) for link in self._of.chain.links]
        if negated[0] or negated[-1]:
            yield "a negated step in first or last place looks at the whole window"
        for step in seq.steps(self._of.chain):
            if isinstance(step, seq.Negation):
                yield from self._negation(step)

    def _negation(self, step: seq.Negation) -> Iterator[str]:
        match step.body.links:
            case (seq.Link(step=seq.GpmStep(use)),):
                gpm = self._plans[use.gpm]
                shared = sorted(self._binders.keys() & set(gpm.variables) - self._key)
                if shared:
                    yield f"the negated {gpm.name} shares ?{shared[0]} with the match"
            case _:
                yield "a negated step is more than a single GPM"

    def _edges(self) -> Iterator[str]:
        for edge in self._of.program.edges:
            if edge.join is not None and edge.join.gap_ms is not None:
                yield "an operator bounds the gap between two steps"
            if (
                edge.join is None
                or edge.join.kind != ";"
                or not isinstance(edge.label, BracketLabel)
            ):
                continue
            if not all(map(_is_one_event, edge.label.operands)):
                yield "an alternative behind ; has several steps"


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
