"""Graph patterns over one event by itself: its triples as Python strings, no columns.

A pushed event is matched within microseconds, in which a few arrays can be made and no more. So its
triple patterns and the conditions over them are looked at one by one; what else a pattern has is
left to `GpmEvaluator`, and only asked for where the triple patterns have a solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from spaseq.algebra.nodes import Pattern, PatternTerm, TriplePattern, is_reserved
from spaseq.algebra.scope import triple_variables
from spaseq.expr.compile import Options, compile_filter, is_volatile
from spaseq.expr.env import DictEnv, Env
from spaseq.gpm.conjunction import Condition, conjunction
from spaseq.lang import ast
from spaseq.rdf.events import Triple

Solution = dict[str, str]
"""N-Triples texts by variable, blank nodes of the pattern among them."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One triple pattern, and the conditions that can be tested after it."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm
    tests: tuple[Callable[[Env], bool], ...]


class EventPattern:
    """The triple patterns of a graph pattern, with the conditions that they decide.

    Their solutions on an event are those of the whole pattern if `is_whole`; if not, the pattern
    has no solution where they have none.
    """

    def __init__(self, pattern: Pattern, options: Options) -> None:
        parts = conjunction(pattern)
        bound = frozenset[str]().union(*map(triple_variables, parts.triples))
        conditions = [c for c in parts.conditions if parts.triples and _is_decided(c, bound)]
        self.is_whole = not parts.operands and len(conditions) == len(parts.conditions)
        self._steps = tuple(_steps(parts.triples, conditions, options))

    def solutions(self, triples: Sequence[Triple]) -> Iterable[Solution]:
        """The solutions on the graph of these triples, each of which is there once."""
        found: list[Solution] = [{}]
        for step in self._steps:
            found = _extended(found, step, triples)
            if not found:
                return found
        return _distinct(found) if len(found) > 1 else found


def _is_decided(condition: Condition, bound: frozenset[str]) -> bool:
    return condition.early and condition.variables <= bound and not is_volatile(condition.expr)


def _steps(
    triples: Iterable[TriplePattern], conditions: Sequence[Condition], options: Options
) -> Iterable[_Step]:
    """The triple patterns, those with most constants first, then those with known variables."""
    left, waiting = list(triples), list(conditions)
    known: frozenset[str] = frozenset()
    while left:
        ranks = [_open_places(triple, known) for triple in left]
        triple = left.pop(ranks.index(min(ranks)))
        known |= triple_variables(triple)
        due = [c for c in waiting if c.variables <= known]
        waiting = [c for c in waiting if c not in due]
        tests = tuple(compile_filter(c.expr, options) for c in due)
        yield _Step(triple.subject, triple.predicate, triple.object, tests)


def _open_places(triple: TriplePattern, known: frozenset[str]) -> int:
    return sum(isinstance(term, ast.Var) and term.name not in known for term in triple.terms)


def _extended(solutions: list[Solution], step: _Step, triples: Sequence[Triple]) -> list[Solution]:
    """The solutions joined with those of one more triple pattern, and tested."""
    found = []
    predicate = step.predicate
    if isinstance(predicate, str):
        triples = [t for t in triples if t[1] == predicate]
    for solution in solutions:
        for s, p, o in triples:
            further = solution.copy()
            if (
                _fits(further, step.object, o)
                and _fits(further, step.subject, s)
                and (isinstance(predicate, str) or _fits(further, predicate, p))
                and all(test(DictEnv(further)) for test in step.tests)
            ):
                found.append(further)
    return found


def _fits(solution: Solution, term: PatternTerm, text: str) -> bool:
    """Whether a place of a triple pattern takes a term, which a variable is bound to then."""
    if isinstance(term, str):
        return term == text
    return solution.setdefault(term.name, text) == text


def _distinct(solutions: Iterable[Solution]) -> Iterable[Solution]:
    """The solutions that differ in more than the pattern's own blank nodes: matches are a set."""
    visible = {
        tuple((v, t) for v, t in solution.items() if not is_reserved(v)): solution
        for solution in solutions
    }
    return visible.values()
