"""Evaluation of the algebra's operators on columns (SPARQL 1.1 section 18.6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import reduce
from typing import NoReturn

import numpy as np

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_constant
from spaseq.algebra.nodes import possible
from spaseq.algebra.remote import asks_endpoints
from spaseq.budget import OUT_OF_MEMORY, Budget, LimitExceeded, current_budget, spending
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.expr.columns import TermRows, filter_rows
from spaseq.expr.compile import Options
from spaseq.expr.leaves import makes_labelled_nodes, with_solution
from spaseq.gpm.graphs.triple_source import ActiveGraph, GraphSource, TripleSource, reduced
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.patterns.conjunction import (
    Conjunction,
    ConjunctionEvaluation,
    conjunction,
    easiest,
)
from spaseq.gpm.patterns.exists import ExistsTests
from spaseq.gpm.patterns.services import FailedRequest, Services, services_of
from spaseq.gpm.solutions import joins, modifiers
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded, translated
from spaseq.gpm.solutions.solutions import Solutions, none, unit
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.lang import ast
from spaseq.plan.pattern_plan import PatternEvaluation
from spaseq.rdf.columns.solution_batch import first_rows
from spaseq.rdf.columns.term_columns import distinct


def is_bound(pattern: n.Pattern, active: ActiveGraph) -> bool:
    """Whether solutions that the pattern's will be joined with bind one of its variables."""
    names = possible(pattern)
    return any(not names.isdisjoint(given.columns) for given in active.known)


def seeds_of(active: ActiveGraph, stored: Collection[str]) -> list[Solutions]:
    """The distinct bindings of a pattern's variables in each known sequence of solutions.

    Joining the pattern with them drops only solutions that are compatible with no known one, and
    repeats none. `stored` are variables that every solution of the pattern binds to a term of the
    graph. The sequences with most variables come first.
    """
    seeds = [_seed(given, active, stored) for given in active.known]
    return sorted(filter(None, seeds), key=lambda seed: -len(seed.columns))


def _seed(given: Solutions, active: ActiveGraph, stored: Collection[str]) -> Solutions | None:
    names = [v for v in given.columns if v in stored and not given.may_be_unbound(v)]
    if not names:
        return None
    lexicon = active.source.lexicon
    codes = [translated(given.columns[v], given.lexicon, lexicon, add=False) for v in names]
    known = np.flatnonzero(np.logical_and.reduce([column >= 0 for column in codes]))
    first = known[first_rows([column[known] for column in codes])]
    columns = {v: column[first] for v, column in zip(names, codes, strict=True)}
    return Solutions(len(first), None, columns, lexicon)


KB_SHARE = 10
"""A part that reads no event is evaluated once, so its limit is this many times as large."""

KB_ROWS_PER_TRIPLE = 4
"""Solutions of such a part that are always allowed per triple of the knowledge base."""


class LargeClosure(Exception):
    """A path connects too many pairs of nodes to cache them for all batches."""


def _large_closure(_: str) -> NoReturn:
    raise LargeClosure


