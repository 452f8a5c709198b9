"""Late FILTERs of `&` and AND: tested as if the operands had come one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.nfa import Edge, TakeLabel
from spaseq.automaton.run.arena import Arena
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.runs import Run, TakenPath
from spaseq.automaton.run.scoping import ListNodes, TakeEnv, TraceNodes, bind, follow
from spaseq.expr.env import Env


@dataclass(slots=True)
class _Followed:
    """A step of a run: its edge, its place in the path, and the actions before it."""

    edge: Edge
    place: int
    actions: tuple[Action, ...]


class LateFilters:
    """The late FILTERs of a program."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        # The run has passed its bounds and negated steps.
        self._program = replace(machine.program, bounds={}, untils={}, negation_in_repeat=False)
        self._ordered = lru_cache(1024)(self._steps_in_order)

    def hold(
        self,
        path: TakenPath,
        filters: Sequence[tuple[int, Callable[[Env], bool]]],
    ) -> bool:
        """Whether FILTERs, with the occurrences of their steps, hold for a run, given its path."""
        trace: TraceNodes = Arena()
        lists: ListNodes = Arena()
        env = TakeEnv(self._machine.names, trace, lists)
        start = self._machine.program.automaton.states[0]
        singles = dict[str, str]()
        env.run = run = Run(start, None, None, None, None, None, singles, None)
        for step in self._ordered(tuple([edge.id for edge, _ in path])):
            label, row = step.edge.label, path[step.place][1]
            assert isinstance(label, TakeLabel) and row is not None
            if step.actions:
                run.groups, _ = follow(self._program, lists, step.actions, run.groups, (), run)
            take, values = self._machine.takes[step.edge.id], row[4]
            env.groups, env.row, env.take, env.views = run.groups, row, take, label.views
            for of, holds in filters:
                if of == label.occurrence and not holds(env):
                    return False
            singles.update((v, x) for c, v in take.singles if (x := values[c]) is not None)
            run.groups = bind(lists, run.groups, take.groups, values)
            run.trace = trace.add((label.gpm, row, run.trace))
        return True

    def _steps_in_order(self, path: tuple[int, ...]) -> list[_Followed]:
        """The steps of a run in the order of the operands, given the numbers of its edges."""
        return _in_order([*_steps([self._program.edges[number] for number in path])], 0)


def _steps(path: Sequence[Edge]) -> Iterator[_Followed]:
    before: tuple[Action, ...] = ()
    for place, edge in enumerate(path):
        before += edge.actions
        if isinstance(edge.label, TakeLabel):
            yield _Followed(edge, place, before)
            before = ()


def _in_order(steps: Sequence[_Followed], depth: int) -> list[_Followed]:
    """The steps within a number of brackets, in the order of their operands.

    Actions before a bracket stay before it. Actions at the end of a loop may come too early, and
    are repeated where the loop begins again.
    """
    ordered, begin = list[_Followed](), 0
    while begin < len(steps):
        first, end = steps[begin], begin + 1
        if len(first.edge.operands) <= depth:
            ordered.append(first)
            begin = end
            continue
        bracket = first.edge.operands[depth] // 2
        while end < len(steps) and _goes_on(steps[end].edge, depth, bracket):
            end += 1
        before, first.actions = first.actions, ()
        inner = list[_Followed]()
        for operand in (0, 1):
            own = [s for s in steps[begin:end] if s.edge.operands[depth] % 2 == operand]
            inner += _in_order(own, depth + 1)
        inner[0].actions = before + inner[0].actions
        ordered += inner
        begin = end
    return ordered


def _goes_on(edge: Edge, depth: int, bracket: int) -> bool:
    """Whether an edge is a step of a bracket that has begun."""
    operands = edge.operands
    return len(operands) > depth and operands[depth] // 2 == bracket and bracket not in edge.begins
