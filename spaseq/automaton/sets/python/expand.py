"""A sequence's automaton as waits for single solutions, brackets of alternatives opened.

A *wait* is a partial match standing at an edge that takes a solution of a GPM. Without conditions
between events its future depends on nothing but the edge: on a solution of the edge's GPM the match
goes on, to the waits of the state reached; and some instants end the wait, by the operator before
the edge or by a negated step that it passes.

`(X | Y)` is opened: the first steps of its alternatives stand under the operator before the
bracket. Behind `;` that is right for alternatives of one event only, which share one set of
candidates: the first instant at which any of them has a solution ends the wait for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Program, State, TakeLabel
from spaseq.lang.sequence import OpKind, SequenceOperator


@dataclass(frozen=True, slots=True)
class WaitingPlace:
    """One place where a partial match waits."""

    gpm: int
    ends: int  # set of GPMs, as bits: an instant with one of them ends the wait
    strict: bool  # the next instant ends it, whatever it has
    then: tuple[int, ...]  # waits after a solution, by number
    accepts: bool  # the match is complete after a solution


@dataclass(frozen=True, slots=True)
class WaitingPlaces:
    """All waits of a program; `initial` those before any event, which never end."""

    waits: tuple[WaitingPlace, ...]
    initial: tuple[int, ...]


def expand(program: Program) -> WaitingPlaces:
    """The waits of a program that `plan.evaluators` finds fit for it."""
    return _Expansion(program).waits()


@dataclass(frozen=True, slots=True)
class _Operator:
    """What stands before an edge; the first steps of a bracket take it over from the bracket."""

    kind: OpKind | None  # None: nothing, the match has no events yet
    ends: int  # GPMs whose solutions end the wait, as bits


@dataclass(frozen=True, slots=True)
class _Spot:
    """An edge that takes solutions, in brackets: each with the automaton and edge it stands at."""

    automaton: Automaton
    around: tuple[tuple[Automaton, Edge], ...]  # outermost first
    edge: Edge
    before: _Operator


class _Expansion:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._numbers: dict[_Spot, int] = {}
        self._spots: list[_Spot] = []

    def waits(self) -> WaitingPlaces:
        initial = self._state(self._program.automaton, (), 0)
        waits: list[WaitingPlace] = []
        for spot in self._spots:  # grows while it is walked
            assert isinstance(spot.edge.label, TakeLabel)
            then, accepts = self._after(spot.automaton, spot.around, spot.edge)
            before = spot.before
            waits.append(
                WaitingPlace(spot.edge.label.gpm, before.ends, before.kind == ",", then, accepts)
            )
        return WaitingPlaces(tuple(waits), initial)

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
        """The edges of a state that take single solutions; brackets are entered."""
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
        """The waits behind an edge, and whether the whole sequence may end there."""
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
