"""Loops in the register kernel: the ends of waits, and aggregates of repetitions.

A run that waits to leave a greedy loop is stopped by a solution that repeats the loop once more. A
run that waits to repeat a loop with UNTIL is stopped by a solution of the GPM of UNTIL. Both count
at the instant at which the run would take its next solution, too.

A match that leaves such a loop early is no match if the loop repeats once more in its window. So it
waits at an edge along which no solution is taken, and is stopped like a run that waits to leave a
greedy loop elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from spaseq.automaton.program.alternatives import (
    AlternativeEdge,
    NotSingle,
    alternative_edges,
)
from spaseq.automaton.program.bound_variables import EVENT_TIME, last_step
from spaseq.automaton.program.counters import CountTest
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    Edge,
    GreedyExit,
    NoKernel,
    Program,
    State,
)
from spaseq.automaton.registers.compiled.edge_tests import AnyTests, EdgeTest, Number, Running
from spaseq.lang import ast
from spaseq.lang.sequence import SequenceOperator
from spaseq.records import record


def accepts_at_once(state: State) -> bool:
    """Whether a match is complete in a state, whatever follows."""
    return any(not end.exits for end in state.acceptances)


def closing_ends(automaton: Automaton) -> Iterator[tuple[int, Acceptance]]:
    """The ways to accept that wait for the close of the window, each with its state.

    A match that is complete at once in the same state does not wait.
    """
    for number, state in enumerate(automaton.states):
        if not accepts_at_once(state):
            yield from ((number, end) for end in state.acceptances)


def check_closings(automaton: Automaton, takes: Sequence[tuple[int, AlternativeEdge]]) -> None:
    """Check that no match both waits for the close of its window and is complete before.

    `takes` are the edges that take one solution, each with its source.

    Raises:
        NoKernel: there may be one, which counts as complete.
    """
    states = automaton.states
    targets: dict[int, dict[int, set[int]]] = {}  # by source and GPM
    for source, taking in takes:
        by_gpm = targets.setdefault(source, {})
        by_gpm.setdefault(taking.take.gpm, set()).add(taking.edge.target)
    seen = {(0, 0)}
    todo = [(0, 0)]
    for one, other in todo:  # grows while it is walked; the states that equal traces may reach
        waits = states[other].acceptances and not accepts_at_once(states[other])
        if waits and accepts_at_once(states[one]):
            raise NoKernel("a match may end both within its greedy loop and after all of it")
        beside = targets.get(other, {})
        for gpm, ends in targets.get(one, {}).items():
            pairs = set(product(ends, beside.get(gpm, ()))) - seen
            seen |= pairs
            todo += pairs


def without_greedy_ends(program: Program) -> Program:
    """The program without the greedy loops that its matches leave in last place."""
    if not any(end.exits for state in program.automaton.states for end in state.acceptances):
        return program
    states = [
        replace(state, acceptances=tuple(replace(end, exits=()) for end in state.acceptances))
        for state in program.automaton.states
    ]
    return replace(program, automaton=replace(program.automaton, states=tuple(states)))


_RUNNING: dict[str, Running | None] = {
    "COUNT": "COUNT",
    "SUM": "SUM",
    "MIN": "MIN",
    "MAX": "MAX",
    "FIRST": "FIRST",
    "SAMPLE": "FIRST",
    "LAST": None,
}


@record
class Stop:
    """A GPM whose solution ends the wait of a run at an edge, if it passes the tests.

    With `marks` it only marks that register of the run.
    """

    gpm: int
    tests: AnyTests
    marks: Number | None = None


def check_loops(program: Program) -> None:
    """Check that single solutions decide whether a loop repeats, or must not.

    Raises:
        NoKernel: they do not.
    """
    states = program.automaton.states
    for left in program.further:
        one_more(program, left)
    for repeat in program.untils:
        if not all(_is_at_end(state, repeat) for state in _begun(states, repeat)):
            raise NoKernel("UNTIL stops a loop over more than a single GPM")


def _begun(states: tuple[State, ...], repeat: int) -> Iterator[State]:
    """The states in which the first solution of a repetition has been taken."""
    for state in states:
        for edge in state.edges:
            if any(a.repeat == repeat and a.kind != "exit" for a in edge.actions):
                yield states[edge.target]


def _is_at_end(state: State, repeat: int) -> bool:
    """Whether all ways out of a state begin the next repetition or leave the loop."""
    ways = [edge.actions for edge in state.edges]
    ways += [end.actions for end in state.acceptances]
    return all(any(action.repeat == repeat for action in actions) for actions in ways)


def one_more(program: Program, left: GreedyExit) -> tuple[AlternativeEdge, ...]:
    """The edges by which a run repeats a greedy loop once more instead of leaving it.

    Raises:
        NoKernel: a repetition takes more than a single solution.
    """
    automaton = program.further[left]
    edge, *others = automaton.states[0].edges
    if others or automaton.states[edge.target].edges or edge.negations:
        raise NoKernel("a greedy loop repeats more than a single GPM")
    try:
        actions = *program.once_more(left), *edge.actions
        return tuple(alternative_edges(replace(edge, actions=actions)))
    except NotSingle as reason:
        raise NoKernel(str(reason)) from reason


def within_reach(join: SequenceOperator | None) -> Iterator[EdgeTest]:
    """The tests of an operator's bound on the time of a solution."""
    if join is not None and join.kind == ",":
        instant = Number("", measure="instant")
        yield EdgeTest(instant, "=", replace(instant, plus=1))
    if join is not None and join.gap_ms is not None:
        time = Number("", measure="time")
        yield EdgeTest(time, "<=", replace(time, plus=join.gap_ms))


def since_last_step(edge: Edge) -> Iterator[EdgeTest]:
    """The test of the gap after the last step of an operand of AND."""
    if edge.gap_ms is not None and edge.after is not None:
        last = Number(last_step(edge.after), offset_ms=edge.gap_ms)
        yield EdgeTest(Number(EVENT_TIME, offset_ms=0), "<=", last)


def is_unmarked(mark: Number) -> EdgeTest:
    """The test of whether a run has no mark: only NaN differs from itself."""
    return EdgeTest(mark, "!=", mark, left_in_run=True)


def of_count(test: CountTest) -> EdgeTest:
    """The test of the number of repetitions of a counted loop."""
    count, number = Number(str(test.repeat), measure="count"), Number("", measure="constant")
    return EdgeTest(count, test.operator, replace(number, plus=test.number), True, "solution")


def running_aggregate(aggregate: ast.Aggregate) -> tuple[str, Running | None]:
    """The variable and the function of an aggregate; None for LAST, the value of the step itself.

    Raises:
        NoKernel: no number stands for it.
    """
    operand, function = aggregate.operand, aggregate.function
    if not isinstance(operand, ast.Var):
        raise NoKernel(f"{function} in a loop is of more than a variable")
    if function not in _RUNNING or (aggregate.distinct and function in ("COUNT", "SUM")):
        distinct = "DISTINCT " if aggregate.distinct else ""
        raise NoKernel(f"no register keeps {function}({distinct}?{operand.name}) of a loop so far")
    return operand.name, _RUNNING[function]
