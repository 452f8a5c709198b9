"""Scopes of variables: which are group variables, and what an occurrence sees of them.

LANGUAGE section 3, "Group variables": a variable is a group variable if all the GPMs that bind it
lie in one and the same step repeated more than once; the innermost such step counts. Negated GPMs
and mere uses do not count; inside a negated step, its own repetitions make group variables of what
only it binds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spaseq.lang.sequence import BinaryStep, Chain, Negation, Occurrence, Repeat, occurrences, steps


@dataclass(frozen=True, slots=True)
class View:
    """How one place of the query sees a group variable.

    `current`: the place lies in the variable's own repeated step: this repetition's value, and
    PREV. `segment`: the place lies in a repeated step (`repeat`) around the variable's own: what
    this repetition of `repeat` has bound so far. `whole`: everything bound. `outer`: the place lies
    in a negated step and the variable is the surrounding match's.
    """

    kind: Literal["current", "segment", "whole", "outer"]
    repeat: int | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Scopes of one query. `owner[v]` is the repeated step of group variable v."""

    occurrences: tuple[Occurrence, ...]
    enclosing: Mapping[int, tuple[int, ...]]  # repeated step -> steps around it, itself last
    owner: Mapping[str, int]
    negation_owner: Mapping[int, Mapping[str, int]]  # negation -> its own group variables
    negation_inside: Mapping[int, int | None]  # negation -> the one around it
    singles: frozenset[str]

    def owned_within(self, repeat: int) -> tuple[str, ...]:
        """The group variables of a repeated step and of the steps inside it, by name."""
        owners = [*self.owner.items()]
        for own in self.negation_owner.values():
            owners.extend(own.items())
        return tuple(sorted({v for v, r in owners if repeat in self.enclosing[r]}))

    def negations(self, innermost: int | None) -> Iterator[int]:
        """A negated step and those around it."""
        while innermost is not None:
            yield innermost
            innermost = self.negation_inside[innermost]

    def view(self, repeats: tuple[int, ...], owner: int, outside: int = 0) -> View:
        """What a place inside the repeated steps `repeats` sees of a variable of step `owner`.

        The outermost `outside` steps do not count: for what a negated step binds itself, those
        around the negated step.
        """
        if owner in repeats:
            return View("current", owner)
        around = self.enclosing[owner][outside:]
        shared = _shared([around, repeats[outside:]])
        return View("segment", shared[-1]) if shared else View("whole")


def scopes(
    chain: Chain, binds: Mapping[str, Iterable[str]], partition: Iterable[str] = ()
) -> Scope:
    """Scopes of a normalised sequence; `binds` gives for each GPM the variables it may bind."""
    uses = tuple(occurrences(chain))
    fixed = frozenset(partition)
    positive = [u for u in uses if u.negation is None]
    owner = _owners(positive, binds, fixed)
    bound = {v for u in positive for v in binds.get(u.gpm, ())}
    negated: dict[int, dict[str, int]] = {}
    inside: dict[int, int | None] = {}
    around: dict[int | None, frozenset[str]] = {None: fixed | bound}
    for step in steps(chain):
        if isinstance(step, Negation):
            own_uses = [u for u in uses if u.negation == step.id]
            own = _owners(own_uses, binds, around[step.inside])
            negated[step.id] = {v: r for v, r in own.items() if r not in step.repeats}
            mine = {v for u in own_uses for v in binds.get(u.gpm, ())}
            around[step.id] = around[step.inside] | mine
            inside[step.id] = step.inside
    singles = frozenset(bound - set(owner))
    return Scope(uses, _enclosing(chain), owner, negated, inside, singles)


def _owners(
    uses: Iterable[Occurrence], binds: Mapping[str, Iterable[str]], fixed: frozenset[str]
) -> dict[str, int]:
    chains: dict[str, list[tuple[int, ...]]] = {}
    for use in uses:
        for variable in binds.get(use.gpm, ()):
            chains.setdefault(variable, []).append(use.repeats)
    owners = {}
    for variable, repeats in chains.items():
        shared = _shared(repeats)
        if shared and variable not in fixed:
            owners[variable] = shared[-1]
    return owners


def _shared(chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The longest common beginning."""
    least, most = min(chains), max(chains)
    length = next((i for i, n in enumerate(least) if n != most[i]), len(least))
    return least[:length]


def _enclosing(chain: Chain) -> dict[int, tuple[int, ...]]:
    around: dict[int, tuple[int, ...]] = {}

    def walk(chain: Chain, outer: tuple[int, ...]) -> None:
        for link in chain.links:
            step = link.step
            match step:
                case Repeat():
                    inner = (*outer, step.id) if step.is_scope else outer
                    if step.is_scope:
                        around[step.id] = inner
                    walk(step.body, inner)
                case Negation():
                    walk(step.body, outer)
                case BinaryStep():
                    for operand in step.operands:
                        walk(operand, outer)

    walk(chain, ())
    return around
