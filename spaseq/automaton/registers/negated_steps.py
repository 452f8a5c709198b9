"""Negated steps and UNTIL in the register kernel: the tests of a solution against a run or a match.

A negated step between two steps, or the GPM of UNTIL, ends a waiting run. So it may use only the
variables that the run has for certain, and whose values the match keeps. A negated step in first or
last place sees the whole match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.automaton.program.bound_variables import BoundVariables
from spaseq.automaton.program.nfa import GpmColumns, NoKernel, Program, TakeLabel
from spaseq.automaton.registers.compiled.edge_tests import (
    AnyTests,
    AskedTest,
    EdgeTest,
    EdgeTests,
    Number,
    Place,
    Read,
    RunValue,
    SolutionValue,
    asked_test,
)
from spaseq.automaton.registers.filter_tests import equality_test, tests_of
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.records import record


@record
class _Seen:
    """The variables that a negated step sees: `given` in every match, with their final values.

    `doubt` describes the possible values of other variables of the match. `by_run`: a run is
    tested, not a match.
    """

    possibly: frozenset[str]
    given: frozenset[str]
    doubt: str
    by_run: bool = False

    def can_ask(self, condition: ast.Expr, gpm: GpmColumns) -> bool:
        """Whether terms of the run, and the solution's time, decide a FILTER."""
        nodes = [*walk(condition)]
        names = {node.name for node in nodes if isinstance(node, ast.Var)} - gpm.certain
        if not self.by_run or is_volatile(condition) or names & {*gpm.variables}:
            return False
        if any(isinstance(node, ast.Prev | ast.Aggregate | ast.Timestamp) for node in nodes):
            return False
        return names & self.possibly <= self.given


class NegatedSteps:
    """The tests of negated steps.

    `taken` are the GPMs of steps that are not negated, `key` the variables on which all solutions
    of a match agree.
    """

    def __init__(
        self,
        program: Program,
        gpms: Sequence[GpmColumns],
        bound: BoundVariables,
        taken: Iterable[int],
        key: Iterable[str],
    ) -> None:
        self._program, self._gpms, self._bound = program, gpms, bound
        self._taken, self._key = frozenset(taken), frozenset(key)
        self._ever_bound = frozenset[str]().union(*bound.possibly)

    def ending(self, source: int, negated: TakeLabel) -> AnyTests | None:
        """The tests by which a solution ends a run that waits in a state; None if none can.

        Raises:
            NoKernel: the run lacks values that the tests need.
        """
        given = self._bound.certainly[source] - self._program.owner.keys()
        seen = _Seen(self._ever_bound, given, "whose value may still change", by_run=True)
        return self._tests(negated, seen)

    def forbidding(self, negated: TakeLabel) -> EdgeTests | None:
        """The tests by which a solution forbids a complete match; None if none can.

        Raises:
            NoKernel: a match may lack values that the tests need.
        """
        states = zip(self._program.automaton.states, self._bound.certainly, strict=True)
        certainly = frozenset.intersection(*(vs for state, vs in states if state.acceptances))
        states = zip(self._program.automaton.states, self._bound.possibly, strict=True)
        possibly = frozenset.union(*(vs for state, vs in states if state.acceptances))
        given = frozenset(filter(self._is_in_every_repetition, certainly))
        tests = self._tests(negated, _Seen(possibly, given, "which may be unbound"))
        if tests is None:
            return None
        return tuple(test for test in tests if isinstance(test, EdgeTest))  # none is asked

    def _is_in_every_repetition(self, variable: str) -> bool:
        """Whether a variable is single, or each repetition of its step binds it."""
        binders = [self._gpms[g] for g in self._taken if variable in self._gpms[g].variables]
        return variable not in self._program.owner or all(variable in g.certain for g in binders)

    def _tests(self, negated: TakeLabel, seen: _Seen) -> AnyTests | None:
        gpm, name = self._gpms[negated.gpm], negated.name
        tests, asked = list[EdgeTest | AskedTest](), list[ast.Expr]()
        for variable in gpm.variables:
            if variable in self._key or variable not in seen.possibly:
                continue
            if variable not in gpm.certain:
                raise NoKernel(f"the negated {name} may leave the shared ?{variable} unbound")
            if variable not in seen.given:
                raise NoKernel(f"the negated {name} shares ?{variable}, {seen.doubt}")
            tests.append(same_term(variable))
        for condition in gpm.conditions:
            try:
                remaining = tests_of(condition, lambda v: _place(v, gpm, name, seen))
            except NoKernel:
                if not seen.can_ask(condition, gpm):
                    raise
                asked.append(condition)
                tests += equality_test(condition, lambda v: _place(v, gpm, name, seen))
                continue
            if remaining is None:
                return None
            tests += remaining
        if asked:
            tests.append(asked_test(asked, gpm, seen.given))
        return tuple(tests)


def _place(variable: Read, gpm: GpmColumns, negated: str, seen: _Seen) -> Place:
    """The place of a variable in a FILTER of a negated step."""
    match variable:
        case ast.Var(name):
            pass
        case ast.Prev() | ast.Aggregate():
            raise NoKernel("a negated step uses PREV or an aggregate")
        case _:
            raise NoKernel("a negated step uses TIMESTAMP or NOW")
    if name in gpm.certain:
        return SolutionValue(name)
    if name in gpm.variables:
        raise NoKernel(f"the negated {negated} uses ?{name}, which may be unbound")
    if name not in seen.possibly:
        return None
    if name not in seen.given:
        raise NoKernel(f"the negated {negated} uses ?{name}, {seen.doubt}")
    return RunValue(name)


def same_term(variable: str) -> EdgeTest:
    """The test of a join."""
    term = Number(variable, by_term=True)
    return EdgeTest(term, "=", term)
