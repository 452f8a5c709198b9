"""The number of events of a match, where all matches of a sequence have as many.

No match of such a sequence contains another one, so SELECT MAX keeps them all.
"""

from __future__ import annotations

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Label, Program


def events_of_each_match(program: Program) -> int | None:
    """The number of events that every match has; None if matches may differ in it."""
    return None if program.bounds else _size(program.automaton)


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
