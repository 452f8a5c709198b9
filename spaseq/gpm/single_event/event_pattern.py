"""Joins of graph patterns over one event: its triples as Python strings, without columns.

A pushed event must be matched within microseconds, which is too short to build many arrays. So
this module evaluates triple patterns and their conditions one by one, and joins the solutions with
the other operands. `GpmEvaluator` evaluates a pattern that has an operand for which there is no
operator here (`EventOperators`), if the triple patterns have a solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeAlias

from spaseq.algebra.constants import is_part
from spaseq.algebra.nodes import (
    Pattern,
    TriplePattern,
    certain,
    is_reserved,
    possible,
    triple_variables,
)
from spaseq.expr.compile import Options, compile_filter
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.uses import is_volatile
from spaseq.gpm.patterns.conjunction import Conjunction, FilterConjunct
from spaseq.gpm.single_event.event_graph import (
    EventGraph,
    KnownPart,
    NeedsColumns,
    Operator,
    Solution,
    are_compatible,
    can_be_joined,
    check_pairs,
    known_places,
)
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.rdf.terms.term import Triple
from spaseq.records import record

EventTest: TypeAlias = Callable[[Solution, EventGraph], bool]
"""Whether a solution on an event passes a condition."""


@record
class _TripleStep:
    """One triple pattern, and the conditions that can be tested after it.

    Each position has a constant or a variable; the other one is None.
    """

    constants: tuple[str | None, str | None, str | None]
    variables: tuple[str | None, str | None, str | None]
    tests: tuple[Callable[[Env], bool], ...]
    most: int

    @classmethod
    def of(
        cls, triple: TriplePattern, tests: Iterable[Callable[[Env], bool]], most: int
    ) -> _TripleStep:
        s, p, o = ((t, None) if isinstance(t, str) else (None, t.name) for t in triple.terms)
        return cls((s[0], p[0], o[0]), (s[1], p[1], o[1]), tuple(tests), most)

    def candidates(self, graph: EventGraph) -> Collection[Triple]:
        """The triples of an event that have the predicate."""
        predicate = self.constants[1]
        return graph.triples if predicate is None else graph.by_predicate.get(predicate, ())

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution]:
        """Join the solutions with the triple pattern's solutions that pass the tests.

        Raises:
            NeedsColumns: that takes too many comparisons.
        """
        subject, _, object_ = self.constants
        s_name, p_name, o_name = self.variables
        candidates = self.candidates(graph)
        if len(solutions) > 1:
            check_pairs(len(solutions), len(candidates), self.most)
        extended: list[Solution] = []
        for s, p, o in candidates:
            if (object_ is not None and o != object_) or (subject is not None and s != subject):
                continue
            for solution in solutions:
                further = solution.copy()
                if (
                    (o_name is None or further.setdefault(o_name, o) == o)
                    and (s_name is None or further.setdefault(s_name, s) == s)
                    and (p_name is None or further.setdefault(p_name, p) == p)
                    and (not self.tests or self._holds(DictEnv(further)))
                ):
                    extended.append(further)
        return extended

    def _holds(self, env: Env) -> bool:
        return all(test(env) for test in self.tests)


@record
class _OperandStep:
    """An operand that is no triple pattern, and the conditions that can be tested after it."""

    operator: Operator
    tests: tuple[Callable[[Env], bool], ...]
    most: int

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution]:
        """Join the solutions with the operand's."""
        others = self.operator(graph)
        check_pairs(len(solutions), len(others), self.most)
        joined = [
            {**one, **other} for one in solutions for other in others if are_compatible(one, other)
        ]
        if not self.tests:
            return joined
        return [one for one in joined if all(test(DictEnv(one)) for test in self.tests)]


@record
class _LastStep:
    """The conditions that are tested after all operands."""

    tests: tuple[EventTest, ...]

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution]:
        """The solutions that pass."""
        return [one for one in solutions if all(test(one, graph) for test in self.tests)]


class JoinStep(Protocol):
    """A part of a join."""

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution]:
        """Join the solutions with the part's; NeedsColumns if they may be too many."""


class Operands(Protocol):
    """The evaluators of a join's operands that are no triple patterns.

    `most` is the maximum number of solutions of a pattern, before any condition is tested.
    """

    @property
    def options(self) -> Options:
        """The options of expressions."""

    @property
    def most(self) -> int: ...

    @property
    def indexes_places(self) -> bool:
        """Whether joins by place use an index."""

    @property
    def counts_all(self) -> bool:
        """Whether equal solutions count, as in a sub-SELECT; elsewhere matches are a set."""

    def constant(self, pattern: Pattern) -> Solutions | None:
        """The solutions of a part that does not depend on the event; None for others."""

    def operator(self, pattern: Pattern) -> Operator | None:
        """The solutions of a part on an event; None if it needs columns."""

    def test(self, expr: ast.Expr) -> EventTest | None:
        """The test of a condition on an event; None if it needs columns."""


