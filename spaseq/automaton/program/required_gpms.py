"""The GPMs that take part in every match of a sequence."""

from __future__ import annotations

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Label

_Known = dict[int, frozenset[int]]


def required_gpms(automaton: Automaton) -> frozenset[int]:
    """The GPMs (indexes) of which every match of an automaton takes a solution.

    A state knows the GPMs that every way to it takes: what all edges that lead there have in
    common.
    """
    known: _Known = {0: frozenset()}
    waiting = [0]
    while waiting:
        number = waiting.pop()
        for edge in automaton.states[number].edges:
            taken = known[number] | _taken(edge.label)
            before = known.get(edge.target)
            after = taken if before is None else before & taken
            if after != before:
                known[edge.target] = after
                waiting.append(edge.target)
    ends = [own for number, own in known.items() if automaton.states[number].acceptances]
    return frozenset.intersection(*ends) if ends else frozenset()


def _taken(label: Label) -> frozenset[int]:
    """The GPMs that every match of a label takes."""
    if not isinstance(label, BracketLabel):
        return frozenset([label.gpm])
    operands = map(required_gpms, label.operands)
    if label.kind == "|":
        return frozenset.intersection(*operands)
    return frozenset[int]().union(*operands)
