"""The program of SELECT STRICT: it finds only the matches whose instants are consecutive.

Each step of such a match takes the next instant of the partition, whatever operator stands before
it. So every operator becomes `,`, and keeps its bound on the gap. A negated step between two steps
then finds no instant to match at, unless the other operand of a bracket takes one. One more
repetition of a greedy loop may come later.

The events of two operands of `&` or AND may alternate, so operators in them are left alone until
the bracket is one with alternatives of all orders (`any_order`).
"""

from __future__ import annotations

from dataclasses import replace

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Label, Program


class NotContiguous(Exception):
    """The instants of a match may be consecutive though its steps are not. The message is the
    reason.
    """


def contiguous_around(program: Program) -> Program:
    """The program of the matches with consecutive instants, before `any_order`."""
    return _Contiguous(program, leaves_operands=True).program()


def contiguous(program: Program) -> Program:
    """The program of another one's matches with consecutive instants.

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
