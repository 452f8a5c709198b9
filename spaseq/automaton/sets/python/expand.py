"""Expands an automaton to waits for single solutions, with brackets of alternatives opened.

A *wait* is an edge at which a partial match waits for a solution of a GPM. Without conditions
between events the future of the match depends on the wait alone. A solution of the GPM leads to the
waits of the next state. Some instants end the wait: because of the operator before the edge, or
because of a negated step that the edge passes.

Opening `(X | Y)` puts the operator before the bracket in front of each alternative's first step.
After `;` that is right only for alternatives of one event. They share their candidates, so the
first instant with a solution of any of them ends the wait for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Program, State, TakeLabel
from spaseq.lang.ast.sequence_nodes import OpKind
from spaseq.lang.sequence import SequenceOperator


@dataclass(frozen=True, slots=True)
class Wait:
    """An edge at which partial matches wait."""

    gpm: int
    ends: int  # GPMs, as bits: an instant with one of them ends the wait
    strict: bool  # the next instant ends the wait, whatever its events
    then: tuple[int, ...]  # waits after a solution, by number
    accepts: bool  # the match is complete after a solution


@dataclass(frozen=True, slots=True)
class Waits:
    """All waits of a program; the `initial` ones, before any event, never end."""

    waits: tuple[Wait, ...]
    initial: tuple[int, ...]


def expand(program: Program) -> Waits:
    """The waits of a program; `plan.evaluators` checks that it has some."""
    return _Expansion(program).waits()


@dataclass(frozen=True, slots=True)
class _Operator:
    """The operator before an edge; the first steps of a bracket inherit it from the bracket."""

    kind: OpKind | None  # None: the match has no events yet
    ends: int  # GPMs whose solutions end the wait, as bits


@dataclass(frozen=True, slots=True)
class _Spot:
    """An edge that takes solutions, and the brackets around it as (automaton, edge)."""

    automaton: Automaton
    around: tuple[tuple[Automaton, Edge], ...]  # outermost first
    edge: Edge
    before: _Operator


class _Expansion:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._numbers: dict[_Spot, int] = {}
        self._spots: list[_Spot] = []

    def waits(self) -> Waits:
        initial = self._state(self._program.automaton, (), 0)
        waits: list[Wait] = []
        for spot in self._spots:  # grows during the loop
            assert isinstance(spot.edge.label, TakeLabel)
            then, accepts = self._after(spot.automaton, spot.around, spot.edge)
            before = spot.before
            waits.append(Wait(spot.edge.label.gpm, before.ends, before.kind == ",", then, accepts))
        return Waits(tuple(waits), initial)

    def _state(
        self, automaton: Automaton, around: tuple[tuple[Automaton, Edge], ...], state: int
    ) -> tuple[int, ...]:
        """The numbers of the waits at a state."""
        numbers = set()
        for spot in self._opened(automaton, around, automaton.states[state], _Operator(None, 0)):
            if spot not in self._numbers:
                self._numbers[spot] = len(self._spots)
                self._spots.append(spot)
            numbers.add(self._numbers[spot])
        return tuple(sorted(numbers))

    def _opened(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        state: State,
        before: _Operator,
    ) -> Iterator[_Spot]:
        """The edges of a state that take single solutions, also inside brackets."""
        for edge in state.edges:
            here = before if edge.join is None else self._operator(edge, edge.join)
            if isinstance(edge.label, TakeLabel):
                yield _Spot(automaton, around, edge, here)
                continue
            for operand in edge.label.operands:
                inside = (*around, (automaton, edge))
                yield from self._opened(operand, inside, operand.states[0], here)

    def _operator(self, edge: Edge, join: SequenceOperator) -> _Operator:
        ends = {self._negated(number) for number in edge.negations}
        if join.kind == ";":
            ends.update(_first_gpms(edge))
        return _Operator(join.kind, sum(1 << gpm for gpm in ends))

    def _after(
        self, automaton: Automaton, around: tuple[tuple[Automaton, Edge], ...], edge: Edge
    ) -> tuple[tuple[int, ...], bool]:
        """The waits after an edge, and whether the whole sequence may end there."""
        then = self._state(automaton, around, edge.target)
        if not automaton.states[edge.target].acceptances:
            return then, False
        if not around:
            return then, True
        outer, accepts = self._after(around[-1][0], around[:-1], around[-1][1])
        return tuple(sorted({*then, *outer})), accepts

    def _negated(self, number: int) -> int:
        """The GPM of a negated step of one event."""
        (edge,) = self._program.negated[number].automaton.states[0].edges
        assert isinstance(edge.label, TakeLabel)
        return edge.label.gpm


def _first_gpms(edge: Edge) -> Iterator[int]:
    match edge.label:
        case TakeLabel(gpm):
            yield gpm
        case BracketLabel(_, operands):
            for operand in operands:
                for inner in operand.states[0].edges:
                    yield from _first_gpms(inner)
