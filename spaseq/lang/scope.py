"""Scopes of variables: the group variables, and which of their values an occurrence sees.

docs/meaning.md#group-variables: a variable is a group variable if all GPMs that bind it lie
in one step that repeats more than once; the innermost such step owns it. GPMs in negated steps and
uses in FILTERs do not count. Variables that only a negated step binds belong to it: repeated steps
inside it make them group variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Negation,
    Occurrence,
    Repeat,
    inner_chains,
    occurrences,
    steps,
)
from spaseq.records import record


def seen_before(
    chain: Chain, scope: Scope, binds: Mapping[str, frozenset[str]]
) -> dict[str, set[str]]:
    """For each GPM, the variables that may be bound before one of its uses.

    A negated step sees the variables of the whole match. `binds[g]` holds the variables that GPM g
    may bind.
    """
    positive = [o.gpm for o in scope.occurrences if o.negation is None]
    whole = {v for gpm in positive for v in binds.get(gpm, ())}
    before = _SeenBefore(scope, binds, whole, {})
    before.walk(chain, set())
    return before.seen


@record
class _SeenBefore:
    """`whole` are the variables of the whole match; `seen` is the result of `seen_before`."""

    scope: Scope
    binds: Mapping[str, frozenset[str]]
    whole: set[str]
    seen: dict[str, set[str]]

    def walk(self, chain: Chain, before: set[str]) -> set[str]:
        """The variables that may be bound after a chain."""
        for link in chain.links:
            before = before | self.after(link.step, before)
        return before

    def after(self, step: ChainStep, before: set[str]) -> set[str]:
        """The variables that may be bound after a step."""
        match step:
            case GpmStep(use):
                self.seen.setdefault(use.gpm, set()).update(before)
                return before | self.binds.get(use.gpm, frozenset())
            case Repeat(body=body, until=until):
                if until is not None:
                    self.walk(until.body, before | self.whole)
                if not step.is_scope:
                    return self.walk(body, before)
                # A repetition starts with its group variables unbound, and after earlier ones.
                owned = set(self.scope.owned_within(step.id))
                return self.walk(body, (before | _bound(body, self.binds)) - owned)
            case Negation(body=body):
                self.walk(body, before | self.whole)
                return before
            case BinaryStep("|", operands):
                return set().union(*(self.walk(o, before) for o in operands))
            case BinaryStep(_, operands):
                for operand in operands:
                    before = self.walk(operand, before)
                return before


def _bound(chain: Chain, binds: Mapping[str, frozenset[str]]) -> set[str]:
    """The variables that the steps of a chain may bind, negated ones left out."""
    variables = set[str]()
    for link in chain.links:
        if isinstance(link.step, GpmStep):
            variables |= binds.get(link.step.occurrence.gpm, frozenset())
        elif not isinstance(link.step, Negation):
            variables.update(*(_bound(inner, binds) for inner in inner_chains(link.step)))
    return variables


@record
class View:
    """The values of a group variable that one place of the query sees.

    `current`: the place lies in the step that owns the variable. It sees the value of this
    repetition, and PREV.
    `segment`: the place lies in a repeated step (`repeat`) around the owner. It sees the values
    that this repetition of `repeat` has bound so far.
    `whole`: the place sees all values.
    `outer`: the place lies in a negated step, and the surrounding match binds the variable.
    """

    kind: Literal["current", "segment", "whole", "outer"]
    repeat: int | None = None


@record
class Scope:
    """The scopes of one query. `owner[v]` is the repeated step that owns group variable v."""

    occurrences: tuple[Occurrence, ...]
    enclosing: Mapping[int, tuple[int, ...]]  # repeated step -> steps around it, itself last
    owner: Mapping[str, int]
    negation_owner: Mapping[int, Mapping[str, int]]  # negated step -> its own group variables
    negation_inside: Mapping[int, int | None]  # negated step -> the one around it
    singles: frozenset[str]

    def owned_within(self, repeat: int) -> tuple[str, ...]:
        """The group variables of a repeated step and of the steps inside it, sorted."""
        owners = [*self.owner.items()]
        for negation_owners in self.negation_owner.values():
            owners.extend(negation_owners.items())
        return tuple(sorted({v for v, r in owners if repeat in self.enclosing[r]}))

    def negations(self, innermost: int | None) -> Iterator[int]:
        """A negated step and the negated steps around it, innermost first."""
        while innermost is not None:
            yield innermost
            innermost = self.negation_inside[innermost]

    def view(self, repeats: tuple[int, ...], owner: int, outside: int = 0) -> View:
        """The view that a place inside the repeated steps `repeats` has of a variable of `owner`.

        The outermost `outside` steps do not count. For the own variables of a negated step, these
        are the repeated steps around the negated step.
        """
        if owner in repeats:
            return View("current", owner)
        around = self.enclosing[owner][outside:]
        shared = _shared([around, repeats[outside:]])
        return View("segment", shared[-1]) if shared else View("whole")


def scopes(
    chain: Chain, binds: Mapping[str, Iterable[str]], partition: Iterable[str] = ()
) -> Scope:
    """The scopes of a normalised sequence; `binds[g]` holds the variables that GPM g may bind."""
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
            owners = _owners(own_uses, binds, around[step.inside])
            negated[step.id] = {v: r for v, r in owners.items() if r not in step.repeats}
            own_variables = {v for u in own_uses for v in binds.get(u.gpm, ())}
            around[step.id] = around[step.inside] | own_variables
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
    """The longest common prefix."""
    least, most = min(chains), max(chains)
    length = next((i for i, n in enumerate(least) if n != most[i]), len(least))
    return least[:length]


def _enclosing(chain: Chain, outer: tuple[int, ...] = ()) -> dict[int, tuple[int, ...]]:
    """The repeated steps of a chain inside the steps `outer`, each with all around it."""
    around: dict[int, tuple[int, ...]] = {}
    for link in chain.links:
        step, all_around = link.step, outer
        if isinstance(step, Repeat) and step.is_scope:
            all_around = around[step.id] = (*outer, step.id)
        for inner in inner_chains(step):
            around |= _enclosing(inner, all_around)
    return around
