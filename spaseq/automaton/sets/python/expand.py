"""Expands an automaton to waits for single solutions, with brackets of alternatives opened.

A *wait* is an edge at which a partial match waits for a solution of a GPM. Without conditions
between events the future of the match depends on the wait alone. A solution of the GPM leads to the
waits of the next state. Some instants end the wait: because of the operator before the edge, or
because of a negated step that the edge passes.

Opening `(X | Y)` puts the operator before the bracket in front of each alternative's first step.
After `;` that is right only for alternatives of one event. They share their candidates, so the
first instant with a solution of any of them ends the wait for all.

Where repetitions are counted, an edge with the counts of the repetitions around it is a wait. Such
waits are made when a partial match first gets there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from spaseq.automaton.program.counters import Counts, RepeatBounds, counts_after
from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Program, State, TakeLabel
from spaseq.lang.ast.sequence_nodes import OpKind
from spaseq.lang.sequence import SequenceOperator

MOST_WAITS = 20_000
"""A program has at most this many waits, counts aside."""

WaitName: TypeAlias = int | tuple[int, Counts]
"""The number of a wait; in a program that counts repetitions, with their counts."""


class TooManyWaits(Exception):
    """A program has too many waits, because alternatives and repetitions nest."""

    def __init__(self) -> None:
        super().__init__(f"its nested alternatives make more than {MOST_WAITS:,} places to wait at")


@dataclass(frozen=True, slots=True)
class Wait:
    """An edge at which partial matches wait."""

    gpm: int
    ends: int  # GPMs, as bits: an instant with one of them ends the wait
    strict: bool  # the next instant ends the wait, whatever its events
    then: tuple[WaitName, ...]  # waits after a solution
    accepts: bool  # the match is complete after a solution


@dataclass(frozen=True, slots=True)
class Waits:
    """All waits of a program by name; the `initial` ones, before any event, never end."""

    waits: Mapping[WaitName, Wait]
    initial: tuple[WaitName, ...]
    strict: bool  # some wait is strict
    gpms: tuple[int, ...]  # that some wait takes, sorted


def expand(program: Program) -> Waits:
    """The waits of a program; `plan.evaluators` checks that it has some.

    Raises:
        TooManyWaits: there are more than `MOST_WAITS`.
    """
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


class _CountedWaits(dict[WaitName, Wait]):
    """Waits with counts, each made when it is first asked for."""

    def __init__(self, expansion: _Expansion) -> None:
        super().__init__()
        self._expansion = expansion

    def __missing__(self, name: WaitName) -> Wait:
        assert isinstance(name, tuple)
        wait = self[name] = self._expansion.wait(*name)
        return wait


class _Expansion:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._bounds: Mapping[int, RepeatBounds] = {}
        self._numbers: dict[_Spot, int] = {}
        self._spots: list[_Spot] = []

    def waits(self) -> Waits:
        # Without bounds every edge can be followed, so this numbers all spots.
        initial = self._initial()
        waits: dict[WaitName, Wait] = {}
        for number, _ in enumerate(self._spots):  # grows during the loop
            waits[number] = self.wait(number)
        strict, gpms = any(w.strict for w in waits.values()), {w.gpm for w in waits.values()}
        if self._program.bounds:
            self._bounds = self._program.bounds
            initial, waits = self._initial(), _CountedWaits(self)
        return Waits(waits, initial, strict, tuple(sorted(gpms)))

    def _initial(self) -> tuple[WaitName, ...]:
        return self._state(self._program.automaton, (), 0, ())

    def wait(self, number: int, counts: Counts = ()) -> Wait:
        """The wait at a spot; `counts` include the actions of its edge."""
        spot = self._spots[number]
        label, before = spot.edge.label, spot.before
        assert isinstance(label, TakeLabel)
        then, accepts = self._after(spot.automaton, spot.around, spot.edge, counts)
        return Wait(label.gpm, before.ends, before.kind == ",", then, accepts)

    def _state(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        state: int,
        counts: Counts,
    ) -> tuple[WaitName, ...]:
        """The names of the waits at a state."""
        names = set[WaitName]()
        nothing = _Operator(None, 0)
        opened = self._opened(automaton, around, automaton.states[state], nothing, counts)
        for spot, after in opened:
            number = self._number(spot)
            names.add((number, after) if self._bounds else number)
        return _sorted(names)

    def _number(self, spot: _Spot) -> int:
        if spot not in self._numbers:
            if len(self._spots) == MOST_WAITS:
                raise TooManyWaits
            self._numbers[spot] = len(self._spots)
            self._spots.append(spot)
        return self._numbers[spot]

    def _opened(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        state: State,
        before: _Operator,
        counts: Counts,
    ) -> Iterator[tuple[_Spot, Counts]]:
        """The edges of a state that take single solutions, also inside brackets.

        Each comes with the counts after its actions.
        """
        for edge in state.edges:
            after = counts_after(self._bounds, counts, edge.actions)
            if after is None:
                continue
            here = before if edge.join is None else self._operator(edge, edge.join)
            if isinstance(edge.label, TakeLabel):
                yield _Spot(automaton, around, edge, here), after
                continue
            for operand in edge.label.operands:
                inside = (*around, (automaton, edge))
                yield from self._opened(operand, inside, operand.states[0], here, after)

    def _operator(self, edge: Edge, join: SequenceOperator) -> _Operator:
        ends = {self._negated(number) for number in edge.negations}
        if join.kind == ";":
            ends.update(_first_gpms(edge))
        return _Operator(join.kind, sum(1 << gpm for gpm in ends))

    def _after(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        edge: Edge,
        counts: Counts,
    ) -> tuple[tuple[WaitName, ...], bool]:
        """The waits after an edge, and whether the whole sequence may end there."""
        names = {*self._state(automaton, around, edge.target, counts)}
        accepts = False
        ends = {
            after
            for end in automaton.states[edge.target].acceptances
            if (after := counts_after(self._bounds, counts, end.actions)) is not None
        }
        for end in ends:
            if not around:
                accepts = True
                continue
            outer, complete = self._after(around[-1][0], around[:-1], around[-1][1], end)
            names.update(outer)
            accepts |= complete
        return _sorted(names), accepts

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


def _sorted(names: set[WaitName]) -> tuple[WaitName, ...]:
    return tuple(sorted(names, key=lambda name: name if isinstance(name, tuple) else (name, ())))
