"""Conditions that a finished match must meet (docs/meaning.md#negation, #greedy and #until).

Matches are built without negation, greed and UNTIL. They carry these conditions instead, which only
take matches away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.oracle.model import Bindings, Instant, Map, Match
from tests.oracle.steps import Step


@dataclass(frozen=True)
class Own:
    """The view from inside a repetition: its group variables, and each GPM's last event time.

    `values` omits variables that the repetition did not bind.
    """

    names: frozenset[str]
    values: Map
    lists: Map
    previous: Map
    times: Map

    def over(self, mu: Bindings) -> Bindings:
        """μ as seen from inside the repetition."""
        return replace(
            mu,
            values=mu.values.minus(self.names).plus(self.values),
            lists=mu.lists.minus(self.names).plus(self.lists),
            previous=self.previous,
            times=mu.times.plus(self.times),
        )


def view(mu: Bindings, inside: frozenset[str]) -> Own:
    """The view from inside a repetition that ends with the bindings μ."""
    return Own(inside, mu.values.only(inside), mu.lists.only(inside), mu.previous, mu.times)


@dataclass(frozen=True)
class Absence:
    """A negated step: no match of it may lie between `low` and `high`.

    `low` and `high` are last(σ) and first(Y); None if the step is in first or last place.
    `own` holds the values of group variables in the repetitions around the step.
    """

    step: Step
    low: Instant | None
    high: Instant | None
    own: Own | None = None


@dataclass(frozen=True)
class Stop:
    """UNTIL: no match of `gpm` may begin after `low`, or at `since`, and up to `high`.

    `low` is last(σ). Where σ has no events it is None, and `since` is the first instant of the
    first repetition. `high` is the first instant of the last repetition. `own` is the view from
    inside the last repetition.
    """

    gpm: str
    low: Instant | None
    since: Instant
    high: Instant
    own: Own | None = None

    def between(self, first: Instant) -> bool:
        after = self.since <= first if self.low is None else self.low < first
        return after and first <= self.high


@dataclass(frozen=True)
class Further:
    """A repetition by which a loop could go on: its last instant, its bindings and its UNTILs."""

    last: Instant
    mu: Bindings
    stops: tuple[Stop, ...]

    def over(self, mu: Bindings) -> Bindings:
        """The bindings of the whole match, and over them those of this repetition."""
        return replace(
            mu,
            values=mu.values.plus(self.mu.values),
            lists=mu.lists.plus(self.mu.lists),
            times=mu.times.plus(self.mu.times),
        )


@dataclass(frozen=True)
class Exit:
    """A greedy loop that was left before its upper bound.

    None of the further repetitions may end at or before `high`, which is first(Y). `high` is None
    while no step follows the loop.
    """

    further: frozenset[Further]
    high: Instant | None = None


Condition: TypeAlias = Absence | Stop | Exit


def at_the_close(m: Match) -> bool:
    """Whether the window must close before the match is certain."""
    return any(isinstance(c, Absence | Exit) and c.high is None for c in m.conditions)


def first_after(low: Instant | None, m: Match) -> Instant:
    """The first instant of the part of a match that follows `low`."""
    return min(i.instant for i in m.trace if low is None or i.instant > low)


def seal(m: Match, known: int, inside: frozenset[str]) -> Match:
    """Give the conditions from this repetition its view of group variables and times."""
    if len(m.conditions) == known:
        return m
    own = view(m.mu, inside)
    fresh = tuple(_sealed(c, own) for c in m.conditions[known:])
    return replace(m, conditions=m.conditions[:known] + fresh)


def _sealed(condition: Condition, outer: Own) -> Condition:
    assert not isinstance(condition, Exit), "a greedy loop inside a quantified bracket"
    return replace(condition, own=_widened(outer, condition.own))


def _widened(outer: Own, inner: Own | None) -> Own:
    if inner is None:
        return outer
    return Own(
        outer.names | inner.names,
        outer.values.minus(inner.names).plus(inner.values),
        outer.lists.minus(inner.names).plus(inner.lists),
        outer.previous.plus(inner.previous),
        outer.times.plus(inner.times),
    )


def followed(left: Match, right: Match, negated: Iterable[Step]) -> Match:
    """`right` (`left` followed by one step Y), with the conditions on what is between the two.

    These are the negated steps between the two, and the end of a greedy loop just before Y.
    """
    if right.trace == left.trace:
        return right
    high = first_after(left.last, right)
    fresh = tuple(Absence(step, left.last, high) for step in negated)
    known = len(left.conditions)
    before = tuple(
        replace(c, high=high) if isinstance(c, Exit) and c.high is None else c
        for c in right.conditions[:known]
    )
    return replace(right, conditions=before + right.conditions[known:] + fresh)


def last_place(m: Match, negated: Iterable[Step]) -> tuple[Absence, ...]:
    return tuple(Absence(step, m.last, None) for step in negated)
