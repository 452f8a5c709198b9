"""Negated steps in first or last place: what the compiled evaluators check on each match.

They run the sequence without these steps, and then drop the matches beside which such a step
matches. `A; B++` is `A; B+; B!`: a greedy loop without upper bound in last place is such a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spaseq.automaton.program.nfa import Acceptance, Automaton, GreedyExit, Program, TakeLabel
from spaseq.records import record

GREEDY_PLACE = "a greedy loop in last place looks at the rest of the window"
OUTER_PLACE = "a negated step in first or last place looks at the whole window"


class NotChecked(Exception):
    """A negated step in first or last place cannot be checked on a match. The message says why."""


@record
class OuterNegation:
    """A negated step of one GPM in first place, or in last place (`is_last`)."""

    take: TakeLabel
    is_last: bool
    number: int | None  # of the negated step; None for a greedy loop


def has_outer_negations(program: Program) -> bool:
    """Whether a negated step stands in first or last place, in some matches at least.

    So does a greedy loop in last place.
    """
    automaton = program.automaton
    return any(_first(automaton)) or any(e.negations or e.exits for e in _ends(automaton))


def outer_place(program: Program) -> str | None:
    """What stands in first or last place and looks at the whole window; None if nothing does."""
    if any(end.exits for end in _ends(program.automaton)):
        return GREEDY_PLACE
    return OUTER_PLACE if has_outer_negations(program) else None


def outer_negations(program: Program) -> tuple[OuterNegation, ...]:
    """The negated steps in first and last place.

    Raises:
        NotChecked: some matches have them and others have not, or one has several GPMs.
    """
    ends = [*_ends(program.automaton)]
    first = _only(_first(program.automaton))
    last = _only({end.negations for end in ends})
    found = [OuterNegation(_single(program, n), False, n) for n in first]
    found += [OuterNegation(_single(program, n), True, n) for n in last]
    if any(end.exits for end in ends):
        takes = [_repeated(program, end) for end in ends]
        if len({take.gpm for take in takes}) > 1:
            raise NotChecked(GREEDY_PLACE)
        found.append(OuterNegation(takes[0], True, None))
    return tuple(found)


def without_outer_negations(program: Program) -> Program:
    """The program of the same sequence without its negated steps in first and last place."""
    if not has_outer_negations(program):
        return program
    automaton = program.automaton
    begin, *others = [
        replace(s, acceptances=tuple(replace(a, negations=(), exits=()) for a in s.acceptances))
        for s in automaton.states
    ]
    freed = {edge.id: replace(edge, negations=()) for edge in begin.edges}
    begin = replace(begin, edges=tuple(freed.values()))
    edges = tuple(freed.get(edge.id, edge) for edge in program.edges)
    return replace(program, automaton=replace(automaton, states=(begin, *others)), edges=edges)


def _first(automaton: Automaton) -> Iterable[tuple[int, ...]]:
    return {edge.negations for edge in automaton.states[0].edges}


def _ends(automaton: Automaton) -> Iterable[Acceptance]:
    return (end for state in automaton.states for end in state.acceptances)


def _repeated(program: Program, end: Acceptance) -> TakeLabel:
    """The one GPM of the greedy loop in last place that a match leaves."""
    match end.exits:
        case (GreedyExit(repeat=repeat) as left,) if repeat not in program.untils:
            edges = program.further[left].states[0].edges
            take = _one_gpm(program.further[left])
            join = edges[0].join
            if take is not None and join is not None and join.kind != ",":
                return take
    raise NotChecked(GREEDY_PLACE)


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
    return _one_gpm(program.negated[number].automaton)


def _one_gpm(automaton: Automaton) -> TakeLabel | None:
    edges = automaton.states[0].edges
    if len(edges) != 1 or automaton.states[edges[0].target].edges or edges[0].negations:
        return None
    label = edges[0].label
    return label if isinstance(label, TakeLabel) else None
