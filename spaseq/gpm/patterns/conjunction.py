"""Flattening nested joins and filters into a conjunction, and evaluating its parts in any order.

`GRAPH <kb> { ?a :name ?x . ?b :name ?y }` over n names has n * n solutions. Joining the components
with the event one by one avoids this product.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.constants import folded, is_constant
from spaseq.algebra.groups import conjoined
from spaseq.algebra.nodes import certain, possible, triple_variables
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools
from spaseq.expr.compile import Options
from spaseq.expr.uses import is_volatile
from spaseq.gpm.graphs.event_bgp import EventBgp
from spaseq.gpm.solutions.joins import join, pair_count
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.gpm.solutions.thresholds import FLIPPED, Comparison, joined_by_value
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, exists_uses, expression_variables
from spaseq.plan.pattern_plan import FASTEST, PatternEvaluation
from spaseq.records import record

Names = frozenset[str]


def components(parts: Sequence[n.Pattern]) -> list[tuple[list[n.Pattern], Names]]:
    """The parts in groups that share no variable, each with its variables."""
    groups: list[tuple[list[n.Pattern], Names]] = []
    for part in parts:
        names = possible(part)
        apart = [g for g in groups if not g[1] & names]
        touching = [g for g in groups if g[1] & names]
        members = [p for g in touching for p in g[0]] + [part]
        groups = [*apart, (members, names.union(*(g[1] for g in touching)))]
    return groups


def joined(parts: Sequence[n.Pattern]) -> n.Pattern:
    """The join of at least one pattern; the triple patterns of all BGPs become one BGP."""
    triples = tuple(t for part in parts if isinstance(part, n.BGP) for t in part.triples)
    operands: list[n.Pattern] = [n.BGP(triples)] if triples else []
    operands.extend(part for part in parts if not isinstance(part, n.BGP))
    return folded(n.Join, operands)


@record
class FilterConjunct:
    """One conjunct of a FILTER; `early` if it can be tested as soon as its variables are bound."""

    expr: ast.Expr
    variables: frozenset[str]
    early: bool


@record
class Conjunction:
    """A join of triple patterns and other operands, with conditions on it.

    `bgp` are the triple patterns, prepared for evaluation on events. `searches` are operands with
    repeated paths, which are searched from the nodes that the other parts bind. `stored` are
    variables that every solution binds to a term of the graph.
    """

    triples: tuple[n.TriplePattern, ...]
    bgp: EventBgp | None
    operands: tuple[n.Pattern, ...]
    searches: tuple[n.Pattern, ...]
    conditions: tuple[FilterConjunct, ...]
    stored: frozenset[str]

    @property
    def every_operand(self) -> tuple[n.Pattern, ...]:
        return (*self.operands, *self.searches)


def conjunction(pattern: n.Pattern, evaluation: PatternEvaluation = FASTEST) -> Conjunction:
    """The pattern as a conjunction. Another pattern becomes its only operand."""
    expr: ast.Expr | None = None
    if isinstance(pattern, n.Filter):
        expr, inner = pattern.expr, pattern.pattern
    else:
        inner = pattern
    triples, operands, floated = _parts(inner)
    sure = certain(inner)
    of_filter = [_condition(e, sure) for e in conjuncts([expr])] if expr is not None else []
    bgp = EventBgp(triples, evaluation) if triples else None
    searches = tuple(filter(has_repetition, operands))
    others = tuple(operand for operand in operands if operand not in searches)
    return Conjunction(
        tuple(triples), bgp, others, searches, (*floated, *of_filter), _stored(triples, operands)
    )


def _stored(triples: Sequence[n.TriplePattern], operands: Sequence[n.Pattern]) -> frozenset[str]:
    """The variables of triple patterns, and of paths that no constant ends.

    A path of length zero from a constant binds it, whether the graph has it or not.
    """
    free = (path for path in operands if isinstance(path, n.Path) and len(possible(path)) == 2)
    return frozenset[str]().union(*map(triple_variables, triples), *map(possible, free))


def has_repetition(pattern: n.Pattern) -> bool:
    """Whether a pattern has a repeated property path."""
    if isinstance(pattern, n.Path):
        return isinstance(pattern.path, ast.PathRepeat)
    return any(map(has_repetition, n.children(pattern)))


def easiest(searches: Sequence[n.Pattern], bound: Collection[str]) -> n.Pattern:
    """The next search: a path with both ends bound, or one, before paths with none."""

    def rank(pattern: n.Pattern) -> tuple[bool, int]:
        free = sum(name not in bound for name in possible(pattern))
        return not (bound and any(name in bound for name in possible(pattern))), free

    return min(searches, key=rank)


Parts = tuple[list[n.TriplePattern], list[n.Pattern], list[FilterConjunct]]


def _parts(pattern: n.Pattern) -> Parts:
    match pattern:
        case n.BGP(triples):
            return list(triples), [], []
        case n.Join(left, right):
            first, second = _parts(left), _parts(right)
            return first[0] + second[0], first[1] + second[1], first[2] + second[2]
        case n.Filter(expr, inner):
            return _filtered(expr, inner)
        case n.Extend(n.Join(left, right), variable, expr) if _is_known_apart(right, expr):
            return _parts(n.Join(n.Extend(left, variable, expr), right))
        case n.Graph(str() as name, inner):
            return _graph_parts(name, inner, pattern)
        case _:
            return [], [pattern], []


def _is_known_apart(part: n.Pattern, expr: ast.Expr) -> bool:
    """Whether a part reads no event, and a BIND behind it does not read the part."""
    uses = expression_variables(expr)
    plain = not is_volatile(expr) and not exists_uses(expr)
    return plain and is_constant(part) and possible(part).isdisjoint(uses)


def _graph_parts(name: str, inner: n.Pattern, whole: n.Pattern) -> Parts:
    """A GRAPH block, with one operand per component."""
    triples, operands, conditions = _parts(inner)
    groups = components([*(n.BGP((t,)) for t in triples), *operands])
    if len(groups) < 2:
        return [], [whole], []
    graphs: list[n.Pattern] = []
    for members, names in groups:
        inside = [c for c in conditions if c.variables and c.variables <= names]
        conditions = [c for c in conditions if c not in inside]
        expr = conjoined([c.expr for c in inside])
        part = joined(members)
        graphs.append(n.Graph(name, part if expr is None else n.Filter(expr, part)))
    return [], graphs, conditions


def _filtered(expr: ast.Expr, inner: n.Pattern) -> Parts:
    """A FILTER inside a join.

    Its conjuncts move to the join if its group certainly binds their variables.
    """
    sure = certain(inner)
    conditions = [_condition(e, sure) for e in conjuncts([expr])]
    if not all(c.early for c in conditions):
        return [], [n.Filter(expr, inner)], []
    triples, operands, floated = _parts(inner)
    return triples, operands, floated + conditions


def _condition(expr: ast.Expr, sure: frozenset[str]) -> FilterConjunct:
    variables = expression_variables(expr)
    return FilterConjunct(expr, variables, variables <= sure and not exists_uses(expr))


def _comparison(condition: FilterConjunct, left: Solutions, right: Solutions) -> Comparison | None:
    """A condition that orders a certain variable of each side; None for others."""
    match condition.expr:
        case ast.Compare(op, ast.Var(one), ast.Var(other)) if op != "!=" and condition.early:
            if one in right.columns:
                one, other, op = other, one, FLIPPED[op]
            if one not in left.columns or other not in right.columns:
                return None
            if left.may_be_unbound(one) or right.may_be_unbound(other):
                return None
            return Comparison(one, op, other)
    return None


def _bound(solutions: Solutions) -> set[str]:
    """The variables that all solutions bind."""
    return {v for v in solutions.columns if not solutions.may_be_unbound(v)}


class ConjunctionEvaluation:
    """One evaluation of a conjunction: joins parts and tests conditions as early as possible."""

    def __init__(
        self,
        conditions: Sequence[FilterConjunct],
        test: Callable[[ast.Expr, Solutions], Bools],
        places: Options | None = None,
    ) -> None:
        """`places` are the options of places' expressions if joins by place ask an index."""
        self.remaining, self._places = list(conditions), places
        self._test = test
        self._waiting: list[Solutions] = []  # parts that share no variable with the result so far

    def searched(self, seeds: Sequence[Solutions], parts: Sequence[Solutions]) -> Solutions | None:
        """The join of seeds, or else of the smallest part, with all connected parts.

        The other parts wait until `joined` connects them, or for `finished`. None if there is
        neither a seed nor a part.
        """
        self._waiting = [*seeds, *parts]
        if not self._waiting:
            return None
        first = self._waiting[0] if seeds else min(parts, key=lambda p: self._rank(None, p))
        self._waiting = [part for part in self._waiting if part is not first]
        return self._linked(self._tested(first))

    def finished(self, result: Solutions | None) -> Solutions | None:
        """The join with the parts that nothing is connected to."""
        if not self._waiting or (result is not None and not result.size):
            return result
        waiting, self._waiting = self._waiting, []
        return self.joined(result, waiting)

    def _linked(self, result: Solutions) -> Solutions:
        """The join with waiting parts that share variables; the one with fewest pairs is first."""
        while result.size:
            current_budget().check()
            near = [p for p in self._waiting if not result.columns.keys().isdisjoint(p.columns)]
            if not near:
                break
            part = near[0] if len(near) == 1 else min(near, key=lambda p: pair_count(result, p))
            self._waiting = [waiting for waiting in self._waiting if waiting is not part]
            result = self._tested(self._join(result, part))
        return result

    def joined(self, result: Solutions | None, pool: list[Solutions]) -> Solutions:
        """The join of `result` and a nonempty pool; small parts that share variables come first."""
        while pool:
            current_budget().check()
            ranks = [self._rank(result, part) for part in pool]
            part = pool.pop(ranks.index(min(ranks)))
            result = self._tested(part if result is None else self._join(result, part))
            if not result.size:
                break
        assert result is not None
        return self._linked(result) if self._waiting else result

    def _join(self, result: Solutions, part: Solutions) -> Solutions:
        """The join; only the pairs that may pass the conditions on both."""
        if (
            result.event is None
            or part.event is not None
            or part.size < thresholds.current.narrowed_rows
        ):
            return join(result, part)
        placed = self._joined_by_place(result, part)
        if placed is not None:
            return placed
        tests = {t: c for c in self.remaining if (t := _comparison(c, result, part)) is not None}
        if not tests:
            return join(result, part)
        if part.columns.keys().isdisjoint(result.columns):
            return joined_by_value(result, part, [*tests])
        from spaseq.gpm.solutions.thresholds import joined_by_key_and_value

        pairs = joined_by_key_and_value(result, part, [*tests])
        if pairs is None:
            return join(result, part)
        if pairs.is_decided:
            self.remaining.remove(tests[pairs.comparison])
        return pairs.solutions.within(current_budget())

    def _joined_by_place(self, result: Solutions, part: Solutions) -> Solutions | None:
        """The pairs that pass a condition on their places; None without such a condition."""
        if self._places is None or not part.columns.keys().isdisjoint(result.columns):
            return None
        from spaseq.expr.place_tests import place_join, place_test
        from spaseq.gpm.solutions.places import joined_by_place  # it needs an extra

        for condition in [c for c in self.remaining if place_test(c.expr) is not None]:
            join = place_join(condition.expr, _bound(result), _bound(part))
            if join is not None and condition.early:
                self.remaining.remove(condition)
                return joined_by_place(result, part, join, self._places)
        return None

    def _rank(self, result: Solutions | None, part: Solutions) -> tuple[bool, bool, int]:
        """The order of a part in the join: smaller ranks come first."""
        if result is None:
            filtered = any(self._is_ready(c, part) for c in self.remaining)
            return part.event is None, not filtered, part.size
        shares = any(v in result.columns for v in part.columns)
        return not shares, part.event is None, part.size

    def _is_ready(self, condition: FilterConjunct, solutions: Solutions) -> bool:
        return condition.early and all(
            v in solutions.columns and not solutions.may_be_unbound(v) for v in condition.variables
        )

    def _tested(self, result: Solutions) -> Solutions:
        ready = [c for c in self.remaining if self._is_ready(c, result)]
        self.remaining = [c for c in self.remaining if c not in ready]
        for condition in ready:
            result = result.take(self._test(condition.expr, result))
        return result
