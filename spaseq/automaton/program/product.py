"""The product of the two operands of a bracket with `&` or AND, as states and edges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    Edge,
    GreedyExit,
    LateFilter,
    State,
    TakeLabel,
)
from spaseq.automaton.program.operand_places import (
    NEW,
    OperandPlace,
    OperandWay,
    check_size,
)
from spaseq.automaton.program.product_filters import PendingFilter, Sight, TakenEdge
from spaseq.lang import ast
from spaseq.lang.ast.pattern_nodes import OpKind
from spaseq.lang.sequence import SequenceOperator
from spaseq.records import record

_KINDS: tuple[OpKind, ...] = (",", ";", ":")
"""Kinds of operators, the strictest first."""


class _At(NamedTuple):
    """A place of the product: the places of both operands, and FILTERs that are not tested yet."""

    places: tuple[OperandPlace, OperandPlace]
    pending: tuple[PendingFilter, ...] = ()


@record
class _Move:
    """Ways of the operands that are followed at one instant, and the places after them.

    `passed` is the way for which the other operand waits: (operand, state, way).
    """

    taken: tuple[TakenEdge, ...]
    kind: OpKind  # of the operator
    places: tuple[OperandPlace, OperandPlace]
    exits: tuple[GreedyExit, ...]
    passed: tuple[int, int, OperandWay] | None = None
    actions: tuple[Action, ...] = ()
    apart: bool = False  # the operands may take one event, and must not

    def apart_from(self, place: int) -> tuple[int, ...]:
        """Positions, counted back, of the steps of `taken` whose events it must not share."""
        first = sum(step.operand == self.taken[0].operand for step in self.taken)
        return tuple(range(place - first + 1, place + 1)) if self.apart and place >= first else ()


class _Here(NamedTuple):
    """The fields of an edge that depend on the position of its step in its move; as in `Edge`."""

    target: int
    join: SequenceOperator | None
    together: bool
    apart: tuple[int, ...]
    begins: tuple[int, ...]


class Product:
    """Makes the states of the product of two operands.

    `edges` has the program's edges by id, and gets the new ones. `further` gets automata that end
    the wait of an operand. `streams` has the streams of each GPM.

    Raises:
        NotOrdered: the operands depend on each other in a way that no order of events decides.
    """

    def __init__(
        self,
        sight: Sight,
        kind: str,
        streams: Sequence[Collection[int]],
        edges: list[Edge],
        further: dict[GreedyExit, Automaton],
    ) -> None:
        self._sight, self._kind, self._streams = sight, kind, streams
        self._edges, self._further, self._first = edges, further, len(edges)
        self._bracket = len(edges)
        self._operands = 2 * len(edges), 2 * len(edges) + 1  # by these numbers edges know them
        self._exits = dict[tuple[int, int, OperandWay], GreedyExit]()
        self._checked = set[tuple[int, int, int, OperandPlace]]()
        self._at = _At((NEW, NEW))
        self._numbers = {self._at: 0}
        self._todo: list[_At | None] = [self._at]
        self._states = dict[int, State]()

    def states(self) -> tuple[State, ...]:
        """The states, the initial one first."""
        for number, at in enumerate(self._todo):  # grows while it is walked
            if at is not None:
                self._states[number] = self._state(at)
        return tuple(self._states[number] for number in range(len(self._todo)))

    def _state(self, at: _At) -> State:
        edges = tuple(
            self._edge(at, m) for move in self._moves(at) for m in self._decided(at, move)
        )
        left, right = (o.ends(p) for o, p in zip(self._sight.operands, at.places, strict=True))
        ends = tuple(Acceptance((*one, *other), ()) for one in left for other in right)
        names = (
            o.states[p.state].name for o, p in zip(self._sight.operands, at.places, strict=True)
        )
        name = "start" if at == self._at else f" {self._kind} ".join(names)
        return State(name, edges, ends)

    # --- moves ------------------------------------------------------------------------------------

    def _moves(self, at: _At) -> Iterator[_Move]:
        for operand in (0, 1):
            for way in self._sight.operands[operand].ways(at.places[operand]):
                yield from self._alone(at, operand, way)
        left, right = (o.ways(p) for o, p in zip(self._sight.operands, at.places, strict=True))
        for one in left:
            for other in right:
                yield from self._both(at, one, other)

    def _decided(self, at: _At, move: _Move) -> Iterator[_Move]:
        """The move, for each way of the first operand that decides a waiting FILTER."""
        first, second = move.places
        places = self._sight.operands[0].decided(first)
        may_wait = at.pending or any(self._sight.tests(step.take) for step in move.taken)
        if len(places) == 1 or not may_wait or not self._labels(at, move)[1]:
            yield move
            return
        for place in places:
            yield replace(move, places=(place, second))

    def _alone(self, at: _At, operand: int, way: OperandWay) -> Iterator[_Move]:
        """Follow a way with one operand; the other one waits."""
        taken = self._taken(at, operand, way)
        other = 1 - operand
        for rest in self._sight.operands[other].rests(at.places[other]):
            after = OperandPlace(way.target), rest.place
            passed = None if rest.way is None else (other, at.places[other].state, rest.way)
            places = after if operand == 0 else (after[1], after[0])
            yield _Move(taken, way.kind, places, way.exits, passed, rest.actions)

    def _both(self, at: _At, one: OperandWay, other: OperandWay) -> Iterator[_Move]:
        """Follow a way with both operands, at one instant."""
        apart = False
        if self._kind == "AND":
            streams = [{s for t in way.takes for s in self._streams[t.gpm]} for way in (one, other)]
            apart = bool(streams[0] & streams[1])
            if apart and len(streams[0] | streams[1]) == 1:
                return
        left, right = self._taken(at, 0, one), self._taken(at, 1, other)
        kind = min(one.kind, other.kind, key=_KINDS.index)
        taken = (*right, *left) if one.kind != kind == ";" else (*left, *right)
        places, exits = (OperandPlace(one.target), OperandPlace(other.target)), one.exits
        if one.kind == kind == ";":
            exits += self._forestalled((1, at.places[1].state, other), only_before=True)
        yield _Move(taken, kind, places, (*exits, *other.exits), apart=apart)

    def _taken(self, at: _At, operand: int, way: OperandWay) -> tuple[TakenEdge, ...]:
        source = at.places[operand].state
        taken = zip(way.edges, way.takes, strict=True)
        steps = tuple(TakenEdge(edge, take, operand, source) for edge, take in taken)
        if way.kind == ";":
            self._check_competing(at, operand, way)
        for step in steps:
            self._check_loops(at, step)
        return steps

    def _check_loops(self, at: _At, step: TakenEdge) -> None:
        """Check that the run knows whether the greedy loops that a step leaves go on."""
        todo = [self._further[left] for left in step.edge.exits if not left.forestalls]
        for automaton in todo:  # grows while it is walked
            for edge in (edge for state in automaton.states for edge in state.edges):
                if isinstance(edge.label, TakeLabel):
                    one_more = TakenEdge(edge, edge.label, step.operand, step.source)
                    self._sight.check_competing(one_more, at.places[0])
                else:
                    todo += edge.label.operands

    def _check_competing(self, at: _At, operand: int, way: OperandWay) -> None:
        source = at.places[operand].state
        checked = operand, source, id(way), at.places[0]
        if checked in self._checked:
            return
        self._checked.add(checked)
        takes = [(way.edges[0], way.takes[0])] if way.kind == ";" else []  # the others follow it
        for left in way.exits:
            edge = self._further[left].states[0].edges[0]
            assert isinstance(edge.label, TakeLabel)
            takes.append((edge, edge.label))
        for edge, take in takes:
            self._sight.check_competing(TakenEdge(edge, take, operand, source), at.places[0])

    # --- edges ------------------------------------------------------------------------------------

    def _edge(self, at: _At, move: _Move) -> Edge:
        """The edge of a move; those that follow at the same instant are behind it."""
        labels, pending = self._labels(at, move)
        number, exits = self._number(_At(move.places, pending)), move.exits
        if move.passed is not None:
            operand, _, way = move.passed
            self._check_competing(at, operand, way)
            exits += (*(replace(left, first=False) for left in way.exits),)
            exits += self._forestalled(move.passed)
        actions = move.actions
        join = None if at == self._at else self._join(move)
        edges, begins = list[Edge](), (self._bracket,) if at == self._at else ()
        for step, label in zip(move.taken, labels, strict=True):
            target = number if len(edges) + 1 == len(labels) else len(self._todo)
            if target != number:
                self._todo.append(None)
            apart = (*step.edge.apart, *move.apart_from(len(edges)))
            here = _Here(target, join, bool(edges), apart, (*begins, *step.edge.begins))
            edge = self._step(step, label, here, actions, exits)
            self._edges.append(edge)
            if edges:
                self._states[edges[-1].target] = State(f"at {label.name}", (edge,), ())
            edges.append(edge)
            join, actions, exits, begins = None, (), (), ()
        check_size(len(self._edges) - self._first)
        return edges[0]

    def _step(
        self,
        step: TakenEdge,
        label: TakeLabel,
        here: _Here,
        actions: tuple[Action, ...],
        exits: tuple[GreedyExit, ...],
    ) -> Edge:
        """The edge of a step of an operand, after some actions and with further exits."""
        edge, operand, begins = step.edge, self._operands[step.operand], step.source == 0
        own = (replace(a, opens=True) for a in edge.actions) if begins else edge.actions
        after = operand if edge.after is None and not begins else edge.after
        gap_ms = edge.gap_ms
        if self._kind == "AND" and edge.join is not None and edge.join.gap_ms is not None:
            gap_ms = edge.join.gap_ms
        return Edge(
            len(self._edges),
            label,
            here.target,
            here.join,
            (*actions, *own),
            edge.negations,
            (*exits, *(left for left in edge.exits if not left.forestalls)),
            together=here.together,
            operands=(operand, *edge.operands),
            after=after,
            gap_ms=gap_ms,
            apart=here.apart,
            begins=here.begins,
        )

    def _join(self, move: _Move) -> SequenceOperator:
        """The operator before a move that is not the first one."""
        return SequenceOperator(move.kind, 0 if self._kind == "&" else None)

    def _forestalled(
        self, passed: tuple[int, int, OperandWay], only_before: bool = False
    ) -> tuple[GreedyExit, ...]:
        """The exit of an operand that waits behind `;`: its next step must not match before.

        `only_before`: it is taken at the same instant. FILTERs of other steps do not choose what
        comes next.
        """
        operand, source, way = passed
        if way.kind != ";":
            return ()
        if passed not in self._exits:
            number = -1 - len(self._edges)  # no loop and no automaton of the query has it
            known = self._sight.operands[operand].certain[source]
            take = way.takes[0]
            label = replace(take, key=self._sight.key(take, known), moved=(), late=())
            actions = way.edges[0].actions
            edge = Edge(len(self._edges), label, 1, None, actions, ())
            self._edges.append(edge)
            ends = State("start", (edge,), ()), State("end", (), (Acceptance((), ()),))
            self._exits[passed] = left = GreedyExit(number, False)
            self._further[left] = Automaton(number, 0, ends)
        left = replace(self._exits[passed], first=only_before)
        self._further[left] = self._further[self._exits[passed]]
        return (left,)

    def _number(self, at: _At) -> int:
        number = self._numbers.setdefault(at, len(self._todo))
        if number == len(self._todo):
            self._todo.append(at)
        return number

    # --- FILTERs ----------------------------------------------------------------------------------

    def _labels(self, at: _At, move: _Move) -> tuple[list[TakeLabel], tuple[PendingFilter, ...]]:
        """The labels of a move, with the FILTERs to test then; and the FILTERs not tested yet."""
        sight, pending, labels = self._sight, dict.fromkeys(at.pending), list[TakeLabel]()
        future = sight.operands[0].future(move.places[0])
        known = {
            v for o, p in zip(sight.operands, at.places, strict=True) for v in o.certain[p.state]
        }
        for place, step in enumerate(move.taken):
            tested, late = tuple[ast.Expr, ...](), tuple[LateFilter, ...]()
            if sight.tests(step.take):
                unknown = future | sight.changed([t.take for t in move.taken[place + 1 :]])
                begun = not at.places[1].is_new or any(t.operand for t in move.taken[:place])
                tested, late, waiting = sight.filters(step, unknown, begun)
                pending |= dict.fromkeys(waiting)
            key = sight.key(step.take, known)
            known |= sight.variables(step.take) & {*key}
            labels.append(replace(step.take, key=key, conditions=tested, late=late))
        if not pending:
            return labels, ()
        decided, last = [p for p in pending if not p.reads & future], labels[-1]
        moved = (p.condition for p in decided if p.occurrence is None)
        late = tuple(LateFilter(o, p.condition) for p in decided if (o := p.occurrence) is not None)
        labels[-1] = replace(last, moved=(*last.moved, *moved), late=(*last.late, *late))
        return labels, tuple(p for p in pending if p.reads & future)
