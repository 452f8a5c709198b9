"""Alternatives of single GPMs as edges, and of several steps, written into the automaton around
them.

`A; (B | C)` has an edge for B and one for C. After `;` the first solution of any of them ends the
wait for all. The evaluator does that; it knows the edges of one bracket by `AlternativeEdge.step`.

After `:` each match of a bracket pairs with the run before it, and after `,` each one that begins
at the next instant. So `A: (B; C | D): E` is a way over B and C, and another one over D.

After `;` the matches of a whole bracket compete: a *candidate* counts only if no earlier candidate
after the same run is complete by then. So edges mark where a candidate begins (`Edge.opens`, behind
`:`) and continues (`Edge.within`), and states where it is complete (`State.completes`). Evaluators
do the rest. A bracket is not inlined if it contains such a bracket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    Program,
    State,
    TakeLabel,
)
from spaseq.records import record


class NotSingle(Exception):
    """A bracket is more than alternatives of single GPMs. The message says why."""


@record
class AlternativeEdge:
    """An edge that takes one solution, and the edge of the automaton that it belongs to.

    The two differ if `step` is the edge of a bracket. The edge then has the number of the operand's
    edge, and all other fields of the bracket's edge.
    """

    edge: Edge
    take: TakeLabel
    step: Edge


def alternative_edges(edge: Edge) -> Iterator[AlternativeEdge]:
    """The edges that an edge of an automaton stands for.

    Raises:
        NotSingle: the edge takes a bracket that is more than alternatives of single GPMs.
    """
    if isinstance(edge.label, TakeLabel):
        yield AlternativeEdge(edge, edge.label, edge)
        return
    for inner, take in _taken(edge):
        yield AlternativeEdge(replace(edge, id=inner, label=take), take, edge)


def _taken(edge: Edge) -> Iterator[tuple[int, TakeLabel]]:
    """The numbers and the labels of the edges that take the first solution of an edge."""
    label = edge.label
    if isinstance(label, TakeLabel):
        yield edge.id, label
        return
    _check(label)
    for operand in label.operands:
        for inner in operand.states[0].edges:
            yield from _taken(inner)


def _check(label: BracketLabel) -> None:
    if label.kind != "|":
        raise NotSingle(label.obstacle or f"{label.kind} stands in a negated step or a loop")
    if not all(map(is_single, label.operands)):
        raise NotSingle("the matches of an alternative of several steps compete after `;`")


def is_single(operand: Automaton) -> bool:
    """Whether an operand takes one solution, and has no other effect."""
    start, *others = operand.states
    edges = start.edges
    ends = [end for state in others for end in state.acceptances]
    ways: tuple[Edge | Acceptance, ...] = (*edges, *ends)
    if any(state.edges for state in others) or not all(map(_is_simple, edges)):
        return False
    return not any(way.actions or way.negations or way.exits for way in ways)


def _is_simple(edge: Edge) -> bool:
    """Whether an edge takes a solution, or one of alternatives that each take one."""
    label = edge.label
    return isinstance(label, TakeLabel) or (
        label.kind == "|" and all(map(is_single, label.operands))
    )


def inlined(program: Program, competing: bool = True) -> Program:
    """The same sequence, its brackets with alternatives of several steps inlined where possible.

    Without `competing`, brackets behind `;` stay as they are.
    """
    inlining = _Inlining(program, competing)
    edges = (edge for state in program.automaton.states for edge in state.edges)
    return inlining.program() if any(map(inlining.is_inlined, edges)) else program


@record
class _Inside:
    """An operand of a bracket during a match, and the bracket's edge."""

    edge: Edge
    operand: Automaton

    @property
    def competes(self) -> bool:
        """Whether the matches of the bracket compete."""
        return _competes(self.edge)


_InnerState: TypeAlias = tuple[tuple[_Inside, ...], int]
"""The operands around a state, the innermost last, and the number of the state."""


