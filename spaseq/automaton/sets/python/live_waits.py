"""The states of a program in which a partial match may be, given the wait that it is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from spaseq.automaton.program.nfa import BracketLabel
from spaseq.automaton.run.live_states import StateKey, StatePlaces
from spaseq.automaton.sets.python.conjunctions import DONE, NOT_BEGUN
from spaseq.automaton.sets.python.expand import BracketName, WaitName, Waits


def states_of(waits: Waits, name: WaitName, places: StatePlaces) -> Iterator[StateKey]:
    """The states of a wait: where it waits, or how far the operands of its bracket have got."""
    edge = waits.edges[name if isinstance(name, int) else cast(tuple[Any, ...], name)[0]]
    label = edge.label
    if isinstance(label, BracketLabel):
        _, stage, _ = cast(BracketName, name)
        bracket = waits.waits[name if isinstance(name, int) else cast(BracketName, name)[0]].bracket
        if stage is not None and bracket is not None:
            operands = zip(stage, (bracket.left, bracket.right), label.operands, strict=True)
            for got, own, operand in operands:
                if got == DONE:
                    yield from places.ends(operand)
                elif got != NOT_BEGUN:
                    yield from states_of(own, got, places)
            return
    yield places.source[edge.id]
