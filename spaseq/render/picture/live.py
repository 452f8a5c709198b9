"""The numbers of partial matches in the states of a drawn automaton, and of events at its edges.

An automaton may be drawn otherwise than it runs: with counters, or with brackets that the evaluator
has inlined. A state that is not drawn counts where the state is drawn that takes the same step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Label
from spaseq.automaton.run.live_states import LiveStates, sequence_automata
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record
from spaseq.render.picture.diagram import Diagram, Picture, StateBox

_Step: TypeAlias = tuple[str, int | None]
"""The name of the step that a state takes, and the number of its use in the sequence."""


@record
class DrawnCounts:
    """Partial matches by the id of a drawn state, and solutions taken by the name of a GPM.

    None: they are not known.
    """

    waiting: Mapping[str, int] | None
    taken: Mapping[str, int] | None


UNKNOWN = DrawnCounts(None, None)
"""The counts of a query whose partial matches are not known."""


def drawn_counts(picture: Picture, plan: QueryPlan, live: LiveStates) -> DrawnCounts:
    """The counts of a query's partial matches by the states and GPMs of its picture."""
    names = [gpm.name for gpm in plan.patterns.gpms]
    boxes = {box.id: box for box in _boxes(picture.main)}
    first = {_step_of(box): box.id for box in reversed(boxes.values())}
    automata = {each.id: each for each in sequence_automata(live.program.automaton)}
    waiting = Counter[str]()
    for (automaton, number), count in live.waiting.items():
        step = _step_into(automata[automaton], number)
        at = f"{picture.leads.get(automaton)}{number}"
        if at not in boxes or _step_of(boxes[at]) != step:
            at = first.get(step, picture.main.states[0].id)
        waiting[at] += count
    if live.taken is None:
        return DrawnCounts(waiting, None)
    return DrawnCounts(waiting, {names[gpm]: count for gpm, count in live.taken.items()})


def _boxes(diagram: Diagram) -> Iterator[StateBox]:
    for box in diagram.states:
        yield box
        for operand in box.operands:
            yield from _boxes(operand)


def _step_of(box: StateBox) -> _Step:
    return box.name, box.step


def _step_into(automaton: Automaton, number: int) -> _Step:
    """The step of the edges into a state."""
    labels = (e.label for state in automaton.states for e in state.edges if e.target == number)
    return _step(next(labels, None))


def _step(label: Label | None) -> _Step:
    if label is None:
        return "", None
    return (label.kind, None) if isinstance(label, BracketLabel) else (label.name, label.occurrence)
