"""The product of the two operands of a bracket with `&` or AND, as states and edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from spaseq.automaton.program.bound_variables import last_time
from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.gpm_columns import GpmColumns
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
    NotOrdered,
    OperandPlace,
    OperandPlaces,
    OperandWay,
    check_size,
)
from spaseq.expr.uses import is_of_its_event, is_volatile, timestamp_uses
from spaseq.lang import ast
from spaseq.lang.ast.pattern_nodes import OpKind
from spaseq.lang.sequence import SequenceOperator
from spaseq.lang.variables import variables_of
from spaseq.records import record

_KINDS: tuple[OpKind, ...] = (",", ";", ":")
"""Kinds of operators, the strictest first."""


@record
class _Pending:
    """A FILTER of the second operand, and the variables it reads that the first one may still
    change.

    With the occurrence of its step it sees whole operands in order (`LateFilter`).
    """

    condition: ast.Expr
    reads: frozenset[str]
    occurrence: int | None


class _At(NamedTuple):
    """A place of the product: the places of both operands, and FILTERs that are not tested yet."""

    places: tuple[OperandPlace, OperandPlace]
    pending: tuple[_Pending, ...] = ()


@record
class _Taken:
    """An edge of an operand (0 or 1) that is followed, and the state that it leaves."""

    edge: Edge
    take: TakeLabel
    operand: int
    source: int


@record
class _Move:
    """Ways of the operands that are followed at one instant, and the places after them.

    `passed` is the way for which the other operand waits: (operand, state, way).
    """

    taken: tuple[_Taken, ...]
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


class Sight:
    """The variables of each operand that the steps of the other one see.

    `owned` are the group variables; `before` is certainly bound before the bracket. `late`: the
    evaluator tests late FILTERs.
    """

    def __init__(
        self,
        owned: Collection[str],
        gpms: Sequence[GpmColumns],
        before: frozenset[str],
        left: OperandPlaces,
        right: OperandPlaces,
        late: bool,
    ) -> None:
        self._owned, self._gpms, self._before = frozenset(owned), gpms, before
        self.operands, self._may_be_late = (left, right), late
        self.has_late = False  # whether some FILTER is late, if the evaluator tests these
        self._uses = dict[int, tuple[frozenset[str], frozenset[str]]]()  # by id of a FILTER

    def _used(self, condition: ast.Expr) -> tuple[frozenset[str], frozenset[str]]:
        """The variables of a FILTER of a step, and the GPMs whose times it reads."""
        uses = self._uses.get(id(condition))
        if uses is None:
            found = variables_of(condition), timestamp_uses(condition)
            uses = self._uses[id(condition)] = found
        return uses

    def conditions(self, take: TakeLabel) -> tuple[ast.Expr, ...]:
        """The FILTERs of a step."""
        own = take.conditions
        return self._gpms[take.gpm].conditions if own is None else own

    def tests(self, take: TakeLabel) -> bool:
        """Whether FILTERs are tested at a step: its FILTERs, or FILTERs of others."""
        return bool(self.conditions(take) or take.late or take.moved)

    def variables(self, take: TakeLabel) -> frozenset[str]:
        """The variables that a step may bind."""
        return frozenset(self._gpms[take.gpm].variables)

    def changed(self, takes: Iterable[TakeLabel]) -> frozenset[str]:
        """The variables that steps may bind, and the times of their GPMs."""
        bound = frozenset[str]().union(*map(self.variables, takes))
        return bound | {last_time(take.name) for take in takes}

    def foreign(self, variables: Set[str], operand: int, source: int) -> frozenset[str]:
        """Those variables that the other operand may bind, and that are not known at a state."""
        own, other = self.operands[operand], self.operands[1 - operand]
        return frozenset(variables & other.variables) - self._before - own.certain[source]

    def _shared(self, condition: ast.Expr, step: _Taken) -> frozenset[str]:
        """The variables, and times of GPMs, of a FILTER that the other operand may bind."""
        other = self.operands[1 - step.operand]
        variables, times = self._used(condition)
        reads = variables & other.variables - self._before
        return reads | {*map(last_time, times & other.names)}

    def _read_of_other(self, condition: ast.Expr, step: _Taken) -> frozenset[str]:
        """The variables, and times of GPMs, of the other operand that a FILTER of a step reads."""
        known = self._gpms[step.take.gpm].certain | self.operands[step.operand].certain[step.source]
        return self._shared(condition, step) - known

    def _is_same_later(self, condition: ast.Expr, step: _Taken) -> bool:
        """Whether the value of a FILTER is final after its awaited events."""
        own, (names, times) = self.operands[step.operand], self._used(condition)
        reads = names - self._gpms[step.take.gpm].certain - own.certain[step.source]
        if names & self._owned or reads & own.variables - self._before:
            return False
        return not times and not is_of_its_event(condition)

    def _late(self, condition: ast.Expr, step: _Taken) -> LateFilter:
        may_be = not is_volatile(condition)
        self.has_late |= may_be
        if not (may_be and self._may_be_late):
            raise NotOrdered("a FILTER in {} must see the operands in order")
        return LateFilter(step.take.occurrence, condition)

    def filters(
        self, step: _Taken, unknown: Set[str], begun: bool
    ) -> tuple[tuple[ast.Expr, ...], tuple[LateFilter, ...], list[_Pending]]:
        """The FILTERs of a step: immediate, late and waiting ones.

        `unknown` are variables that the first operand may still change; `begun`: the second one has
        begun.

        Raises:
            NotOrdered: the evaluator cannot test one of them in time.
        """
        tested, late, waiting = list[ast.Expr](), list[LateFilter](), list[_Pending]()
        for condition in self.conditions(step.take):
            reads = self._unsure(self._read_of_other(condition, step), step, unknown, begun)
            if not reads:
                tested.append(condition)
            elif step.operand == 0:
                late.append(self._late(condition, step))
            elif self._is_same_later(condition, step):
                waiting.append(_Pending(condition, reads, None))
            else:
                occurrence = self._late(condition, step).occurrence
                waiting.append(_Pending(condition, reads, occurrence))
        for each in step.take.late:
            reads = self._unsure(self._shared(each.condition, step), step, unknown, begun)
            if reads and step.operand == 1:
                waiting.append(_Pending(each.condition, reads, each.occurrence))
            else:
                late.append(each)
        for condition in step.take.moved:
            if self._unsure(self._shared(condition, step), step, unknown, begun):
                raise NotOrdered("a FILTER in {} must see the operands in order")
        return tuple(tested), tuple(late), waiting

    def _unsure(
        self, reads: frozenset[str], step: _Taken, unknown: Set[str], begun: bool
    ) -> frozenset[str]:
        """The variables of the other operand that a step reads and the run may lack."""
        return reads & unknown if step.operand else reads if begun else frozenset()

    def check_times(self, checked: Collection[int]) -> None:
        """Check that negated steps and loops use no time of an event of the other operand.

        `checked` are the GPMs of negated steps and greedy loops.

        Raises:
            NotOrdered: they may do so.
        """
        times = {t for g in checked for c in self._gpms[g].conditions for t in timestamp_uses(c)}
        for one, other in (self.operands, self.operands[::-1]):
            if one.is_checked and times & other.names:
                raise NotOrdered("a negated step or a loop in {} uses the time of another event")

    def check_competing(self, step: _Taken, left: OperandPlace) -> None:
        """Check that the run knows which solution of a step comes next, behind `;`."""
        uses = [*map(self._used, self.conditions(step.take))]
        reads = self.variables(step.take).union(*(variables for variables, _ in uses))
        unknown = self.foreign(reads, step.operand, step.source)
        if step.operand == 1:
            unknown &= self.operands[0].future(left)
        times = frozenset[str]().union(*(times for _, times in uses))
        if unknown or times & self.operands[1 - step.operand].names:
            raise NotOrdered("what comes next in an operand of {} depends on the other one")

    def key(self, take: TakeLabel, known: Set[str]) -> tuple[str, ...]:
        """The variables that a step certainly shares with the run."""
        grouped = {v for v, view in take.views.items() if view.kind == "current"}
        certain = self._gpms[take.gpm].certain & (known | self._before)
        return tuple(sorted(certain - grouped))


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

    def _taken(self, at: _At, operand: int, way: OperandWay) -> tuple[_Taken, ...]:
        source = at.places[operand].state
        taken = zip(way.edges, way.takes, strict=True)
        steps = tuple(_Taken(edge, take, operand, source) for edge, take in taken)
        if way.kind == ";":
            self._check_competing(at, operand, way)
        for step in steps:
            self._check_loops(at, step)
        return steps

    def _check_loops(self, at: _At, step: _Taken) -> None:
        """Check that the run knows whether the greedy loops that a step leaves go on."""
        todo = [self._further[left] for left in step.edge.exits if not left.forestalls]
        for automaton in todo:  # grows while it is walked
            for edge in (edge for state in automaton.states for edge in state.edges):
                if isinstance(edge.label, TakeLabel):
                    one_more = _Taken(edge, edge.label, step.operand, step.source)
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
            self._sight.check_competing(_Taken(edge, take, operand, source), at.places[0])

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
        step: _Taken,
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

    def _labels(self, at: _At, move: _Move) -> tuple[list[TakeLabel], tuple[_Pending, ...]]:
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
