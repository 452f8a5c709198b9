"""Brackets with AND as alternatives: `(A AND B)` is `(A: B | B: A)`.

That holds if each operand is a single GPM, no operand looks at another one, and no two of their
events share an instant. Behind `;` the matches of a bracket compete, so such a bracket stays as it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from spaseq.automaton.program.alternatives import is_single
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    Label,
    Program,
    State,
    TakeLabel,
)
from spaseq.lang.sequence import SequenceOperator

MOST_OPERANDS = 3
"""A bracket with more operands has too many orders."""


def in_every_order(program: Program, are_free: Callable[[Sequence[int]], bool]) -> Program:
    """The same sequence, its brackets with AND replaced where possible.

    `are_free` says whether GPMs, given by number, do not look at each other and have no events that
    share an instant.
    """
    return _Ordering(program, are_free).program()


class _Ordering:
    def __init__(self, program: Program, are_free: Callable[[Sequence[int]], bool]) -> None:
        self._program, self._are_free = program, are_free
        self._edges = [*program.edges]
        self._replaced: dict[int, Edge] = {}  # by id; several brackets may share an operand

    def program(self) -> Program:
        automaton = self._automaton(self._program.automaton)
        if len(self._edges) == len(self._program.edges):
            return self._program
        return replace(self._program, automaton=automaton, edges=tuple(self._edges))

    def _automaton(self, automaton: Automaton) -> Automaton:
        states = (
            replace(state, edges=tuple(map(self._edge, state.edges))) for state in automaton.states
        )
        return replace(automaton, states=tuple(states))

    def _edge(self, edge: Edge) -> Edge:
        label = edge.label
        if not isinstance(label, BracketLabel):
            return edge
        if edge.id not in self._replaced:
            self._replaced[edge.id] = self._bracket(edge, label)
        return self._replaced[edge.id]

    def _bracket(self, edge: Edge, label: BracketLabel) -> Edge:
        if label.kind == "|":
            inner: Label = replace(label, operands=tuple(map(self._automaton, label.operands)))
        else:
            takes = None if edge.join is not None and edge.join.kind == ";" else _taken(label)
            if takes is None or not self._is_free(takes):
                return edge
            inner = BracketLabel("|", tuple(self._orders(label.operands[0], takes)))
        found = self._edges[edge.id] = replace(edge, label=inner)
        return found

    def _is_free(self, takes: Sequence[TakeLabel]) -> bool:
        gpms = [take.gpm for take in takes]
        if len(takes) > MOST_OPERANDS or len({*gpms}) < len(gpms):
            return False
        return self._are_free(gpms)

    def _orders(self, operand: Automaton, takes: Sequence[TakeLabel]) -> Iterator[Automaton]:
        """An automaton for each order of some GPMs; it is like that of an operand."""
        # What is bound before the bracket and by the first operand is the key in every order.
        before = takes[0].key
        known = [replace(t, key=tuple(v for v in t.key if v in before)) for t in takes]
        for order in permutations(known):
            states = [State("start", (self._new(order[0], 1, None),), ())]
            for number, take in enumerate(order[1:], 1):
                edge = self._new(take, number + 1, SequenceOperator(":"))
                states.append(State(f"after {order[number - 1].name}", (edge,), ()))
            states.append(State(f"after {order[-1].name}", (), (Acceptance((), ()),)))
            yield replace(operand, states=tuple(states))

    def _new(self, take: TakeLabel, target: int, join: SequenceOperator | None) -> Edge:
        edge = Edge(len(self._edges), take, target, join, (), ())
        self._edges.append(edge)
        return edge


def _taken(label: BracketLabel) -> list[TakeLabel] | None:
    """The GPMs that a bracket with AND takes; None if an operand is no single GPM."""
    if label.kind != "AND":
        return None
    takes = list[TakeLabel]()
    for operand in label.operands:
        edges = operand.states[0].edges
        if len(edges) != 1 or not is_single(operand):
            return None
        inner = edges[0].label
        some = [inner] if isinstance(inner, TakeLabel) else _taken(inner)
        if some is None:
            return None
        takes += some
    return takes
