"""Data flow: the variables that are bound when a match reaches a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spaseq.automaton.program.nfa import Automaton, GpmColumns, TakeLabel
from spaseq.records import record

EVENT_TIME = "_:time"
"""The name of the time of a solution's event, as of a variable."""


def last_time(gpm: str) -> str:
    """The name of the time of the last event of a GPM in a run, as of a variable."""
    return f"{EVENT_TIME} {gpm}"


def last_step(operand: int) -> str:
    """The name of the time of the last step of an operand of `&` or AND, as of a variable."""
    return f"{EVENT_TIME} {operand}"


@record
class BoundVariables:
    """Variables by state: bound on every path to it, and bound on some path.

    The time of the last event of a GPM counts as a variable, too.
    """

    certainly: tuple[frozenset[str], ...]
    possibly: tuple[frozenset[str], ...]


def bound_by_state(automaton: Automaton, gpms: Sequence[GpmColumns]) -> BoundVariables:
    """The bound variables of an automaton whose edges take single solutions.

    A fixed point: certain variables shrink from all of them, possible ones grow from none.
    """
    labels = [e.label for s in automaton.states for e in s.edges if isinstance(e.label, TakeLabel)]
    everything = frozenset(v for g in gpms for v in g.variables)
    everything |= {last_time(label.name) for label in labels}
    certainly = [frozenset[str](), *(everything for _ in automaton.states[1:])]
    possibly = [frozenset[str]() for _ in automaton.states]
    changed = {0}
    while changed:
        number = changed.pop()
        for edge in automaton.states[number].edges:
            assert isinstance(edge.label, TakeLabel)
            gpm, target, time = gpms[edge.label.gpm], edge.target, last_time(edge.label.name)
            certain = certainly[target] & (certainly[number] | gpm.certain | {time})
            possible = possibly[target] | possibly[number] | {*gpm.variables, time}
            if (certain, possible) != (certainly[target], possibly[target]):
                certainly[target], possibly[target] = certain, possible
                changed.add(target)
    return BoundVariables(tuple(certainly), tuple(possibly))


def joined_in_repetitions(
    automaton: Automaton, gpms: Sequence[GpmColumns], owner: Mapping[str, int]
) -> frozenset[str]:
    """The group variables that several steps of one repetition may bind.

    `owner` has the repeated step of each. Edges take single solutions.
    """
    bound = [frozenset[str]() for _ in automaton.states]  # by repetition
    joined, changed = frozenset[str](), {*range(len(bound))} if owner else set[int]()
    while changed:
        number = changed.pop()
        for edge in automaton.states[number].edges:
            assert isinstance(edge.label, TakeLabel)
            begun = {action.repeat for action in edge.actions if action.kind != "exit"}
            before = {v for v in bound[number] if owner[v] not in begun}
            binds = owner.keys() & gpms[edge.label.gpm].variables
            joined |= before & binds
            after = bound[edge.target].union(before, binds)
            if after != bound[edge.target]:
                bound[edge.target] = after
                changed.add(edge.target)
    return joined
