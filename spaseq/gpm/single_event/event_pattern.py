"""Graph patterns over one event: its triples as Python strings, without columns.

A pushed event must be matched within microseconds, which is too short to build many arrays. So
this module evaluates triple patterns and their conditions one by one, and joins the solutions with
the parts that do not depend on the event. `GpmEvaluator` evaluates any other part, if the triple
patterns have a solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from spaseq.algebra.nodes import Pattern, TriplePattern, is_reserved
from spaseq.algebra.scope import triple_variables
from spaseq.expr.compile import Options, compile_filter, is_volatile
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.uses import calls_functions
from spaseq.gpm.patterns.conjunction import Conjunction, FilterConjunct
from spaseq.gpm.single_event.known_parts import KnownPart, Solution, can_be_joined
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.terms.term import Triple
from spaseq.records import record

MOST_PAIRS = 100_000
"""Most comparisons of solutions with triples in one step; with more, columns are faster."""


class EventGraph:
    """The distinct triples of one event, and the same by predicate."""

    __slots__ = ("by_predicate", "triples")

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples = dict.fromkeys(triples)
        self.by_predicate: dict[str, list[Triple]] = {}
        for triple in self.triples:
            alike = self.by_predicate.get(triple[1])
            if alike is None:
                self.by_predicate[triple[1]] = [triple]
            else:
                alike.append(triple)


@record
class _TripleStep:
    """One triple pattern, and the conditions that can be tested after it.

    Each position has a constant or a variable; the other one is None.
    """

    constants: tuple[str | None, str | None, str | None]
    variables: tuple[str | None, str | None, str | None]
    tests: tuple[Callable[[Env], bool], ...]

    @classmethod
    def of(cls, triple: TriplePattern, tests: Iterable[Callable[[Env], bool]]) -> _TripleStep:
        s, p, o = ((t, None) if isinstance(t, str) else (None, t.name) for t in triple.terms)
        return cls((s[0], p[0], o[0]), (s[1], p[1], o[1]), tuple(tests))

    def candidates(self, graph: EventGraph) -> Collection[Triple]:
        """The triples of an event that have the predicate."""
        predicate = self.constants[1]
        return graph.triples if predicate is None else graph.by_predicate.get(predicate, ())

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution] | None:
        """Join the solutions with the triple pattern's solutions that pass the tests.

        None if that takes more than `MOST_PAIRS` comparisons.
        """
        subject, _, object_ = self.constants
        s_name, p_name, o_name = self.variables
        candidates = self.candidates(graph)
        if len(solutions) * len(candidates) > MOST_PAIRS:
            return None
        found: list[Solution] = []
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
                    found.append(further)
        return found

    def _holds(self, env: Env) -> bool:
        return all(test(env) for test in self.tests)


class EventPattern:
    """The triple patterns of a graph pattern, its parts that read no event, and their conditions.

    If `is_whole`, that is the whole pattern. Otherwise the whole pattern has no solution on an
    event where this one has none.
    """

    def __init__(
        self,
        parts: Conjunction,
        options: Options,
        constant: Callable[[Pattern], Solutions | None] = lambda part: None,
        most: int = DEFAULT_LIMITS.solutions,
    ) -> None:
        """
        Args:
            parts: the graph pattern.
            options: for its expressions.
            constant: gives the solutions of a part that does not depend on the event.
            most: the solutions that the triple patterns may have, before any condition is tested.
        """
        bound = frozenset[str]().union(*map(triple_variables, parts.triples))
        conditions = [c for c in parts.conditions if parts.triples and _is_decided(c, bound)]
        self._steps = tuple(_steps(parts.triples, conditions, options))
        self._most = most
        self._few = math.floor(most ** (1 / max(1, len(self._steps))))  # triples without more
        waiting = [c for c in parts.conditions if c not in conditions]
        known = _known_parts(parts, bound, waiting, options, constant)
        self.is_whole = known is not None and not waiting
        self._known = tuple(known or ())
        self.calls = any(calls_functions(c.expr) for c in parts.conditions)

    def solutions(self, graph: EventGraph) -> Sequence[Solution] | None:
        """The solutions on an event; None if there are too many for this evaluator."""
        if len(graph.triples) > self._few and self._may_be_too_many(graph):
            return None
        found: list[Solution] = [{}]
        for step in self._steps:
            extended = step.extended(found, graph)
            if not extended:
                return extended
            found = extended
        for part in self._known:
            further = part.extended(found)
            if not further:
                return further
            found = further
        return _distinct(found) if len(found) > 1 else found

    def _may_be_too_many(self, graph: EventGraph) -> bool:
        return math.prod(len(step.candidates(graph)) for step in self._steps) > self._most


def _known_parts(
    parts: Conjunction,
    bound: frozenset[str],
    waiting: list[FilterConjunct],
    options: Options,
    constant: Callable[[Pattern], Solutions | None],
) -> list[KnownPart] | None:
    """The parts other than triple patterns, parts that share variables with these first.

    None if one of them needs evaluation in columns. Removes the conditions from `waiting` that can
    be tested after a part.
    """
    if parts.every_operand and not parts.triples:
        return None
    left = [constant(operand) for operand in parts.every_operand]
    found = []
    while left:
        ranks = [part is not None and not bound & part.columns.keys() for part in left]
        part = left.pop(ranks.index(min(ranks)))
        if part is None or not can_be_joined(part, bound):
            return None
        after = bound | part.columns.keys()
        due = [c for c in waiting if _is_decided(c, after)]
        waiting[:] = [c for c in waiting if c not in due]
        found.append(KnownPart(part, bound, (compile_filter(c.expr, options) for c in due)))
        bound = after
    return found


def _is_decided(condition: FilterConjunct, bound: frozenset[str]) -> bool:
    return condition.early and condition.variables <= bound and not is_volatile(condition.expr)


def _steps(
    triples: Iterable[TriplePattern], conditions: Sequence[FilterConjunct], options: Options
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
        yield _TripleStep.of(triple, (compile_filter(c.expr, options) for c in due))


def _open_places(triple: TriplePattern, known: frozenset[str]) -> int:
    return sum(isinstance(term, ast.Var) and term.name not in known for term in triple.terms)


def _distinct(solutions: Iterable[Solution]) -> Sequence[Solution]:
    """The solutions that differ in more than the pattern's blank nodes, as matches are a set."""
    visible = {
        tuple((v, t) for v, t in solution.items() if not is_reserved(v)): solution
        for solution in solutions
    }
    return list(visible.values())
