"""Which variables are bound when a match reaches a state: on every way there, or on some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaseq.automaton.program.nfa import Automaton, TakeLabel
from spaseq.automaton.run.machine import GpmColumns


@dataclass(frozen=True, slots=True)
class Bound:
    """Variables by state: bound on all ways to it, and on some."""

    certainly: tuple[frozenset[str], ...]
    possibly: tuple[frozenset[str], ...]


def bound_by_state(automaton: Automaton, gpms: Sequence[GpmColumns]) -> Bound:
    """The bound variables of an automaton whose edges take single solutions."""
    everything = frozenset(v for g in gpms for v in g.variables)
    certainly = [frozenset[str](), *(everything for _ in automaton.states[1:])]
    possibly = [frozenset[str]() for _ in automaton.states]
    todo = {0}
    while todo:
        number = todo.pop()
        for edge in automaton.states[number].edges:
            assert isinstance(edge.label, TakeLabel)
            gpm, target = gpms[edge.label.gpm], edge.target
            sure = certainly[target] & (certainly[number] | gpm.certain)
            some = possibly[target] | possibly[number] | frozenset(gpm.variables)
            if (sure, some) != (certainly[target], possibly[target]):
                certainly[target], possibly[target] = sure, some
                todo.add(target)
    return Bound(tuple(certainly), tuple(possibly))
