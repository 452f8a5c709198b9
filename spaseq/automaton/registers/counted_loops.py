"""Counted repetitions in the register kernel: a register counts, and tests of edges read it.

A counted loop has one copy of its body, whatever its bounds. Here each of its states is split by
the *level* of the count: too few repetitions to leave the loop, enough, or the maximum. So a state
says alone whether a match may end in it. An edge that repeats the loop has a copy for each target
state, and tests of the count say which copy a run follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.automaton.program.counters import Action, CountTest, RepeatBounds
from spaseq.automaton.program.nfa import Acceptance, Edge, GreedyExit, Program, State
from spaseq.records import record

_Level: TypeAlias = Literal["few", "enough", "full"]

_Levels: TypeAlias = tuple[tuple[int, _Level], ...]
"""Pairs of an open counted loop (its id) and the level of its count, sorted."""


@record
class _Way:
    """Levels after some actions, and the tests of counts that lead to them."""

    levels: Mapping[int, _Level]
    tests: tuple[CountTest, ...] = ()


def split_by_count(program: Program, most: int) -> Program | None:
    """The program with its counted loops split; copies of an edge keep its number.

    None if it has more than `most` states then: loops within loops multiply them.
    """
    return _Splitting(program).program(most) if program.bounds else program


class _Splitting:
    def __init__(self, program: Program) -> None:
        self._program, self._bounds = program, program.bounds
        self._numbers: dict[tuple[int, _Levels], int] = {(0, ()): 0}
        self._todo: list[tuple[int, _Levels]] = [(0, ())]

    def program(self, most: int) -> Program | None:
        states = []
        for state in self._todo:  # grows while it is walked
            if len(self._todo) > most:
                return None
            states.append(self._state(*state))
        automaton = replace(self._program.automaton, states=tuple(states))
        return replace(self._program, automaton=automaton)

    def _state(self, number: int, levels: _Levels) -> State:
        state = self._program.automaton.states[number]
        edges = tuple(copy for edge in state.edges for copy in self._copies(edge, levels))
        ends = tuple(end for end in state.acceptances if any(self._ways(end.actions, levels)))
        leaves = bool(ends) or not all(edge.within for edge in edges)
        return replace(
            state,
            completes=state.completes and leaves,
            edges=edges,
            acceptances=tuple(replace(end, exits=_left_early(end, levels)) for end in ends),
        )

    def _copies(self, edge: Edge, levels: _Levels) -> Iterator[Edge]:
        for way in self._ways(edge.actions, levels):
            reached_state = edge.target, tuple(sorted(way.levels.items()))
            if reached_state not in self._numbers:
                self._numbers[reached_state] = len(self._todo)
                self._todo.append(reached_state)
            target, exits = self._numbers[reached_state], _left_early(edge, levels)
            yield replace(edge, target=target, exits=exits, counts=way.tests)

    def _ways(self, actions: Iterable[Action], levels: _Levels) -> list[_Way]:
        """The possible levels after the actions of an edge."""
        ways = [_Way(dict(levels))]
        for action in actions:
            bounds = self._bounds.get(action.repeat)
            if bounds is not None:
                ways = [after for way in ways for after in _after(way, action, bounds)]
        return ways


def _after(way: _Way, action: Action, bounds: RepeatBounds) -> Iterator[_Way]:
    levels = dict(way.levels)
    level = levels.pop(action.repeat, None)
    if action.kind == "exit":
        if level != "few":
            yield replace(way, levels=levels)
    elif action.kind == "start":
        yield replace(way, levels={**levels, action.repeat: _level(bounds, 1)})
    elif level != "full":
        for reached, tests in _repeated(action.repeat, level, bounds):
            yield _Way({**levels, action.repeat: reached}, (*way.tests, *tests))


def _repeated(
    repeat: int, level: _Level | None, bounds: RepeatBounds
) -> Iterator[tuple[_Level, tuple[CountTest, ...]]]:
    """The levels after one more repetition, each with the tests of the count before it."""
    if level == "few":
        least, last = 1, bounds.minimum - 1
    elif bounds.maximum is None:
        yield "enough", ()
        return
    else:
        least, last = max(bounds.minimum, 1), bounds.maximum - 1
    if least == last:
        yield _level(bounds, last + 1), ()
        return
    assert level is not None
    yield level, (CountTest(repeat, "<", last),)
    yield _level(bounds, last + 1), (CountTest(repeat, "=", last),)


def _level(bounds: RepeatBounds, count: int) -> _Level:
    if count < bounds.minimum:
        return "few"
    return "enough" if bounds.allows_more(count) else "full"


def _left_early(way: Edge | Acceptance, levels: _Levels) -> tuple[GreedyExit, ...]:
    """The greedy loops that a way leaves and that could have gone on."""
    known = dict(levels)
    return tuple(left for left in way.exits if left.first or known.get(left.repeat) != "full")
