"""Alternatives of single GPMs as edges: `A; (B | C)` has an edge for B and one for C.

After `;` the first solution of any of them ends the wait for all. The evaluator does that; it knows
the edges of one bracket by `AlternativeEdge.step`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spaseq.automaton.program.nfa import Acceptance, Automaton, BracketLabel, Edge, TakeLabel
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
    _check(label, edge)
    for operand in label.operands:
        for inner in operand.states[0].edges:
            yield from _taken(inner)


def _check(label: BracketLabel, edge: Edge) -> None:
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
