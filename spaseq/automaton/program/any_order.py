"""Brackets with `&` and AND as alternatives of one operand: the product of the two automata.

A place of the product has the position of each operand. A way takes solutions of one instant, for
one operand or for both; so `(A AND B)` is `(A: B | B: A)`, or both at once if their events may
share an instant. While one operand advances, the other one waits. The edge has the conditions that
end this wait, as if the operand left a greedy loop: behind `;` the edge is not followed if a
solution of the next step has come. All events of `&` have one time, so no edge in it allows a gap.

Negated steps and loops of an operand begin at its last step, whatever the other one has taken
since. They are checked on whole matches only.

The second operand sees the bindings of the first one. A FILTER that looks at it is tested when the
first operand can no longer change it.

The events of two operands may alternate, so `contiguous` leaves operators in them alone before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import replace

from spaseq.automaton.program.alternatives import inlined
from spaseq.automaton.program.nfa import (
    Automaton,
    BracketLabel,
    Edge,
    GpmColumns,
    Label,
    Program,
    TakeLabel,
)
from spaseq.automaton.program.operand_places import NotOrdered, OperandPlaces
from spaseq.automaton.program.product import Product
from spaseq.automaton.program.product_filters import Sight


def in_every_order(
    program: Program,
    gpms: Sequence[GpmColumns],
    streams: Sequence[Collection[int]],
    late: bool = True,
) -> Program:
    """The same sequence, its brackets with `&` and AND replaced where possible.

    `streams` has the streams of each GPM. Without `late` it has no late FILTERs.
    """

    def make() -> tuple[Program | None, bool]:
        ordering = _Ordering(program, gpms, streams, True)
        made, has_late = ordering.program(), any(sight.has_late for sight in ordering.sights)
        return None if made is program else made, has_late

    ordered, has_late = program.made("in every order", ([*gpms], [*streams]), make)
    if late or not has_late:
        return ordered or program
    return _Ordering(program, gpms, streams, False).program()


class _Ordering:
    def __init__(
        self,
        program: Program,
        gpms: Sequence[GpmColumns],
        streams: Sequence[Collection[int]],
        late: bool,
    ) -> None:
        self._program, self._gpms, self._streams = program, gpms, streams
        self._late = late
        self.sights: list[Sight] = []
        self._edges = [*program.edges]
        self._replaced: dict[int, Edge] = {}  # by id; several brackets may share an operand
        self._further = dict(program.further)

    def program(self) -> Program:
        automaton = self._automaton(self._program.automaton, frozenset())
        if not self._replaced:
            return self._program
        judged = {
            e.label.gpm
            for a in self._new_further()
            for e in a.states[0].edges
            if isinstance(e.label, TakeLabel)
        }
        return replace(
            self._program,
            automaton=automaton,
            edges=tuple(self._edges),
            further=self._further,
            replayed=self._program.replayed | judged,
        )

    def _new_further(self) -> Iterator[Automaton]:
        return (a for left, a in self._further.items() if left not in self._program.further)

    def _automaton(self, automaton: Automaton, hidden: Set[str]) -> Automaton:
        """The automaton with other brackets; `hidden` variables may be unbound before them."""
        states = (
            replace(state, edges=tuple(self._edge(edge, hidden) for edge in state.edges))
            for state in automaton.states
        )
        return replace(automaton, states=tuple(states))

    def _edge(self, edge: Edge, hidden: Set[str]) -> Edge:
        label = edge.label
        if not isinstance(label, BracketLabel):
            return edge
        if edge.id not in self._replaced:
            inner = self._bracket(label, hidden)
            self._replaced[edge.id] = self._edges[edge.id] = replace(edge, label=inner)
        return self._replaced[edge.id]

    def _bracket(self, label: BracketLabel, hidden: Set[str]) -> BracketLabel:
        if label.kind == "|":
            operands = (self._automaton(operand, hidden) for operand in label.operands)
            return replace(label, operands=tuple(operands))
        try:
            return BracketLabel("|", (self._product(label, label.before - hidden),))
        except NotOrdered as reason:
            return replace(label, obstacle=str(reason).format(label.kind))

    def _product(self, label: BracketLabel, before: frozenset[str]) -> Automaton:
        bound = [self._variables(operand) - before for operand in label.operands]
        places = []
        for operand, others in zip(label.operands, reversed(bound), strict=True):
            flat = self._flat(operand, others)
            places.append(OperandPlaces(flat, self._program, self._gpms, label.kind))
        sight = Sight(self._program.owner, self._gpms, before, places[0], places[1], self._late)
        self.sights.append(sight)
        sight.check_times(self._program.replayed)
        product = Product(sight, label.kind, self._streams, self._edges, self._further)
        return replace(label.operands[0], states=product.states())

    def _flat(self, operand: Automaton, hidden: Set[str]) -> Automaton:
        """An operand without brackets, but for alternatives of single GPMs."""
        automaton = self._automaton(operand, hidden)
        program = replace(self._program, automaton=automaton, edges=tuple(self._edges))
        flat = inlined(program, competing=False)
        self._edges = [*flat.edges]
        return flat.automaton

    def _variables(self, automaton: Automaton) -> frozenset[str]:
        """The variables that an automaton may bind."""
        found = set[str]()
        for label in (edge.label for state in automaton.states for edge in state.edges):
            if isinstance(label, TakeLabel):
                found.update(self._gpms[label.gpm].variables)
            else:
                found = found.union(*map(self._variables, label.operands))
        return frozenset(found)


class NotContiguous(Exception):
    """The instants of a match may be consecutive though its steps are not. The message is the
    reason.
    """


def contiguous_around(program: Program) -> Program:
    """The program of the matches with consecutive instants, before `any_order`."""
    return _Contiguous(program, leaves_operands=True).program()


def contiguous(program: Program) -> Program:
    """The program of another one's matches with consecutive instants, for SELECT STRICT.

    Each step of such a match takes the next instant of the partition, whatever operator stands
    before it. So every operator becomes `,`, and keeps its bound on the gap. A negated step between
    two steps then finds no instant to match at, unless the other operand of a bracket takes one.
    One more repetition of a greedy loop may come later.

    Raises:
        NotContiguous: a bracket with `&` or AND lets the events of two operands alternate.
    """
    return _Contiguous(program).program()


class _Contiguous:
    def __init__(self, program: Program, leaves_operands: bool = False) -> None:
        self._program, self._leaves_operands = program, leaves_operands
        self._edges = [*program.edges]

    def program(self) -> Program:
        automaton = self._automaton(self._program.automaton)
        edges = tuple(self._edges)
        return replace(self._program, automaton=automaton, edges=edges, strict=True)

    def _automaton(self, automaton: Automaton) -> Automaton:
        states = [
            replace(state, edges=tuple(map(self._edge, state.edges))) for state in automaton.states
        ]
        return replace(automaton, states=tuple(states))

    def _edge(self, edge: Edge) -> Edge:
        strict = replace(edge, label=self._label(edge.label))
        if edge.join is not None:
            negations = () if edge.after is None else edge.negations
            strict = replace(strict, join=replace(edge.join, kind=","), negations=negations)
        self._edges[edge.id] = strict
        return strict

    def _label(self, label: Label) -> Label:
        if not isinstance(label, BracketLabel):
            return label
        if label.kind != "|":
            if self._leaves_operands:
                return label
            raise NotContiguous(label.obstacle)
        return replace(label, operands=tuple(map(self._automaton, label.operands)))
