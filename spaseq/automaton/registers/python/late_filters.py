"""Late FILTERs of `&` and AND: tested as if the operands had come one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.nfa import Edge, TakeLabel
from spaseq.automaton.run.arena import Arena
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.runs import Row, Run
from spaseq.automaton.run.scoping import ListNodes, TakeEnv, TraceNodes, bind, follow
from spaseq.expr.env import Env


@dataclass(slots=True)
class _Followed:
    """A step of a run: its edge, the row that it takes, and the actions before it."""

    edge: Edge
    row: Row
    actions: tuple[Action, ...]


class LateFilters:
    """The late FILTERs of a program."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        # The run has passed its bounds and negated steps.
        self._program = replace(machine.program, bounds={}, untils={}, negation_in_repeat=False)

    def hold(
        self,
        path: Sequence[tuple[Edge, Row | None]],
        filters: Sequence[tuple[int, Callable[[Env], bool]]],
    ) -> bool:
        """Whether FILTERs, with the occurrences of their steps, hold for a run, given its path."""
        trace: TraceNodes = Arena()
        lists: ListNodes = Arena()
        env = TakeEnv(self._machine.names, trace, lists)
        start = self._machine.program.automaton.states[0]
        run = Run(start, None, None, None, None, None, {}, None)
        for step in _in_order([*_steps(path)], 0):
            label = step.edge.label
            assert isinstance(label, TakeLabel)
            groups, _ = follow(self._program, lists, step.actions, run.groups, (), run)
            take, values = self._machine.takes[step.edge.id], step.row[4]
            env.run, env.groups, env.row = run, groups, step.row
            env.take, env.views = take, label.views
            if not all(holds(env) for of, holds in filters if of == label.occurrence):
                return False
            singles = {v: x for c, v in take.singles if (x := values[c]) is not None}
            run = replace(
                run,
                singles={**run.singles, **singles},
                groups=bind(lists, groups, take.groups, values),
                trace=trace.add((label.gpm, step.row, run.trace)),
            )
        return True


def _steps(path: Sequence[tuple[Edge, Row | None]]) -> Iterator[_Followed]:
    before: tuple[Action, ...] = ()
    for edge, row in path:
        before += edge.actions
        if row is not None:
            yield _Followed(edge, row, before)
            before = ()


def _in_order(steps: Sequence[_Followed], depth: int) -> list[_Followed]:
    """The steps within a number of brackets, in the order of their operands.

    What a run does before a bracket stays before it. What it does as it leaves a loop may come too
    early, and is done again where the loop begins again.
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
