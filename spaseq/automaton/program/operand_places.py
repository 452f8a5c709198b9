"""The places of one operand of a bracket with `&` or AND, and the ways out of them.

An operand is at a state of its automaton, where it may take any way out. Or it waits for one of
these ways, because the other operand has advanced since. Or it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from spaseq.automaton.program.alternatives import NotSingle, alternative_edges
from spaseq.automaton.program.bound_variables import bound_by_state, last_time
from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    Edge,
    GpmColumns,
    GreedyExit,
    Program,
    State,
    TakeLabel,
)
from spaseq.lang.ast.pattern_nodes import OpKind
from spaseq.records import record

MOST_PRODUCT_EDGES = 256
"""Maximum number of edges of a bracket's product; otherwise the bracket stays."""


class NotOrdered(Exception):
    """The events of a bracket cannot be put in order beforehand. The message is the reason."""


def check_size(edges: int) -> None:
    """Check that a product with this number of edges, or more, is not too large."""
    if edges > MOST_PRODUCT_EDGES:
        raise NotOrdered("the operands of {} have too many orders")


@record
class OperandWay:
    """A way out of a state: edges that take solutions of one instant, each in turn."""

    edges: tuple[Edge, ...]
    kind: OpKind  # of the operator before it
    target: int

    @property
    def takes(self) -> tuple[TakeLabel, ...]:
        """The steps that its edges take."""
        return tuple(edge.label for edge in self.edges if isinstance(edge.label, TakeLabel))

    @property
    def exits(self) -> tuple[GreedyExit, ...]:
        """The steps behind `;` that must not have matched before it is taken."""
        return tuple(left for edge in self.edges for left in edge.exits if left.forestalls)


_NEVER = -1
"""The number of no way. Lower numbers stand for ends of a state that are still to come."""


class OperandPlace(NamedTuple):
    """The progress of an operand: at a state; `way` is the number of the way that it waits for.

    None: any way, or the end, as nothing has happened since. An operand that is done waits for no
    way.
    """

    state: int
    way: int | None = None

    @property
    def is_new(self) -> bool:
        """Whether the operand has taken nothing yet."""
        return self.state == 0


NEW = OperandPlace(0)


@record
class Rest:
    """The options of an operand while the other one advances: the place, and the way it waits for.

    `actions` are the actions of the operand's end, if it is done.
    """

    place: OperandPlace
    way: OperandWay | None
    actions: tuple[Action, ...] = ()


class OperandPlaces:
    """An operand whose automaton has no brackets but alternatives of single GPMs.

    Raises:
        NotOrdered: a part of it depends on time, or on events that the other operand may take.
    """

    def __init__(
        self, automaton: Automaton, program: Program, gpms: Sequence[GpmColumns], kind: str
    ) -> None:
        self._kind, self.is_checked = kind, False  # whether it has negated steps, or such loops
        self._untils = program.untils
        self.states = automaton.states
        check_size(sum(len(state.edges) for state in automaton.states))
        self._ways = [[*self._out_of(state)] for state in self.states]
        taken = [way for ways in self._ways for way in ways]
        self.names = frozenset(take.name for way in taken for take in way.takes)
        bound = bound_by_state(self._simple(automaton), gpms)
        self.certain = bound.certainly
        self.variables = frozenset(
            v for way in taken for take in way.takes for v in gpms[take.gpm].variables
        )
        self._gpms = gpms
        self._future = [self._to_come(number) for number in range(len(self.states))]

    def _simple(self, automaton: Automaton) -> Automaton:
        """The automaton, each of its edges taking one solution."""
        states = (
            replace(s, edges=tuple(e for edge in s.edges for e in self._single(edge)))
            for s in automaton.states
        )
        return replace(automaton, states=tuple(states))

    def _single(self, edge: Edge) -> Iterator[Edge]:
        try:
            yield from (taking.edge for taking in alternative_edges(edge))
        except NotSingle as reason:
            raise NotOrdered(str(reason)) from reason

    def _out_of(self, state: State) -> Iterator[OperandWay]:
        for end in state.acceptances:
            self._check(end)
        for edge in state.edges:
            self._check(edge)
            kind: OpKind = ":" if edge.join is None else edge.join.kind
            found = [*self._single(edge)]
            if len(found) > 1 and kind == ";":
                raise NotOrdered(f"alternatives compete after `;` within {self._kind}")
            if not edge.together:
                for first in found:
                    yield from self._chains((first,), kind)

    def _chains(self, edges: tuple[Edge, ...], kind: OpKind) -> Iterator[OperandWay]:
        """The ways that begin with some edges; more of the same instant may follow."""
        target = edges[-1].target
        more = self.states[target].edges
        if not any(edge.together for edge in more):
            yield OperandWay(edges, kind, target)
        for edge in more:
            if edge.together:
                yield from self._chains((*edges, edge), kind)

    def _check(self, way: Edge | Acceptance) -> None:
        loops = any(action.repeat in self._untils for action in way.actions)
        if way.negations or loops or any(not left.forestalls for left in way.exits):
            self.is_checked = True

    def _to_come(self, state: int, way: OperandWay | None = None) -> frozenset[str]:
        """The variables, and times of GPMs, that the ways from a state on may bind."""
        todo = [state] if way is None else [way.target]
        ways = [] if way is None else [way]
        for number in todo:  # grows while it is walked
            ways += self._ways[number]
            todo += {w.target for w in self._ways[number]} - {*todo}
        takes = [take for way in ways for take in way.takes]
        return frozenset(
            name for t in takes for name in (*self._gpms[t.gpm].variables, last_time(t.name))
        )

    def future(self, place: OperandPlace) -> frozenset[str]:
        """The variables that the operand may still bind, and the times of GPMs that may change."""
        if place.way is None:
            return self._future[place.state]
        if place.way < 0:
            return frozenset()
        return self._to_come(place.state, self._ways[place.state][place.way])

    def ways(self, place: OperandPlace) -> Sequence[OperandWay]:
        """The ways on from a place."""
        ways = self._ways[place.state]
        if place.way is None:
            return ways
        return [] if place.way < 0 else [ways[place.way]]

    def decided(self, place: OperandPlace) -> Sequence[OperandPlace]:
        """The places from which the operand can continue, if it may also end at a place."""
        ends = self.states[place.state].acceptances
        if place.way is not None or not ends:
            return [place]
        numbers = *range(len(self._ways[place.state])), *(_NEVER - 1 - n for n in range(len(ends)))
        return [OperandPlace(place.state, number) for number in numbers]

    def rests(self, place: OperandPlace) -> Iterator[Rest]:
        """The options of the operand while the other one takes a solution."""
        if place.is_new or place.way == _NEVER:
            yield Rest(place, None)
            return
        state, ways = self.states[place.state], self._ways[place.state]
        for number, way in enumerate(ways):
            if way.kind != "," and place.way in (None, number):
                alone = len(ways) == 1 and not state.acceptances
                yield Rest(OperandPlace(place.state, None if alone else number), way)
        for end in self._ends(place):
            yield Rest(OperandPlace(place.state, _NEVER), None, end.actions)

    def ends(self, place: OperandPlace) -> list[tuple[Action, ...]]:
        """The actions of each way to complete at a place."""
        if place.way == _NEVER:
            return [()]
        return [end.actions for end in self._ends(place)]

    def _ends(self, place: OperandPlace) -> Sequence[Acceptance]:
        """The ways to end at a place that are still to come."""
        ends = self.states[place.state].acceptances
        if place.way is None:
            return ends
        return ends[_NEVER - 1 - place.way :][:1] if place.way < _NEVER else ()
