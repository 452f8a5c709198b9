"""Negated steps in first or last place: what the compiled evaluators check on each match.

They run the sequence without these steps, and then drop the matches beside which such a step
matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spaseq.automaton.program.nfa import Automaton, Program, TakeLabel

OUTER_PLACE = "a negated step in first or last place looks at the whole window"


class NotChecked(Exception):
    """A negated step in first or last place cannot be checked on a match. The message says why."""


@dataclass(frozen=True, slots=True)
class OuterNegation:
    """A negated step of one GPM in first place, or in last place (`is_last`)."""

    take: TakeLabel
    is_last: bool
    number: int  # of the negated step


def has_outer_negations(program: Program) -> bool:
    """Whether a negated step stands in first or last place, in some matches at least."""
    automaton = program.automaton
    return any(_first(automaton)) or any(_last(automaton))


def outer_negations(program: Program) -> tuple[OuterNegation, ...]:
    """The negated steps in first and last place.

    Raises:
        NotChecked: some matches have them and others have not, or one has several GPMs.
    """
    first, last = _only(_first(program.automaton)), _only(_last(program.automaton))
    found = [OuterNegation(_single(program, n), False, n) for n in first]
    return (*found, *(OuterNegation(_single(program, n), True, n) for n in last))


def without_outer_negations(program: Program) -> Program:
    """The program of the same sequence without its negated steps in first and last place."""
    if not has_outer_negations(program):
        return program
    automaton = program.automaton
    begin, *others = [
        replace(s, acceptances=tuple(replace(a, negations=()) for a in s.acceptances))
        for s in automaton.states
    ]
    freed = {edge.id: replace(edge, negations=()) for edge in begin.edges}
    begin = replace(begin, edges=tuple(freed.values()))
    edges = tuple(freed.get(edge.id, edge) for edge in program.edges)
    return replace(program, automaton=replace(automaton, states=(begin, *others)), edges=edges)


def _first(automaton: Automaton) -> Iterable[tuple[int, ...]]:
    return {edge.negations for edge in automaton.states[0].edges}


def _last(automaton: Automaton) -> Iterable[tuple[int, ...]]:
    return {end.negations for state in automaton.states for end in state.acceptances}


def _only(found: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    one, *others = found
    if others:
        raise NotChecked("a negated step stands beside one that may be empty, at an end")
    return one


def _single(program: Program, number: int) -> TakeLabel:
    """The one GPM of a negated step."""
    take = single_gpm(program, number)
    if take is None:
        raise NotChecked("a negated step is more than a single GPM")
    return take


def single_gpm(program: Program, number: int) -> TakeLabel | None:
    """The label of a negated step that is a single GPM; None if it is more."""
    automaton = program.negated[number].automaton
    edges = automaton.states[0].edges
    if len(edges) != 1 or automaton.states[edges[0].target].edges or edges[0].negations:
        return None
    label = edges[0].label
    return label if isinstance(label, TakeLabel) else None
