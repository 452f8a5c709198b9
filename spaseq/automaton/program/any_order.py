"""Brackets with AND as alternatives: `(A AND B)` is `(A: B | B: A)`.

That holds if each operand is a single GPM, and no two of their events share an instant. A FILTER
that looks at another operand is tested when the last of the solutions that it looks at is taken.
Behind `;` the matches of a bracket compete, so such a bracket stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import replace
from itertools import permutations

from spaseq.automaton.program.alternatives import is_single
from spaseq.automaton.program.gpm_columns import GpmColumns
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
from spaseq.expr.uses import is_of_its_event, timestamp_uses, variables_of
from spaseq.lang import ast
from spaseq.lang.sequence import SequenceOperator

MOST_OPERANDS = 3
"""A bracket with more operands has too many orders."""


def in_every_order(
    program: Program, gpms: Sequence[GpmColumns], streams: Sequence[Collection[int]]
) -> Program:
    """The same sequence, its brackets with AND replaced where possible.

    `streams` has the streams of each GPM.
    """
    return _Ordering(program, gpms, streams).program()


class _Ordering:
    def __init__(
        self, program: Program, gpms: Sequence[GpmColumns], streams: Sequence[Collection[int]]
    ) -> None:
        self._program, self._gpms, self._streams = program, gpms, streams
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
        inlined = self._edges[edge.id] = replace(edge, label=inner)
        return inlined

    def _is_free(self, takes: Sequence[TakeLabel]) -> bool:
        gpms = [take.gpm for take in takes]
        if len(takes) > MOST_OPERANDS or len({*gpms}) < len(gpms):
            return False
        if len({stream for gpm in gpms for stream in self._streams[gpm]}) > 1:
            return False
        return all(
            self._may_wait(condition, number, takes)
            for number, gpm in enumerate(gpms)
            for condition in self._gpms[gpm].conditions
        )

    def _may_wait(self, condition: ast.Expr, number: int, takes: Sequence[TakeLabel]) -> bool:
        """Whether a FILTER of an operand is the same when another operand is taken later."""
        if timestamp_uses(condition) & {take.name for take in takes}:
            return False
        used = self._used(condition, number, takes)
        if any(other > number for other in used):
            return False  # what a later operand binds is unbound
        reads = variables_of(condition) & self._program.owner.keys()
        return used == {number} or not (reads or is_of_its_event(condition))

    def _used(self, condition: ast.Expr, number: int, takes: Sequence[TakeLabel]) -> set[int]:
        """The places of the operands whose variables a FILTER of an operand uses, and its own."""
        others = variables_of(condition) - self._gpms[takes[number].gpm].certain
        others_taken = (i for i, t in enumerate(takes) if others & {*self._gpms[t.gpm].variables})
        return {number, *others_taken}

    def _conditions(self, takes: Sequence[TakeLabel], order: Sequence[int]) -> list[TakeLabel]:
        """The operands in an order of their places, each with the FILTERs to test then."""
        tested: list[list[ast.Expr]] = [[] for _ in takes]
        for number, take in enumerate(takes):
            for condition in self._gpms[take.gpm].conditions:
                used = self._used(condition, number, takes)
                tested[max(map(order.index, used))].append(condition)
        return [
            replace(takes[number], conditions=tuple(conditions))
            for number, conditions in zip(order, tested, strict=True)
        ]

    def _orders(self, operand: Automaton, takes: Sequence[TakeLabel]) -> Iterator[Automaton]:
        """An automaton for each order of some GPMs; it is like that of an operand."""
        before = {*takes[0].key}
        for places in permutations(range(len(takes))):
            order = [*self._keyed(self._conditions(takes, places), before)]
            states = [State("start", (self._new(order[0], 1, None),), ())]
            for number, take in enumerate(order[1:], 1):
                edge = self._new(take, number + 1, SequenceOperator(":"))
                states.append(State(f"after {order[number - 1].name}", (edge,), ()))
            states.append(State(f"after {order[-1].name}", (), (Acceptance((), ()),)))
            yield replace(operand, states=tuple(states))

    def _keyed(self, order: Sequence[TakeLabel], before: Set[str]) -> Iterator[TakeLabel]:
        """Operands in order, each with what it shares with earlier ones, or `before`, as its key.

        `before` is what is certainly bound before the bracket and by the first of its operands.
        """
        for number, take in enumerate(order):
            certain = self._gpms[take.gpm].certain
            earlier = [self._gpms[other.gpm].certain for other in order[:number]]
            known = {v for v in take.key if v in before}.union(*(certain & own for own in earlier))
            grouped = {v for v, view in take.views.items() if view.kind == "current"}
            yield replace(take, key=tuple(sorted(known - grouped)))

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
