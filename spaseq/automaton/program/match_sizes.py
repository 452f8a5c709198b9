"""How many solutions matches have, and the GPMs that each match takes."""

from __future__ import annotations

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Label, Program
from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Negation,
    Repeat,
)


def required_gpms(chain: Chain) -> frozenset[str]:
    """The names of the GPMs of which every match of a chain has a solution."""
    return frozenset[str]().union(*(_required(link.step) for link in chain.links))


def _required(step: ChainStep) -> frozenset[str]:
    match step:
        case GpmStep(occurrence):
            return frozenset([occurrence.gpm])
        case BinaryStep("|", operands):
            return frozenset.intersection(*map(required_gpms, operands))
        case BinaryStep(_, operands):
            return frozenset[str]().union(*map(required_gpms, operands))
        case Repeat(body=body, minimum=minimum) if minimum > 0:
            return required_gpms(body)
        case Repeat() | Negation():
            return frozenset()


def events_of_each_match(program: Program) -> int | None:
    """The number of events that every match has; None if matches may differ in it."""
    return None if program.bounds else _size(program.automaton)


def depths_of(automaton: Automaton) -> list[int] | None:
    """By state the solutions that lead there, each edge taking one; None if their number varies.

    States that cannot be reached have depth 0.
    """
    depths, todo = {0: 0}, [0]
    for number in todo:  # grows while it is walked
        for edge in automaton.states[number].edges:
            depth = depths[number] + 1
            if edge.target not in depths:
                depths[edge.target] = depth
                todo.append(edge.target)
            elif depths[edge.target] != depth:
                return None
    return [depths.get(number, 0) for number, _ in enumerate(automaton.states)]


def _size(automaton: Automaton) -> int | None:
    """The number of events of each match of an automaton."""
    sizes, todo, ends = {0: 0}, [0], set[int]()
    for number in todo:  # grows while it is walked
        state = automaton.states[number]
        if state.acceptances:
            ends.add(sizes[number])
        for edge in state.edges:
            taken = _size_of_label(edge.label)
            if taken is None:
                return None
            size = sizes[number] + taken
            if edge.target not in sizes:
                sizes[edge.target] = size
                todo.append(edge.target)
            elif sizes[edge.target] != size:
                return None
    return ends.pop() if len(ends) == 1 else None


def _size_of_label(label: Label) -> int | None:
    if not isinstance(label, BracketLabel):
        return 1
    sizes = {_size(operand) for operand in label.operands}
    # One event may match both operands of `&`, so the size of `&` varies. AND has no known size.
    return sizes.pop() if label.kind == "|" and len(sizes) == 1 else None
