"""Which sequences the register kernels can run, decided from the program alone.

The register kernel can run automata whose edges each take one solution; alternatives of single GPMs
are such edges. The conditions of a step may be equality of terms with earlier steps, comparisons of
numbers, and aggregates of numbers over the repetitions so far. All other FILTERs of steps become
asked tests: Python evaluates them, once for equal terms of the run, or once for each run. A negated
step must be a single GPM. In first or last place, and where it uses variables bound later, it is
checked on whole matches (`batch.outer_checks`). The GPM of UNTIL does not use variables bound later
either, and a loop that is greedy or has an UNTIL must repeat one solution at a time. Otherwise the
kernel runs the sequence without these steps and loops, which only remove matches, and Python
*judges* each match (`compiled.judged_matches`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from spaseq.automaton.program.alternatives import (
    AlternativeEdge,
    NotSingle,
    alternative_edges,
)
from spaseq.automaton.program.bound_variables import bound_by_state, joined_in_repetitions
from spaseq.automaton.program.nfa import (
    Automaton,
    Edge,
    GpmColumns,
    GreedyExit,
    NoKernel,
    Program,
    TakeLabel,
)
from spaseq.automaton.program.outer_steps import (
    NotChecked,
    OuterNegation,
    depths_of,
    outer_negations,
    single_gpm,
    unchecked,
    without_outer_negations,
)
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.registers.compiled.edge_tests import (
    AnyTests,
    AskedTest,
    EdgeTest,
    Number,
    asked_test,
    earliest_of,
    late_test,
)
from spaseq.automaton.registers.counted_loops import split_by_count
from spaseq.automaton.registers.filter_tests import equality_test, tests_of
from spaseq.automaton.registers.late_tests import LateTests
from spaseq.automaton.registers.loop_tests import (
    Stop,
    check_closings,
    check_loops,
    closing_ends,
    is_unmarked,
    of_count,
    one_more,
    since_last_step,
    within_reach,
    without_greedy_ends,
)
from spaseq.automaton.registers.negated_steps import NegatedSteps, same_term
from spaseq.automaton.registers.read_values import ReadValues
from spaseq.automaton.registers.tested_edges import (
    MOST_EDGES,
    TestedClosing,
    TestedEdge,
    TestedNegation,
    TestedProgram,
    is_threshold_sequence,
)
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import variables_of, walk

_MOST_STATES = 1024  # of counted loops within each other


def _check_edges(number: int) -> None:
    if number > MOST_EDGES:
        raise NoKernel(f"the automaton has more than {MOST_EDGES} edges")


def tested_program(
    program: Program, gpms: Sequence[GpmColumns], partition: tuple[str, ...], window: Window
) -> TestedProgram:
    """The edges of a program with their tests.

    Raises:
        NoKernel: the register kernel cannot run the sequence.
    """
    known = [*gpms], partition, window
    return program.made("tested", known, lambda: _tested(program, gpms, partition, window))


def _tested(
    program: Program, gpms: Sequence[GpmColumns], partition: tuple[str, ...], window: Window
) -> TestedProgram:
    edges = (edge for state in program.automaton.states for edge in state.edges)
    if not any(edge.checked_within(program.untils) for edge in edges):
        try:
            return _Testing(program, gpms, partition, window).program()
        except NoKernel:
            if not program.checked:
                raise
    return _Testing(program, gpms, partition, window, judged=True).program()


class _Testing:
    def __init__(
        self,
        program: Program,
        gpms: Sequence[GpmColumns],
        partition: tuple[str, ...],
        window: Window,
        judged: bool = False,
    ) -> None:
        split = split_by_count(program, _MOST_STATES)
        if split is None:
            raise NoKernel(f"counted loops make more than {_MOST_STATES} states")
        self._checked, self._judged = program.checked, judged
        self._program = program = unchecked(split) if judged else split
        self._gpms, self._partition = gpms, partition
        self._outer = _outer_negations(program)
        self._counted = isinstance(window, Counted)
        self._takes = [*self._taking()]
        self._check_candidates()
        taken = {taken_edge.take.gpm for _, taken_edge in self._takes}
        automaton = self._automaton()
        self._bound = bound_by_state(automaton, gpms)
        self._key = self._key_of(self._takes)
        self._check_groups(automaton)
        binders = [self._gpms[taken_edge.take.gpm] for _, taken_edge in self._takes]
        self._optional = {v for gpm in binders for v in gpm.variables if v not in gpm.certain}
        self._checks = NegatedSteps(program, gpms, self._bound, taken, self._key)
        self._values = ReadValues(program, gpms, self._bound, self._takes)
        self._late = LateTests(program, gpms, self._bound, self._takes, self._values)
        self._inner = self._looking_ahead()

    def program(self) -> TestedProgram:
        """The edges that can take a solution, with their tests."""
        tested = list[TestedEdge]()
        for edge in map(self._edge, self._takes):
            if edge is not None:
                tested.append(edge)
                _check_edges(len(tested))  # each may depend on all others
        edges = tuple(self._sharing_waits(tested))
        checked = (*self._outer, *self._inner.values())
        outer = tuple(TestedNegation(n, self._checks.forbidding(n.take)) for n in checked)
        closings = tuple(self._closings())
        _check_edges(len(edges) + len(closings))
        return TestedProgram(
            self._program.automaton,
            self._key,
            edges,
            closings,
            outer,
            not (closings or self._judged or self._counted)
            and is_threshold_sequence(self._program, edges, self._gpms),
            self._judged,
        )

    # --- the whole program -----------------------------------------------------------------------

    def _taking(self) -> Iterator[tuple[int, AlternativeEdge]]:
        """The edges that take one solution, each with its source."""
        check_loops(self._program)
        inner = without_outer_negations(self._program).automaton
        for number, state in enumerate(inner.states):
            for edge in state.edges:
                try:
                    yield from ((number, taking) for taking in alternative_edges(edge))
                except NotSingle as reason:
                    raise NoKernel(str(reason)) from reason

    def _automaton(self) -> Automaton:
        """The automaton with the edges that take one solution."""
        edges: dict[int, list[Edge]] = {}
        for source, taking in self._takes:
            edges.setdefault(source, []).append(taking.edge)
        states = [
            replace(state, edges=tuple(edges.get(number, ())))
            for number, state in enumerate(self._program.automaton.states)
        ]
        return replace(self._program.automaton, states=tuple(states))

    def _key_of(self, takes: Sequence[tuple[int, AlternativeEdge]]) -> tuple[str, ...]:
        """The variables whose values all solutions share, including solutions of negated steps."""
        used = self._checked | {taking.take.gpm for _, taking in takes}
        if self._program.strict or self._counted:
            return self._partition  # events of other keys count as well
        common = frozenset.intersection(*(self._gpms[g].certain for g in used))
        more = common - set(self._program.owner) - set(self._partition)
        return (*self._partition, *sorted(more))

    def _check_groups(self, automaton: Automaton) -> None:
        """Refuse a group variable that two steps of one repetition bind."""
        for variable in sorted(joined_in_repetitions(automaton, self._gpms, self._program.owner)):
            raise NoKernel(f"the steps of a repetition join on ?{variable}")

    def _negated(self, number: int) -> TakeLabel:
        """The one GPM of a negated step."""
        take = single_gpm(self._program, number)
        if take is None:
            raise NoKernel("a negated step is more than a single GPM")
        return take

    def _check_candidates(self) -> None:
        """Check that no candidate of a bracket behind `;` depends on shared events."""
        for _, taking in self._takes:
            if taking.edge.apart and (taking.edge.within or taking.edge.opens is not None):
                raise NoKernel("the operands of AND share one of several streams behind `;`")

    @cached_property
    def _opened(self) -> dict[int, list[int]]:
        """By state the brackets behind `;` that follow, by number."""
        opened: dict[int, list[int]] = {}
        for source, taking in self._takes:
            number, known = taking.edge.opens, opened.setdefault(source, [])
            if number is not None and number not in known:
                known.append(number)
        return opened

    # --- edges ------------------------------------------------------------------------------------

    def _edge(self, place: tuple[int, AlternativeEdge]) -> TestedEdge | None:
        """An edge with its tests; None if no solution can be taken along it."""
        source, taking = place
        edge, take = taking.edge, taking.take
        tests = self._tests(source, edge, take, taking.step)
        if tests is None:
            return None
        moved, kills = self._moved(source, edge, taking), list[tuple[int, AnyTests]]()
        if moved is None:
            return None
        if moved and edge.join is not None and edge.join.kind == ";":
            kills.append((take.gpm, tests))
        for left in edge.exits:
            if left.only_before:
                kills += [(stop.gpm, stop.tests) for stop in self._goes_on(source, left)]
        for number in edge.negations:
            if number in self._inner:
                continue
            try:
                negated = self._negated(number)
                kill = self._checks.ending(source, negated)
            except NoKernel:
                if not self._judged:
                    raise
                continue
            if kill is not None:
                kills.append((negated.gpm, kill))
        again = {action.repeat for action in edge.actions if action.kind == "again"}
        repeated = frozenset(v for v, owner in self._program.owner.items() if owner in again)
        tests, gpm = (*tests, *moved), self._gpms[take.gpm]
        optional = {*gpm.variables} - gpm.certain - self._program.owner.keys()
        stops, varying = tuple(self._stops(source, edge)), (repeated, frozenset(optional))
        opens, rivals = edge.opens, None
        if opens is not None:
            rivals = earliest_of(self._opened[source].index(opens))
        wait = tuple(kills), stops, *varying, rivals
        return TestedEdge(edge, taking.step, source, take, tests, *wait)

    def _moved(self, source: int, edge: Edge, taking: AlternativeEdge) -> AnyTests | None:
        """The tests of FILTERs of other steps of `&` and AND; None if no solution can pass them."""
        take, asked, tests = taking.take, list[ast.Expr](), list[EdgeTest | AskedTest]()
        for late in take.late:
            try:
                decided = self._late.of(late, source, taking)
            except NoKernel:
                asked.append(late.condition)
                continue
            if decided is None:
                return None
            tests += decided
        if asked:
            tests.append(late_test(asked, self._gpms[take.gpm], (taking.step.id, edge.id)))
        moved = self._filters(source, edge, take, take.moved, taking.step)
        return None if moved is None else (*moved, *tests)

    def _sharing_waits(self, edges: Sequence[TestedEdge]) -> Iterator[TestedEdge]:
        """The edges; after `;`, a solution of one alternative ends the wait for the others."""
        of_step: dict[int, list[TestedEdge]] = {}
        for edge in edges:
            of_step.setdefault(id(edge.step), []).append(edge)
        for edge in edges:
            if edge.edge.join is None or edge.edge.join.kind != ";":
                yield edge
                continue
            others = [e for e in of_step[id(edge.step)] if e is not edge]
            ends = tuple((other.take.gpm, other.tests) for other in others)
            yield replace(edge, kills=edge.kills + ends) if ends else edge

    def _tests(
        self, source: int, edge: Edge, take: TakeLabel, step: Edge | None = None
    ) -> AnyTests | None:
        """The tests of a solution that an edge takes; None if none can pass them.

        `step` is the automaton's edge. Without it no test may depend on the whole run.
        """
        counts, gaps = map(of_count, edge.counts), since_last_step(edge)
        tests = (*counts, *self._joins(source, take), *gaps)
        conditions = take.conditions
        if conditions is None:
            conditions = self._gpms[take.gpm].conditions
        joins = self._joins_if_bound(source, take)
        filters = self._filters(source, edge, take, conditions, step, joins)
        return None if filters is None else (*tests, *filters)

    def _filters(
        self,
        source: int,
        edge: Edge,
        take: TakeLabel,
        conditions: Sequence[ast.Expr],
        step: Edge | None,
        joins: Iterable[ast.Expr] = (),
    ) -> AnyTests | None:
        """The tests of FILTERs, and of joins as FILTERs; `step` as for `_tests`."""
        tests, asked, of_whole = list[EdgeTest | AskedTest](), [*joins], list[ast.Expr]()
        for condition in conditions:
            try:
                remaining = tests_of(condition, lambda v: self._values.place(v, source, edge, take))
            except NoKernel:
                if self._can_ask(condition, source, edge, take):
                    asked.append(condition)
                elif step is not None and not is_volatile(condition):
                    of_whole.append(condition)
                else:
                    raise
                continue
            if remaining is None:
                return None
            tests += remaining
        for condition in sorted(asked, key=_selectivity):  # each alone: fewer terms decide it
            tests += equality_test(condition, lambda v: self._values.place(v, source, edge, take))
            known = self._bound.possibly[source] - self._begun_afresh([condition], edge, take)
            tests.append(asked_test([condition], self._gpms[take.gpm], known))
        if of_whole and step is not None:
            test = asked_test(of_whole, self._gpms[take.gpm], frozenset())
            tests.append(replace(test, taken=(step.id, edge.id)))
        return tuple(tests)

    # --- asked tests ------------------------------------------------------------------------------

    def _begun_afresh(
        self, conditions: Sequence[ast.Expr], edge: Edge, take: TakeLabel
    ) -> set[str]:
        """The variables whose PREV is unbound, as the edge starts their step."""
        nodes = (node for condition in conditions for node in walk(condition))
        names = {node.var.name for node in nodes if isinstance(node, ast.Prev)}
        groups = names & self._program.owner.keys()
        return {name for name in groups if not self._values.repeats("PREV", name, edge, take)}

    def _can_ask(self, condition: ast.Expr, source: int, edge: Edge, take: TakeLabel) -> bool:
        """Whether terms and times of the run's registers decide a FILTER."""
        gpm, owner = self._gpms[take.gpm], self._program.owner
        if is_volatile(condition):
            return False
        for node in walk(condition):
            match node:
                case ast.Aggregate():
                    return False
                case ast.Prev(ast.Var(name)):
                    try:
                        self._values.repeats("PREV", name, edge, take)
                    except NoKernel:
                        return False
                case ast.Var(name) if name in owner and name not in gpm.certain:
                    if name in gpm.variables or take.views[name].kind != "whole":
                        return False
                    if name in self._bound.possibly[source] and name in self._optional:
                        return False
        return True

    # --- negated steps between two steps that use variables bound later ---------------------------

    def _looking_ahead(self) -> dict[int, OuterNegation]:
        """By number: the negated steps that only a whole match decides.

        Their position must be the same in all matches.
        """
        ahead: dict[int, OuterNegation] = {}
        if self._judged:
            return ahead
        depths = depths_of(self._automaton())
        for source, taking in self._takes:
            for number in taking.edge.negations:
                try:
                    self._checks.ending(source, self._negated(number))
                except NoKernel:
                    if self._counted or depths is None or not self._stands_at(number, depths):
                        raise
                    take = self._negated(number)
                    ahead[number] = OuterNegation(take, False, number, depths[source])
        return ahead

    def _stands_at(self, number: int, depths: Sequence[int]) -> bool:
        """Whether every match passes a negated step after the same number of solutions.

        It must not depend on repetitions, whose values depend on its position.
        """
        gpm = self._gpms[self._negated(number).gpm]
        reads = {*gpm.variables}.union(*map(variables_of, gpm.conditions))
        if reads & self._program.owner.keys():
            return False
        passing = {depths[s] for s, t in self._takes if number in t.edge.negations}
        return len(passing) == 1 and all(
            number in taking.edge.negations
            for source, taking in self._takes
            if depths[source] in passing
        )

    # --- loops ------------------------------------------------------------------------------------

    def _stops(self, source: int, edge: Edge) -> Iterator[Stop]:
        """The solutions that end the wait at an edge: of UNTIL, and one more repetition of a greedy
        loop.
        """
        for action in edge.actions:
            until = self._program.untils.get(action.repeat)
            if until is not None and action.kind != "exit":
                if action.opens and edge.join is not None:
                    raise NoKernel("an alternative begins with a loop that has an UNTIL")
                negated = self._negated(until)
                tests = self._checks.ending(source, negated)
                if tests is not None:
                    yield Stop(negated.gpm, tests)
        for left in edge.exits:
            if not left.only_before:
                yield from self._goes_on(source, left)

    def _closings(self) -> Iterator[TestedClosing]:
        """The ways to accept that wait for the close of the window."""
        ends = [*closing_ends(self._program.automaton)]
        if ends:
            check_closings(self._program.automaton, self._takes)
            if any(not negation.is_last for negation in (*self._outer, *self._inner.values())):
                raise NoKernel("a negated step stands first, and a greedy loop last")
        for source, end in ends:
            stops = [stop for left in end.exits for stop in self._goes_on(source, left)]
            yield TestedClosing(end, source, tuple(stops))

    def _goes_on(self, source: int, left: GreedyExit) -> Iterator[Stop]:
        """One more repetition of a greedy loop, unless UNTIL forbids it."""
        until, allowed = self._program.untils.get(left.repeat), list[EdgeTest]()
        forbidding = None if until is None else self._checks.ending(source, self._negated(until))
        if until is not None and forbidding is not None:
            mark = Number(str(left.repeat), measure="mark")
            yield Stop(self._negated(until).gpm, forbidding, mark)
            allowed.append(is_unmarked(mark))
        for further in one_more(self._program, left):
            tests = self._tests(source, further.edge, further.take)
            if tests is not None:
                reached = within_reach(further.edge.join)
                yield Stop(further.take.gpm, (*reached, *tests, *allowed))

    def _joins(self, source: int, take: TakeLabel) -> Iterator[EdgeTest]:
        """The tests of terms that a solution must share with the run."""
        shared = self._shared(source, take) & self._gpms[take.gpm].certain
        yield from map(same_term, sorted(shared & self._bound.certainly[source]))

    def _shared(self, source: int, take: TakeLabel) -> frozenset[str]:
        """The single variables that a solution and the run may both bind, without the key."""
        owned = self._program.owner.keys()
        singles = {*self._gpms[take.gpm].variables}.difference(self._key, owned)
        return self._bound.possibly[source] & singles

    def _joins_if_bound(self, source: int, take: TakeLabel) -> Iterator[ast.Expr]:
        """The joins with terms that one side may lack, as FILTERs: PREV is the run's term.

        The variable is the run's term, too, where the solution leaves it unbound.
        """
        sure = self._bound.certainly[source] & self._gpms[take.gpm].certain
        for name in sorted(self._shared(source, take) - sure):
            variable, before = ast.Var(name), ast.Prev(ast.Var(name))
            unbound = ast.Not(ast.Call("BOUND", (before,)))
            yield ast.Or((unbound, ast.Call("SAMETERM", (variable, before))))


def _selectivity(condition: ast.Expr) -> int:
    """The rank of a FILTER: 0 if few pairs of terms pass it, 2 if nearly all do, else 1."""
    while isinstance(condition, ast.Not):
        condition = condition.operand
    return {"=": 0, "!=": 2}.get(condition.op, 1) if isinstance(condition, ast.Compare) else 1


def _outer_negations(program: Program) -> tuple[OuterNegation, ...]:
    try:
        return outer_negations(without_greedy_ends(program))
    except NotChecked as reason:
        raise NoKernel(str(reason)) from reason
