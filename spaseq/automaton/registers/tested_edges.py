"""A program as the register kernels run it: its edges with their tests.

A *threshold sequence* joins its steps by `;` without a bound on gaps and without negated steps, in
a window of time. Each step has a different GPM, and its only conditions on earlier steps are
thresholds. The threshold-sequence kernel runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from spaseq.automaton.program.nfa import Acceptance, Automaton, Edge, GpmColumns, Program, TakeLabel
from spaseq.automaton.program.outer_steps import OuterNegation
from spaseq.automaton.registers.compiled.edge_tests import (
    AnyTests,
    AskedTest,
    EdgeTest,
    EdgeTests,
    Number,
)
from spaseq.automaton.registers.loop_tests import Stop
from spaseq.records import record

MOST_EDGES = 256
"""The kernel keeps the number of an edge in a byte."""


@record
class TestedEdge:
    """An edge, and the conditions on a solution that is taken along it.

    `kills` are the negated GPMs, and after `;` other alternatives, each with the tests by which its
    solution ends a waiting run. A solution of `stops` does so before any solution of its instant is
    taken. `repeated` are the group variables whose repetition continues with the edge, `optional`
    the single ones that the solution may leave unchanged. `step` is the automaton's edge: `edge`
    itself, or the edge of its bracket. `rivals` is the register, of the run before a bracket behind
    `;`, that decides which candidates are forestalled, if one begins with the edge. `joined` is the
    comparison of ids by which the runs that wait at the edge are found: see `join_of`.
    """

    edge: Edge
    step: Edge
    source: int  # state
    take: TakeLabel
    tests: AnyTests
    kills: tuple[tuple[int, AnyTests], ...]
    stops: tuple[Stop, ...]
    repeated: frozenset[str]
    optional: frozenset[str]
    rivals: Number | None = None
    joined: EdgeTest | None = None

    @property
    def others(self) -> Iterator[AnyTests]:
        """The tests by which solutions end the wait at the edge, or mark the run."""
        yield from (tests for _, tests in self.kills)
        yield from (stop.tests for stop in self.stops)

    @property
    def joined_numbers(self) -> Iterator[Number]:
        """The ids by which solutions find the runs that wait at the edge, and that runs keep."""
        if self.joined is not None:
            right = self.joined.right
            yield right
            yield from filter(None, (joined_by(t, right) for t in (self.tests, *self.others)))

    @property
    def thresholds(self) -> EdgeTests:
        """The tests that index waiting runs: the largest group with one number and one operator."""
        groups: dict[tuple[Number, str], EdgeTests] = {}
        for test in self.tests:
            if isinstance(test, EdgeTest) and test.is_threshold:
                group = test.left, test.operator
                groups[group] = (*groups.get(group, ()), test)
        return max(groups.values(), key=len, default=())


def join_of(edge: TestedEdge, keyed: bool) -> EdgeTest | None:
    """The comparison of ids that a run and all solutions that concern its wait at an edge share.

    They are taken along the edge, or end the wait. Runs that end their waits together have none.
    The ids are of terms, together with the key if runs are `keyed`. Else they may be of values.
    """
    join = edge.edge.join
    if join is None or join.kind == "," or edge.edge.together:
        return None
    for test in sorted(filter(_is_join, edge.tests), key=lambda t: not t.left.by_term):
        if any(joined_by(tests, test.right) is None for tests in edge.others):
            continue
        if test.left.by_term == keyed:
            return replace(test, left=test.left.joined, right=test.right.joined)
        if not keyed:
            return test
    return None


def joined_by(tests: AnyTests, kept: Number) -> Number | None:
    """The number of a solution that equals a number of a run, as tests say; None: none does."""
    for test in filter(_is_join, tests):
        if test.right == kept.alone:
            return test.left.joined if kept.is_joined else test.left
    return None


def _is_join(test: EdgeTest | AskedTest) -> TypeGuard[EdgeTest]:
    """Whether a test says that a solution and a run share a term, or a value of a variable."""
    if isinstance(test, AskedTest) or test.left_in_run or test.right_in != "run":
        return False
    left, right = test.left, test.right
    if test.operator != "=" or left.is_measure or right.is_measure:
        return False
    if left.by_term or right.by_term:
        return left.by_term and right.by_term and left.ids == right.ids
    return all(n.variable and not n.running and n.offset_ms is None for n in (left, right))


@record
class TestedClosing:
    """A way to accept in a state where a match waits for the close of its window.

    A solution of `stops` ends the wait.
    """

    end: Acceptance
    source: int  # state
    stops: tuple[Stop, ...]


@record
class TestedNegation:
    """A negated step in first or last place, and the tests of its solution against a match.

    None: no solution can forbid a match.
    """

    negation: OuterNegation
    tests: EdgeTests | None


@record
class TestedProgram:
    """A program for the register kernels.

    `automaton` has a copy of each state of a counted loop for each level of the count. `key` are
    the variables whose values all solutions of a match share, the partition's first. `outer` are
    the negated steps in first and last place. `judged`: Python checks each match for negated steps,
    greedy loops and UNTIL.
    """

    automaton: Automaton
    key: tuple[str, ...]
    edges: tuple[TestedEdge, ...]
    closings: tuple[TestedClosing, ...]
    outer: tuple[TestedNegation, ...]
    is_threshold_sequence: bool
    judged: bool

    @property
    def reads_whole_runs(self) -> bool:
        """Whether FILTERs depend on whole runs, so that Python evaluates them."""
        tests = (test for edge in self.edges for test in edge.tests)
        return any(isinstance(test, AskedTest) and test.taken is not None for test in tests)


def is_threshold_sequence(
    program: Program, edges: Sequence[TestedEdge], gpms: Sequence[GpmColumns]
) -> bool:
    """Whether the threshold-sequence kernel runs a program, in a window of time."""
    if program.strict or sum(edge.source == 0 for edge in edges) > 1:
        return False
    if len({e.take.gpm for e in edges}) < len(edges):
        return False
    return all(_is_threshold_edge(edge, program, edges, gpms) for edge in edges)


def _is_threshold_edge(
    edge: TestedEdge, program: Program, edges: Sequence[TestedEdge], gpms: Sequence[GpmColumns]
) -> bool:
    """Whether an edge tests only its thresholds, and leads to the end or to one more edge."""
    join, target = edge.edge.join, edge.edge.target
    if edge.edge is not edge.step or edge.edge.together:
        return False
    if edge.kills or edge.stops or len(edge.thresholds) < len(edge.tests):
        return False
    if any(test.right.offset_ms is not None for test in edge.thresholds):
        return False
    if join is not None and (join.kind != ";" or join.gap_ms is not None):
        return False
    onward = [e for e in edges if e.source == target]
    if len(onward) != int(not program.automaton.states[target].acceptances):
        return False
    if join is not None:
        return True
    return bool(onward) and _begins(edge.take, onward[0].thresholds, gpms)


def _begins(first: TakeLabel, thresholds: EdgeTests, gpms: Sequence[GpmColumns]) -> bool:
    """Whether the first step alone gives the threshold of the second."""
    bound = gpms[first.gpm].variables
    return len(thresholds) <= 1 and all(t.right.variable in bound for t in thresholds)