class PatternOperators:
    """Evaluates patterns and caches the data derived from each pattern, by identity.

    A pattern that reads no event is evaluated once.
    """

    def __init__(
        self,
        knowledge: KnowledgeBase,
        options: Options,
        evaluation: PatternEvaluation,
        services: Services | None = None,
    ) -> None:
        self._knowledge = knowledge
        self._options = options
        self._evaluation = evaluation
        self._lexicon = Lexicon(knowledge.terms)
        self._constants: dict[int, tuple[n.Pattern, Solutions | LimitExceeded | None]] = {}
        self._conjunctions: dict[int, tuple[n.Pattern, Conjunction]] = {}
        self._exists: dict[int, tuple[ast.Expr, ExistsTests]] = {}
        self._asking: dict[int, tuple[n.Pattern, bool]] = {}
        self._sources = {
            name: GraphSource(graph, self._lexicon) for name, graph in knowledge.graphs.items()
        }
        self._services = services

    @property
    def services(self) -> Services:
        """The evaluator of requests to endpoints, made for the first pattern that needs it."""
        if self._services is None:
            self._services = services_of(self._knowledge)
        return self._services

    def take_failures(self) -> list[FailedRequest]:
        """The failed requests since the last call."""
        return [] if self._services is None else self._services.take_failures()

    def solutions(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        """The pattern's solutions, either of events or holding for every event.

        Raises:
            LimitExceeded: they exceed the active budget.
        """
        budget = current_budget()
        budget.check()
        if not active.of_events:
            return self._evaluate(pattern, active).within(budget)
        known = self._known(pattern)
        if isinstance(known, LimitExceeded):
            return self._from_bindings(pattern, active, known)
        return self._evaluate(pattern, active).within(budget) if known is None else known

    def constant(self, pattern: n.Pattern) -> Solutions | None:
        """The solutions of a pattern that uses neither an event nor an endpoint.

        None for other patterns, and if they are too many to cache: then each batch searches from
        the bindings of its events.
        """
        known = self._known(pattern)
        return None if isinstance(known, LimitExceeded) else known

    def _known(self, pattern: n.Pattern) -> Solutions | LimitExceeded | None:
        """The solutions of a pattern that reads no event, or the limit that they exceed."""
        known = self._constants.get(id(pattern))
        if known is None:
            solutions = None
            if is_constant(pattern) and not self.asks(pattern):
                solutions = self._of_knowledge(pattern)
            known = self._constants[id(pattern)] = pattern, solutions
        return known[1]

    def _from_bindings(
        self, pattern: n.Pattern, active: ActiveGraph, exceeded: LimitExceeded
    ) -> Solutions:
        """The solutions that the events need, of a pattern with too many to cache.

        Raises:
            LimitExceeded: the search gives more than one event may have, or no binding of the
                events leads to the pattern.
        """
        if not is_bound(pattern, active):
            raise exceeded
        with spending(current_budget().of_one_event()):
            return self._evaluate(pattern, active)

    def _of_knowledge(self, pattern: n.Pattern) -> Solutions | LimitExceeded | None:
        """All solutions of a pattern that reads no event, or the limit that they exceed.

        None if a path connects too many nodes.
        """
        limits = current_budget().limits
        rows = max(KB_SHARE * limits.solutions, KB_ROWS_PER_TRIPLE * len(self._knowledge))
        active = ActiveGraph(GraphSource(KbGraph(), self._lexicon), keeps=True)
        try:
            with spending(Budget(limits, rows, KB_SHARE * limits.timeout_s)):
                return self._evaluate(pattern, active)
        except LargeClosure:
            return None
        except (LimitExceeded, MemoryError) as error:
            reason = error.reason if isinstance(error, LimitExceeded) else OUT_OF_MEMORY
            return LimitExceeded(f"of the part that reads no event: {reason}", shared=True)

    def _evaluate(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        match pattern:
            case n.BGP() | n.Join() | n.Filter():
                return self._conjunction(pattern, active)
            case n.Path():
                return self._path(pattern, active)
            case n.Graph(name, inner):
                return self._graphs(name, inner, active)
            case n.Union(left, right):
                return joins.union(*self._alike(left, right, active))
            case n.Minus() | n.LeftJoin():
                return self._one_by_one(pattern, active)
            case n.Table(variables, rows):
                return self._table(variables, rows)
            case n.Extend():
                return self._extended(pattern, active)
            case n.Project(inner, variables):
                return self.solutions(inner, active.projecting(variables)).only(variables)
            case n.Distinct(inner):
                return modifiers.distinct(self.solutions(inner, active))
            case n.OrderBy(inner, conditions):
                solutions = self.solutions(inner, active)
                return modifiers.ordered(solutions, conditions, self._options)
            case n.Slice(inner, offset, limit):
                return modifiers.sliced(self.solutions(inner, active.alone()), offset, limit)
            case n.Group(inner, keys, aggregates):
                solutions = self.solutions(inner, active.alone())
                events = active.events
                return modifiers.grouped(solutions, keys, aggregates, events, self._options)
            case n.EventName():
                from spaseq.gpm.patterns.exists import event_names

                assert isinstance(active.source, VerticalPartition)
                return event_names(pattern, active.source)
            case n.EventBlock():
                raise AssertionError("EVENT is evaluated on window events only")
            case n.Given():
                raise AssertionError("values are given on single events only")
            case n.Service():
                return self.services.service(pattern, active.given, active.source.lexicon)

    def _path(self, pattern: n.Path, active: ActiveGraph) -> Solutions:
        from spaseq.gpm.graphs.paths import path_solutions  # few queries need it

        if not active.keeps:
            return path_solutions(active.source, pattern, active.events, active.known)
        limits = current_budget().limits
        with spending(
            Budget(limits, thresholds.current.closure_pairs, limits.timeout_s, _large_closure)
        ):
            return path_solutions(active.source, pattern, given=active.known)

    def _extended(self, pattern: n.Extend, active: ActiveGraph) -> Solutions:
        """Consecutive BINDs, which share the blank nodes of BNODE(label)."""
        chain = [pattern]
        while isinstance(chain[-1].pattern, n.Extend):
            chain.append(chain[-1].pattern)
        solutions = self.solutions(chain[-1].pattern, active)
        labelled = any(makes_labelled_nodes(step.expr) for step in chain)
        if labelled:
            solutions = modifiers.numbered(solutions)
        for step in reversed(chain):
            expr = with_solution(step.expr, modifiers.SOLUTION) if labelled else step.expr
            solutions, expr = self._answered(solutions, expr, active)
            solutions = modifiers.extended(solutions, step.variable, expr, self._options)
        return solutions.only([v for v in solutions.columns if v != modifiers.SOLUTION])

    # --- operands -------------------------------------------------------------------------------

    def _alike(
        self, left: n.Pattern, right: n.Pattern, active: ActiveGraph
    ) -> tuple[Solutions, Solutions]:
        """Both solutions in the same form; if one is of events, both are."""
        first, second = self.solutions(left, active), self.solutions(right, active)
        if (first.event is None) == (second.event is None):
            return first, second
        return active.spread(first), active.spread(second)

    def _one_by_one(self, pattern: n.Minus | n.LeftJoin, active: ActiveGraph) -> Solutions:
        """A row of OPTIONAL and MINUS, each on the solutions of all before it."""
        row, first = [pattern], pattern.left
        while isinstance(first, n.Minus | n.LeftJoin) and not is_constant(first):
            row.append(first)
            first = first.left
        solutions = self.solutions(first, active)
        for step in reversed(row):
            right = self._beside(step.right, solutions, active.beside(solutions))
            if right.event is not None:
                solutions = active.spread(solutions)
            match step:
                case n.Minus():
                    solutions = joins.minus(solutions, right)
                case n.LeftJoin(expr=expr):
                    solutions = self._left_join(solutions, right, expr, active)
            solutions = solutions.within(current_budget())
        return solutions

    def _beside(
        self, pattern: n.Pattern, given: Solutions | None, active: ActiveGraph
    ) -> Solutions:
        """The solutions of a pattern that will be joined with the solutions `given`.

        If `given` has few events, the pattern is evaluated on these events only.
        """
        part = None if given is None else self._few(pattern, given, active)
        if part is None:
            return self.solutions(pattern, active)
        events, index = part
        few = ActiveGraph(index, len(events))
        if given is not None and given.event is not None:
            places = np.searchsorted(events, given.event)
            few = few.beside(Solutions(given.size, places, given.columns, given.lexicon))
        of_few = self.solutions(pattern, few)
        if of_few.event is None:
            return of_few
        return Solutions(of_few.size, events[of_few.event], of_few.columns, of_few.lexicon)

    def _few(
        self, pattern: n.Pattern, solutions: Solutions, active: ActiveGraph
    ) -> tuple[Int64s, VerticalPartition] | None:
        """(events with solutions, their graphs) if evaluating on them alone pays off, else None."""
        source = active.source
        if (
            not self._evaluation.lazy
            or solutions.event is None
            or not isinstance(source, VerticalPartition)
            or is_constant(pattern)
            or self.asks(pattern)
        ):
            return None
        events = distinct(solutions.event)
        return (events, source.part(events)) if 2 * len(events) <= active.events else None

    def _left_join(
        self, left: Solutions, right: Solutions, expr: ast.Expr | None, active: ActiveGraph
    ) -> Solutions:
        if expr is None:
            return joins.left_join(left, right, None)
        condition = expr
        left = self._prepared(left, condition, active)
        return joins.left_join(left, right, lambda both: self._test(condition, both, active))

    def _graphs(self, name: n.PatternTerm, inner: n.Pattern, active: ActiveGraph) -> Solutions:
        """GRAPH over one named graph, or over each graph with the variable bound to its name."""
        if isinstance(name, str):
            return self._graph(name[1:-1], inner, active)
        graphs = (*self._knowledge.graphs, *self._knowledge.endpoints)
        of_graphs = [self._named(graph, name.name, inner, active) for graph in graphs]
        return reduce(joins.union, of_graphs) if of_graphs else none(self._lexicon, possible(inner))

    def _graph(self, name: str, inner: n.Pattern, active: ActiveGraph) -> Solutions:
        url = self._knowledge.endpoints.get(name)
        if url is not None:
            return self.services.ask(url, inner, active.given, self._lexicon, self._options.schema)
        source = self._sources.get(name)
        if source is None:
            return none(self._lexicon, possible(inner))
        return self.solutions(inner, replace(active, source=source, events=0))

    def _named(self, graph: str, variable: str, inner: n.Pattern, active: ActiveGraph) -> Solutions:
        code = self._lexicon.encode([f"<{graph}>"])
        name = Solutions(1, None, {variable: code}, self._lexicon)
        return joins.join(self._graph(graph, inner, active), name)

    def asks(self, pattern: n.Pattern) -> bool:
        """Whether the pattern or a part of it uses an endpoint."""
        known = self._asking.get(id(pattern))
        if known is None:
            asks = asks_endpoints(pattern, self._knowledge.endpoints)
            known = self._asking[id(pattern)] = pattern, asks
        return known[1]

    def _table(
        self, variables: tuple[str, ...], rows: tuple[tuple[str | None, ...], ...]
    ) -> Solutions:
        columns = {
            v: encoded(self._lexicon, [row[i] for row in rows]) for i, v in enumerate(variables)
        }
        self._lexicon.forget_codes()
        return Solutions(len(rows), None, columns, self._lexicon)

    # --- conjunctions and filters ---------------------------------------------------------------

    def _conjunction(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        parts = self.parts(pattern)
        pool = []
        for solutions in self._basic(parts, active.source):
            if not solutions.size:
                return none(active.source.lexicon, of_events=active.of_events)
            pool.append(solutions)
        places = self._options if self._evaluation.places else None
        work = ConjunctionEvaluation(
            parts.conditions, lambda e, s: self._test(e, s, active), places
        )
        if active.of_events:
            result = work.joined(None, pool) if pool else None
        else:
            result = work.searched(seeds_of(active, parts.stored), pool)
        if parts.every_operand and (result is None or result.size):
            result = self._operands(parts, work, result, active)
        result = work.finished(result)
        if result is None:
            result = unit(self._lexicon)
        for condition in work.remaining:
            result = self._prepared(result, condition.expr, active)
            result = result.take(self._test(condition.expr, result, active))
        return result

    def _basic(self, parts: Conjunction, source: TripleSource) -> Iterator[Solutions]:
        """The solutions of the triple patterns: together over events, one by one over a graph."""
        if isinstance(source, GraphSource):
            yield from map(source.solutions, parts.triples)
        elif isinstance(source, VerticalPartition) and parts.bgp is not None:
            yield parts.bgp.solutions(source)

    def _operands(
        self,
        parts: Conjunction,
        work: ConjunctionEvaluation,
        result: Solutions | None,
        active: ActiveGraph,
    ) -> Solutions | None:
        """`result` joined with the operands. Searches come late, and endpoints last."""
        every = parts.every_operand
        asking = [operand for operand in every if self.asks(operand)]
        searches = [p for p in every if p not in asking and self._is_searched(p, parts, active)]
        usual = [operand for operand in every if operand not in asking and operand not in searches]
        if usual:
            beside = active if result is None else active.within(result)
            result = work.joined(result, [self._beside(p, result, beside) for p in usual])
        if searches and result is not None:
            result = reduced(result, active)
        while searches and (result is None or result.size):
            pattern = easiest(searches, () if result is None else result.columns)
            searches.remove(pattern)
            beside = active if result is None else active.within(result)
            result = work.joined(result, [self._beside(pattern, result, beside)])
        for operand in asking:
            beside = active if result is None else active.beside(result)
            result = work.joined(result, [self.solutions(operand, beside)])
        return result

    def _is_searched(self, pattern: n.Pattern, parts: Conjunction, active: ActiveGraph) -> bool:
        """Whether the pattern's solutions are searched from the bindings of the other parts."""
        known = self._known(pattern) if active.of_events else None
        return isinstance(known, LimitExceeded) or (known is None and pattern in parts.searches)

    def parts(self, pattern: n.Pattern) -> Conjunction:
        """The pattern as a conjunction."""
        known = self._conjunctions.get(id(pattern))
        if known is None:
            known = self._conjunctions[id(pattern)] = (
                pattern,
                conjunction(pattern, self._evaluation),
            )
        return known[1]

    def _test(self, expr: ast.Expr, solutions: Solutions, active: ActiveGraph) -> Bools:
        if not solutions.size:
            return np.empty(0, np.bool_)
        solutions, expr = self._answered(solutions, expr, active)
        texts, options = solutions.lexicon, self._options
        return filter_rows(expr, TermRows(solutions.columns, texts, solutions.size), options)

    def _answered(
        self, solutions: Solutions, expr: ast.Expr, active: ActiveGraph
    ) -> tuple[Solutions, ast.Expr]:
        """(the solutions with a column for each EXISTS, the expression over these columns)."""
        tests = self._exists_tests(expr)
        if not tests:
            return solutions, expr
        solutions = tests.answered(
            active.spread(solutions),
            lambda pattern: self._beside(pattern, solutions, active.beside(solutions)),
            lambda pattern: self._passing(pattern, active.beside(solutions)),
            lambda e, s: self._test(e, s, active),
        )
        return solutions, tests.expr

    def _passing(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        """The solutions of a pattern that occurs only once, so nothing about it is cached."""
        services = self.services.apart()
        apart = type(self)(self._knowledge, self._options, self._evaluation, services)
        return apart.solutions(pattern, active)

    def _prepared(self, solutions: Solutions, expr: ast.Expr, active: ActiveGraph) -> Solutions:
        """The solutions, per event if the expression has EXISTS."""
        return active.spread(solutions) if self._exists_tests(expr) else solutions

    def _exists_tests(self, expr: ast.Expr) -> ExistsTests:
        known = self._exists.get(id(expr))
        if known is None:
            known = self._exists[id(expr)] = expr, ExistsTests(expr, self._options.schema)
        return known[1]
