"""The chain evaluator: the compact set specialised to plain sequences of single GPMs.

Each step has one list of the partial matches that end in it. A solution of the next step becomes
one node, which holds the list of the step before as it is now and the older solutions of its own
step: output and union in one. The lists are ordered by maximum start by themselves, as the newest
partial match of a step never starts before an older one. Time per solution depends on how many
steps take it, on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from spaseq.automaton.evaluators.base import Rows
from spaseq.automaton.evaluators.compact_set import NIL, CompactSet
from spaseq.automaton.evaluators.emission import Emission
from spaseq.automaton.evaluators.expand import Wait, expand
from spaseq.automaton.evaluators.structured import Static
from spaseq.automaton.machine import Machine


@dataclass(frozen=True, slots=True)
class Touched:
    """What an instant does at one step: whether the step takes its solutions, and whether the
    waits for it end."""

    step: int
    takes: bool
    ends: bool


class Steps:
    """The steps of a plain sequence, each a wait; `contiguous` is SELECT STRICT."""

    def __init__(self, waits: tuple[Wait, ...], contiguous: bool = False) -> None:
        self.waits = waits
        self._contiguous = contiguous
        self.strict = contiguous or any(w.strict for w in waits)
        self._touched: dict[int, tuple[Touched, ...]] = {}

    def touched(self, gpms: int) -> tuple[Touched, ...]:
        """The steps that an instant with solutions of some GPMs (as bits) touches, last first."""
        touched = self._touched.get(gpms)
        if touched is None:
            touched = self._touched[gpms] = tuple(self._touch(gpms))
        return touched

    def _touch(self, gpms: int) -> list[Touched]:
        touched = []
        for step in range(len(self.waits) - 1, -1, -1):
            wait = self.waits[step]
            takes = bool(gpms >> wait.gpm & 1)
            ends = step > 0 and (self._contiguous or wait.strict or bool(gpms & wait.ends))
            if takes or ends:
                touched.append(Touched(step, takes, ends))
        return touched


class ChainProgress:
    """The list of each step, for one key."""

    __slots__ = ("_heads", "_steps")

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._heads = [NIL] * len(steps.waits)  # newest node by step; unused for the last

    def advance(self, matches: CompactSet, start: int, rows: Rows, gpms: int) -> list[int]:
        """Work off an instant; the roots of the matches that end there."""
        heads, waits = self._heads, self._steps.waits
        roots: list[int] = []
        for touched in self._steps.touched(gpms):
            step = touched.step
            before = heads[step - 1] if step else NIL
            if touched.takes and (not step or matches.lives(before)):
                wait = waits[step]
                begun = matches.start(before) if step else start
                for row in rows[wait.gpm]:
                    node = matches.output(before, heads[step], begun, wait.gpm, row)
                    if wait.accepts:
                        roots.append(node)
                    else:
                        heads[step] = node
            if touched.ends:
                heads[step - 1] = NIL
        return roots

    def lives(self, matches: CompactSet) -> bool:
        """Whether some partial match may still become part of a match."""
        return any(matches.lives(head) for head in self._heads)

    def waiting(self) -> list[int]:
        """The nodes that stand for the partial matches that wait."""
        return [head for head in self._heads if head != NIL]

    def state(self) -> object:
        """What a snapshot keeps."""
        return self._heads

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        self._heads = cast(list[int], state)


def chain(machine: Machine) -> Static:
    """The chain evaluator of a machine's program."""
    waits = expand(machine.program)
    ordered, then = [], waits.initial
    while then:
        (number,) = then
        ordered.append(waits.waits[number])
        then = ordered[-1].then
    steps = Steps(tuple(ordered), machine.strategy == "STRICT")
    return Static(machine, Emission(machine, None), lambda: ChainProgress(steps), steps.strict)
