"""The first and last steps of matches, the numbers of their solutions, and their required GPMs.

The compiled evaluators check negated steps in first or last place on each match. They run the
sequence without these steps, and then drop the matches beside which such a step matches. `A; B++`
is `A; B+; B!`: a greedy loop without upper bound in last place is such a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    GreedyExit,
    Label,
    Program,
    TakeLabel,
)
from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Negation,
    Repeat,
)
from spaseq.records import record

GREEDY_PLACE = "a greedy loop in last place looks at the rest of the window"
OUTER_PLACE = "a negated step in first or last place looks at the whole window"


class NotChecked(Exception):
    """A negated step in first or last place cannot be checked on a match. The message is the
    reason.
    """


@record
class OuterNegation:
    """A negated step of one GPM that is checked on matches.

    It stands in first place, in last place (`is_last`), or behind `place` solutions of each match.
    In first and last place, only the matches have it whose first or last solution is of one of the
    GPMs `beside`; None: all have.
    """

    take: TakeLabel
    is_last: bool
    number: int | None  # of the negated step; None for a greedy loop
    place: int = 0
    beside: frozenset[int] | None = None


def has_outer_negations(program: Program) -> bool:
    """Whether a negated step stands in first or last place, in some matches at least.

    So does a greedy loop in last place.
    """
    automaton = program.automaton
    return any(_first(automaton)) or any(e.negations or e.exits for e in _ends(automaton))


def outer_place(program: Program) -> str | None:
    """The description of a step in first or last place that concerns the whole window, if there is
    one.
    """
    if any(end.exits for end in _ends(program.automaton)):
        return GREEDY_PLACE
    return OUTER_PLACE if has_outer_negations(program) else None


def outer_negations(program: Program) -> tuple[OuterNegation, ...]:
    """The negated steps in first and last place.

    Raises:
        NotChecked: the GPM of the first or last solution does not determine which matches have
            them; or one has several GPMs.
    """
    ends = [*_ends(program.automaton)]
    negations = [*_placed(program, _beside_first(program.automaton), False)]
    negations += _placed(program, _beside_last(program.automaton), True)
    if any(end.exits for end in ends):
        takes = [_repeated(program, end) for end in ends]
        if len({take.gpm for take in takes}) > 1:
            raise NotChecked(GREEDY_PLACE)
        negations.append(OuterNegation(takes[0], True, None))
    return tuple(negations)


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


def unchecked(program: Program) -> Program:
    """The program of the same sequence without outer negations, greedy loops and UNTIL.

    Negated steps in operands of `&` and AND, and within candidates, are left out, too.
    """
    states = [
        replace(state, edges=tuple(map(_unchecked, state.edges)))
        for state in without_outer_negations(program).automaton.states
    ]
    automaton = replace(program.automaton, states=tuple(states))
    further = {left: a for left, a in program.further.items() if left.forestalls}
    return replace(program, automaton=automaton, untils={}, further=further)


def _unchecked(edge: Edge) -> Edge:
    exits = tuple(left for left in edge.exits if left.forestalls)
    negations = () if edge.only_judged else edge.negations
    if (exits, negations) == (edge.exits, edge.negations):
        return edge
    return replace(edge, exits=exits, negations=negations)


def _first(automaton: Automaton) -> Iterable[tuple[int, ...]]:
    return {edge.negations for edge in automaton.states[0].edges}


def _ends(automaton: Automaton) -> Iterable[Acceptance]:
    return (end for state in automaton.states for end in state.acceptances)


def _repeated(program: Program, end: Acceptance) -> TakeLabel:
    """The GPM of the greedy loop in last place that a match leaves."""
    match end.exits:
        case (GreedyExit(repeat=repeat) as left,) if _has_no_end(program, repeat):
            edges = program.further[left].states[0].edges
            take = _one_gpm(program.further[left])
            join = edges[0].join
            if take is not None and join is not None and join.kind != ",":
                return take
    raise NotChecked(GREEDY_PLACE)


def _has_no_end(program: Program, repeat: int) -> bool:
    """Whether a loop has no upper bound."""
    bounds = program.bounds.get(repeat)
    return repeat not in program.untils and (bounds is None or bounds.maximum is None)


def _placed(
    program: Program, beside: Mapping[int, tuple[int, ...]], is_last: bool
) -> Iterator[OuterNegation]:
    """The negated steps in first or last place, given those beside a solution of each GPM."""
    for number in dict.fromkeys(n for negations in beside.values() for n in negations):
        gpms = frozenset(gpm for gpm, negations in beside.items() if number in negations)
        some = None if len(gpms) == len(beside) else gpms
        yield OuterNegation(_single(program, number), is_last, number, beside=some)


def _beside_first(automaton: Automaton) -> Mapping[int, tuple[int, ...]]:
    """The negated steps before a match, by the GPM of its first solution."""
    negated: dict[int, tuple[int, ...]] = {}
    for edge in automaton.states[0].edges:
        for gpm in _first_gpms(edge.label):
            _note(negated, gpm, edge.negations)
    return negated


def _beside_last(automaton: Automaton) -> Mapping[int, tuple[int, ...]]:
    """The negated steps behind a match, by the GPM of its last solution."""
    negated: dict[int, tuple[int, ...]] = {}
    for edge in (edge for state in automaton.states for edge in state.edges):
        for end in automaton.states[edge.target].acceptances:
            for gpm in _last_gpms(edge.label):
                _note(negated, gpm, end.negations)
    return negated


def _note(negated: dict[int, tuple[int, ...]], gpm: int, negations: tuple[int, ...]) -> None:
    if negated.setdefault(gpm, negations) != negations:
        raise NotChecked("a negated step stands beside one that may be empty, at an end")


def _first_gpms(label: Label) -> Iterator[int]:
    """The GPMs of the first solutions of a label's matches."""
    if isinstance(label, TakeLabel):
        yield label.gpm
        return
    for operand in label.operands:
        for edge in operand.states[0].edges:
            yield from _first_gpms(edge.label)


def _last_gpms(label: Label) -> Iterator[int]:
    """The GPMs of the last solutions of a label's matches."""
    if isinstance(label, TakeLabel):
        yield label.gpm
        return
    for operand in label.operands:
        for edge in (edge for state in operand.states for edge in state.edges):
            if operand.states[edge.target].acceptances:
                yield from _last_gpms(edge.label)


def _single(program: Program, number: int) -> TakeLabel:
    """The GPM of a single negated step."""
    take = single_gpm(program, number)
    if take is None:
        raise NotChecked("a negated step is more than a single GPM")
    return take


def single_gpm(program: Program, number: int) -> TakeLabel | None:
    """The label of a negated step that is a single GPM; None for other steps."""
    return _one_gpm(program.negated[number].automaton)


def _one_gpm(automaton: Automaton) -> TakeLabel | None:
    edges = automaton.states[0].edges
    if len(edges) != 1 or automaton.states[edges[0].target].edges or edges[0].negations:
        return None
    label = edges[0].label
    return label if isinstance(label, TakeLabel) else None


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
    """The number of events that every match has; None if it varies."""
    return None if program.bounds else _size(program.automaton)


def depths_of(automaton: Automaton) -> list[int] | None:
    """By state the number of solutions that lead there, each edge taking one; None if it varies.

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