class EventPattern:
    """A join of triple patterns and other operands, with conditions.

    If `is_whole`, that is the whole pattern. Otherwise the whole pattern has no solution on an
    event where this one has none.
    """

    def __init__(self, parts: Conjunction, operands: Operands) -> None:
        bound = frozenset[str]().union(*map(triple_variables, parts.triples))
        conditions = [c for c in parts.conditions if parts.triples and _is_decided(c, bound)]
        waiting = [c for c in parts.conditions if c not in conditions]
        self._has_parts = any(map(is_part, parts.triples))
        self._most, self._counts_all = operands.most, operands.counts_all
        self._triples = tuple(_steps(parts.triples, conditions, operands))
        self._few = math.floor(self._most ** (1 / max(1, len(self._triples))))  # without more
        others = _operand_steps(parts, bound, waiting, operands)
        last = None if others is None else _last_step(waiting, operands)
        self.is_whole = last is not None
        self._steps: tuple[JoinStep, ...] = (*self._triples, *(others or ()), *(last or ()))

    def solutions(self, graph: EventGraph) -> Sequence[Solution]:
        """The solutions on an event.

        Raises:
            NeedsColumns: there may be too many for this evaluator.
        """
        if self._has_parts:
            graph.take_parts()
        if len(graph.triples) > self._few and self._may_be_too_many(graph):
            raise NeedsColumns
        solutions: list[Solution] = [{}]
        for step in self._steps:
            solutions = step.extended(solutions, graph)
            if not solutions:
                return solutions
        if len(solutions) == 1 or self._counts_all:
            return solutions
        return distinct_solutions(solutions)

    def _may_be_too_many(self, graph: EventGraph) -> bool:
        return math.prod(len(step.candidates(graph)) for step in self._triples) > self._most


def _operand_steps(
    parts: Conjunction,
    bound: frozenset[str],
    waiting: list[FilterConjunct],
    operands: Operands,
) -> list[JoinStep] | None:
    """The steps of operands that are no triple patterns; operands that share variables come first.

    None if one of them needs columns. Removes the conditions from `waiting` that can be tested
    after an operand.
    """
    left = [(operand, operands.constant(operand)) for operand in parts.every_operand]
    steps: list[JoinStep] = []
    maybe = bound  # what may be bound
    while left:
        ranks = [_rank(known, bound) for _, known in left]
        operand, known = left.pop(ranks.index(min(ranks)))
        is_joined = known is not None and can_be_joined(known, bound, maybe - bound)
        places = None
        if known is not None and operands.indexes_places:
            places = known_places(known, waiting, bound, maybe, operands.options)
        after = bound | (known.columns.keys() if known and is_joined else certain(operand))
        due = [c for c in waiting if _is_decided(c, after)]
        waiting[:] = [c for c in waiting if c not in due]
        tests = tuple(compile_filter(c.expr, operands.options) for c in due)
        if places is not None:
            steps.append(places.with_tests(tests))
        elif known is not None and is_joined:
            steps.append(KnownPart(known, bound, tests))
        else:
            operator = operands.operator(operand)
            if operator is None:
                return None
            steps.append(_OperandStep(operator, tests, operands.most))
        bound, maybe = after, maybe | possible(operand)
    return steps


def _rank(known: Solutions | None, bound: frozenset[str]) -> int:
    """The rank of an operand in the join: known ones that share a variable come first."""
    if known is None:
        return 1
    return 0 if bound & known.columns.keys() else 2


def _last_step(waiting: Sequence[FilterConjunct], operands: Operands) -> list[JoinStep] | None:
    """The step of the remaining conditions; None if one of them needs columns."""
    tests = [operands.test(condition.expr) for condition in waiting]
    known = tuple(test for test in tests if test is not None)
    if len(known) < len(tests):
        return None
    return [_LastStep(known)] if known else []


def _is_decided(condition: FilterConjunct, bound: frozenset[str]) -> bool:
    return condition.early and condition.variables <= bound and not is_volatile(condition.expr)


def _steps(
    triples: Iterable[TriplePattern], conditions: Sequence[FilterConjunct], operands: Operands
) -> Iterable[_TripleStep]:
    """The triple patterns, the ones with most constants and known variables first."""
    left, waiting = list(triples), list(conditions)
    known: frozenset[str] = frozenset()
    while left:
        ranks = [_open_places(triple, known) for triple in left]
        triple = left.pop(ranks.index(min(ranks)))
        known |= triple_variables(triple)
        due = [c for c in waiting if c.variables <= known]
        waiting = [c for c in waiting if c not in due]
        tests = (compile_filter(c.expr, operands.options) for c in due)
        yield _TripleStep.of(triple, tests, operands.most)


def _open_places(triple: TriplePattern, known: frozenset[str]) -> int:
    return sum(isinstance(term, ast.Var) and term.name not in known for term in triple.terms)


def distinct_solutions(solutions: Iterable[Solution]) -> Sequence[Solution]:
    """The solutions that differ in more than the pattern's blank nodes."""
    visible = {
        frozenset((v, t) for v, t in solution.items() if not is_reserved(v)): solution
        for solution in solutions
    }
    return list(visible.values())