class _Inlining:
    def __init__(self, program: Program, competing: bool) -> None:
        self._program, self._outermost = program, program.automaton
        self._competing = competing
        self._numbers: dict[_InnerState, int] = {((), 0): 0}
        self._todo: list[_InnerState] = [((), 0)]
        self._edges = [*program.edges]

    def is_inlined(self, edge: Edge) -> bool:
        """Whether the ways through the operands of an edge's bracket may replace the edge."""
        if isinstance(edge.label, TakeLabel) or edge.label.kind != "|":
            return False
        operands = edge.label.operands
        if all(map(is_single, operands)) or not all(map(_is_free, operands)):
            return False
        return not _competes(edge) or (self._competing and all(map(_is_alone, operands)))

    def program(self) -> Program:
        states = [self._state(inner) for inner in self._todo]  # grows while it is walked
        automaton = replace(self._outermost, states=tuple(states))
        return replace(self._program, automaton=automaton, edges=tuple(self._edges))

    def _automaton(self, inside: tuple[_Inside, ...]) -> Automaton:
        return inside[-1].operand if inside else self._outermost

    def _state(self, inner: _InnerState) -> State:
        inside, number = inner
        competes = any(bracket.competes for bracket in inside)
        edges, ends, completes = list[Edge](), list[Acceptance](), False
        for way in self._ways(inside, number, ()):
            stays = isinstance(way, Edge) and way.within
            completes |= competes and not stays
            if isinstance(way, Acceptance):
                ends.append(way)
            else:
                edges.append(way)
        state, ways = self._automaton(inside).states[number], tuple(dict.fromkeys(ends))
        return replace(state, edges=tuple(edges), acceptances=ways, completes=completes)

    def _ways(
        self, inside: tuple[_Inside, ...], number: int, actions: tuple[Action, ...]
    ) -> Iterator[Edge | Acceptance]:
        """The edges and the ends of a place, after some actions."""
        state = self._automaton(inside).states[number]
        within = any(bracket.competes for bracket in inside)
        for edge in state.edges:
            begins = edge
            if actions or within != edge.within:
                begins = replace(edge, actions=actions + edge.actions, within=within)
            yield from self._taken(inside, begins, edge)
        for end in state.acceptances:
            after = actions + end.actions
            if inside:
                yield from self._ways(inside[:-1], inside[-1].edge.target, after)
            else:
                yield replace(end, actions=after) if actions else end

    def _taken(self, inside: tuple[_Inside, ...], edge: Edge, original: Edge) -> Iterator[Edge]:
        """The edges that replace an edge whose actions are the first ones."""
        if not self.is_inlined(edge):
            target = self._number((inside, edge.target))
            self._edges.append(replace(edge, id=len(self._edges), target=target))
            yield self._edges[-1]
            return
        assert isinstance(edge.label, BracketLabel)
        join, opens = edge.join, edge.opens
        if join is not None and _competes(edge):
            join, opens = replace(join, kind=":"), original.id
        for operand in edge.label.operands:
            within = (*inside, _Inside(original, operand))
            for first in operand.states[0].edges:
                actions = edge.actions + tuple(replace(a, opens=True) for a in first.actions)
                begins = replace(
                    first,
                    join=join,
                    actions=actions,
                    negations=edge.negations,
                    exits=edge.exits,
                    opens=opens,
                    within=edge.within,
                )
                yield from self._taken(within, begins, first)

    def _number(self, inner: _InnerState) -> int:
        """The number of the state for a place."""
        if inner not in self._numbers:
            self._numbers[inner] = len(self._todo)
            self._todo.append(inner)
        return self._numbers[inner]


def _is_free(operand: Automaton) -> bool:
    """Whether the beginning and the end of an operand do not depend on its context."""
    start, *others = operand.states
    ends = [end for state in others for end in state.acceptances]
    ways: tuple[Edge | Acceptance, ...] = (*start.edges, *ends)
    return not any(way.negations or way.exits for way in ways)


def _competes(edge: Edge) -> bool:
    """Whether the matches of an edge's bracket compete."""
    return edge.join is not None and edge.join.kind == ";"


def _is_alone(operand: Automaton) -> bool:
    """Whether all brackets in an operand are inlined, and none has matches that compete."""
    for edge in (edge for state in operand.states for edge in state.edges):
        if isinstance(edge.label, BracketLabel) and not all(map(is_single, edge.label.operands)):
            if edge.label.kind != "|" or _competes(edge):
                return False
            if not all(_is_free(inner) and _is_alone(inner) for inner in edge.label.operands):
                return False
    return True
