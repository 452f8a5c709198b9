"""Brackets with `&` and AND in the automaton of sets.

A match may take several solutions of one instant here: `(A & B)` takes both at once, or one after
the other at instants of one time. So a marking transition takes a set of *letters*, at most one
solution for each. A letter is a GPM and a stream. Two letters of one instant are of one event if
their streams are equal, and the operands of AND may not share an event.

The *stage* of a bracket is the progress of its left and its right operand. Behind `;` a wait also
has the stages of the candidates that began earlier. Once one of them is complete, it forestalls all
later ones, so these end. Behind other operators all candidates count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from spaseq.automaton.program.nfa import Program
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.sets.python.determinise import (
    DeterministicAutomaton,
    DeterministicState,
    MarkedTransition,
    Move,
)
from spaseq.automaton.sets.python.expand import (
    BracketName,
    OperandPair,
    Wait,
    WaitName,
    Waits,
    expand,
)
from spaseq.records import record

NOT_BEGUN, DONE = -1, -2
"""The stages of an operand that has taken no event yet, and of a complete one."""

Stage: TypeAlias = tuple[Any, Any]
"""The stages of both operands: NOT_BEGUN, DONE or the name of a wait of the operand."""

LetterSet: TypeAlias = tuple[int, ...]
"""Letters of one instant, ascending."""


@record
class Letters:
    """The letters of a query with `gpms` GPMs; `ranks` has the rank of each stream by its IRI.

    Letters ascend by stream, so the solutions of a match are in the order of positions.

    >>> letters = Letters(3, (1, 0))
    >>> letters.letter(2, 0), letters.gpm(5), letters.count
    (5, 2, 6)
    """

    gpms: int
    ranks: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of letters."""
        return self.gpms * len(self.ranks)

    @property
    def same_time(self) -> int:
        """The bit, beside the letters, that says: this instant has the time of the one before."""
        return 1 << self.count

    def letter(self, gpm: int, stream: int) -> int:
        """The letter of a GPM and a stream."""
        return self.ranks[stream] * self.gpms + gpm

    def gpm(self, letter: int) -> int:
        """The GPM of a letter."""
        return letter % self.gpms

    def events(self, letters: LetterSet) -> frozenset[int]:
        """The events of one instant that letters belong to, as ranks of streams."""
        return frozenset(letter // self.gpms for letter in letters)


@record
class _InstantLetters:
    """The letters of an instant, by GPM and as bits of their GPMs."""

    letters: Letters
    of: Mapping[int, LetterSet]
    gpms: int
    same_time: bool

    @classmethod
    def from_bits(cls, letters: Letters, bits: int) -> _InstantLetters:
        of: dict[int, list[int]] = {}
        for letter in range(letters.count):
            if bits >> letter & 1:
                of.setdefault(letters.gpm(letter), []).append(letter)
        gpms = sum(1 << gpm for gpm in of)
        same = bool(bits & letters.same_time)
        return cls(letters, {gpm: tuple(some) for gpm, some in of.items()}, gpms, same)


@record
class _Step:
    """An effect of an instant on a wait: the letters taken, the waits after, whether all is
    complete.

    No letters: the instant is passed over.
    """

    taken: LetterSet
    then: tuple[WaitName, ...]
    complete: bool


@record
class _Progress:
    """An effect of an instant on a bracket: the letters taken, and the stage after."""

    taken: LetterSet
    stage: Stage

    @property
    def complete(self) -> bool:
        """Whether both operands are complete."""
        return self.stage == (DONE, DONE)


def _steps(waits: Waits, name: WaitName, seen: _InstantLetters) -> Iterator[_Step]:
    """All possible effects of an instant on a wait."""
    if isinstance(name, int):
        wait = waits.waits[name]
        for letter in seen.of.get(wait.gpm, ()):
            yield _Step((letter,), wait.then, wait.accepts)
        if not wait.strict and not wait.ends & seen.gpms:
            yield _Step((), (name,), False)
        return
    number, stage, earlier = cast(BracketName, name)
    yield from _bracket_steps(number, waits.waits[number], stage, earlier, seen)


def _bracket_steps(
    number: int, wait: Wait, stage: Any, earlier: frozenset[Stage], seen: _InstantLetters
) -> Iterator[_Step]:
    """All possible effects of an instant on a wait for a match of a bracket."""
    bracket = wait.bracket
    assert bracket is not None
    begun = {p for s in earlier for p in _progress(bracket, s, seen)}
    if any(p.complete for p in begun):
        return  # a candidate that began earlier forestalls this one
    others = frozenset(p.stage for p in begun)
    steps = _progress(bracket, stage, seen)
    for step in steps:
        if step.complete:
            yield _Step(step.taken, wait.then, wait.accepts)
        else:
            yield _Step(step.taken, ((number, step.stage, others),), False)
    if stage is not None or wait.strict or wait.ends & seen.gpms:
        return
    if bracket.first_only:
        if any(step.complete for step in steps):
            return
        others |= {step.stage for step in steps}
    yield _Step((), ((number, None, others),), False)


def _progress(bracket: OperandPair, stage: Stage | None, seen: _InstantLetters) -> set[_Progress]:
    """All possible effects of an instant on a bracket in a stage; None: one that has not begun."""
    if stage is not None and bracket.kind == "&" and not seen.same_time:
        return set()
    left, right = stage or (NOT_BEGUN, NOT_BEGUN)
    steps = set()
    rights = [*_operand(bracket.right, right, seen)]
    for one, before in _operand(bracket.left, left, seen):
        for other, behind in rights:
            shared = seen.letters.events(one) & seen.letters.events(other)
            if bracket.kind == "&" or not shared:
                steps.add(_Progress(tuple(sorted({*one, *other})), (before, behind)))
    return {p for p in steps if p.taken} if stage is None else steps


def _operand(waits: Waits, stage: Any, seen: _InstantLetters) -> Iterator[tuple[LetterSet, Any]]:
    """The letters that an operand may take at an instant, each with its stage after."""
    if stage == DONE:
        yield (), DONE
        return
    steps: Iterable[_Step]
    if stage == NOT_BEGUN:
        yield (), NOT_BEGUN
        begins = (_steps(waits, name, seen) for name in waits.initial)
        steps = (step for some in begins for step in some if step.taken)
    else:
        steps = _steps(waits, stage, seen)
    for step in steps:
        yield from ((step.taken, name) for name in step.then)
        if step.complete:
            yield step.taken, DONE


class ConjunctionAutomaton(DeterministicAutomaton):
    """The deterministic automaton of a sequence that has brackets with `&` or AND."""

    takes_several = True

    def __init__(self, waits: Waits, contiguous: bool, letters: Letters) -> None:
        self._letters = letters
        super().__init__(waits, contiguous)
        self.same_time = letters.same_time if waits.has_simultaneity else 0

    def relevant(self, name: WaitName) -> int:
        """Every letter, as bits."""
        return -1

    def move(self, state: DeterministicState, gpms: int) -> Move[DeterministicState]:
        """The move of a state at an instant with some letters (as bits)."""
        seen = _InstantLetters.from_bits(self._letters, gpms)
        then: dict[LetterSet, set[WaitName]] = {}
        complete = set[LetterSet]()
        for name in state.waits:
            for step in _steps(self.waits, name, seen):
                then.setdefault(step.taken, set()).update(step.then)
                if step.complete:
                    complete.add(step.taken)
        stays = then.pop((), ())
        stay = state if state is self.initial else None if self.is_contiguous else self.state(stays)
        targets = {taken: (self.state(then[taken]), taken in complete) for taken in then}
        return Move(stay, tuple(self._marks(targets, sorted(targets), 0)))

    def _marks(
        self,
        targets: Mapping[LetterSet, tuple[DeterministicState | None, bool]],
        chosen: list[LetterSet],
        depth: int,
    ) -> Iterator[MarkedTransition[DeterministicState]]:
        """The transitions for some sets of letters that agree in the first `depth`."""
        for letter in sorted({taken[depth] for taken in chosen}):
            mine = [taken for taken in chosen if taken[depth] == letter]
            for taken in mine:
                if len(taken) == depth + 1:
                    target, accepts = targets[taken]
                    yield MarkedTransition(
                        letter, self._letters.gpm(letter), target, accepts, depth
                    )
            more = [taken for taken in mine if len(taken) > depth + 1]
            if more:
                yield MarkedTransition(letter, self._letters.gpm(letter), None, False, depth)
                yield from self._marks(targets, more, depth + 1)


def automaton_of(machine: Machine, program: Program) -> DeterministicAutomaton:
    """The deterministic automaton of a program; the rest is the machine's."""
    waits, contiguous = expand(program), machine.strategy == "STRICT"
    if not any(waits.brackets):
        return DeterministicAutomaton(waits, contiguous)
    return ConjunctionAutomaton(waits, contiguous, letters_of(machine))


def letters_of(machine: Machine) -> Letters:
    """The letters of a query."""
    streams = sorted(machine.streams)
    return Letters(len(machine.gpms), tuple(map(streams.index, machine.streams)) or (0,))
