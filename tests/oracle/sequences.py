"""[[X]](μ): the matches of a sequence, enumerated (docs/language.md#operators to #negation).

Matches are built without negation. Each carries absences, which decide at the end whether the match
is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from spaseq.lang import ast
from tests.oracle.model import (
    Absence,
    Bindings,
    Event,
    Instant,
    Item,
    Map,
    Match,
    Own,
    TooBig,
    nothing,
)
from tests.oracle.steps import Atom, Choice, Step

MOST_MATCHES = 2_000
MOST_PAIRS = 10_000

THEN = ast.Op(";")
Solutions: TypeAlias = Callable[[Event, str, Bindings], Iterable[Map]]


class Evaluation:
    """[[·]](μ) over the events of one partition.

    Args:
        events: the partition's events, in order of instant.
        streams: GPM name to the IRIs of its streams.
        solve: the solutions ν of a GPM on an event, given μ.
        groups: all group variables.
        timed: the GPMs that a TIMESTAMP refers to.
    """

    def __init__(
        self,
        events: list[Event],
        streams: Mapping[str, frozenset[str]],
        solve: Solutions,
        groups: frozenset[str],
        timed: frozenset[str],
    ) -> None:
        self.events = events
        self.instants = sorted({e.instant for e in events})
        self._streams = streams
        self._solve = solve
        self._groups = groups
        self._timed = timed
        self._pairs = 0
        self._known: dict[object, list[Match]] = {}

    # Graph pattern

    def pattern(self, name: str, mu: Bindings) -> list[Match]:
        matches: dict[Match, None] = {}
        for event in self.events:
            if event.stream in self._streams[name]:
                for solution in self._solve(event, name, mu):
                    trace = frozenset([Item(event.instant, name, event.stream, event.iri)])
                    extended = self._bind(mu, name, event, solution)
                    matches[Match(event.instant, event.instant, extended, trace)] = None
        return list(matches)

    def _bind(self, mu: Bindings, name: str, event: Event, solution: Map) -> Bindings:
        lists = {v: (term,) for v, term in solution.items() if v in self._groups}
        times = {name: event.instant[0]} if name in self._timed else {}
        if times and name in mu.times:
            times[name] = max(times[name], mu.times[name])
        return replace(
            mu,
            values=mu.values.plus(solution),
            lists=mu.lists.plus(lists),
            times=mu.times.plus(times),
        )

    # Operators

    def atom(self, atom: Atom, mu: Bindings, op: ast.Op) -> list[Match]:
        """[[X]](μ) of a whole step; `op` is the operator before it."""
        key = (id(atom) if not isinstance(atom, str) else atom, op, mu)
        if key not in self._known:
            self._known[key] = self._bounded(self._atom(atom, mu, op))
        return self._known[key]

    def _atom(self, atom: Atom, mu: Bindings, op: ast.Op) -> list[Match]:
        match atom:
            case str():
                return self.pattern(atom, mu)
            case list():
                return self.sequence(nothing(mu), atom, op)
            case Choice():
                return self.choice(atom, mu, op)

    def join(self, m: Match, op: ast.Op, atom: Atom) -> list[Match]:
        """The pairs of m with the matches of X that `op` allows."""
        found = self.atom(atom, m.mu, op)
        if m.first is None:
            return [pair(m, x) for x in found]
        assert m.last is not None
        candidates = [x for x in found if x.first > m.last]  # type: ignore[operator]
        if op.gap is not None:
            within = m.last[0] + op.gap.ms
            candidates = [x for x in candidates if x.first[0] <= within]  # type: ignore[index]
        match op.kind:
            case ":":
                chosen = candidates
            case ";":
                spans = {(y.first, y.last) for y in candidates}
                chosen = [x for x in candidates if not forestalled(x, spans)]
            case ",":
                following = min((i for i in self.instants if i > m.last), default=None)
                chosen = [x for x in candidates if x.first == following]
        self._pairs += len(chosen)
        if self._pairs > MOST_PAIRS:
            raise TooBig
        return [pair(m, x) for x in chosen]

    # Binary steps

    def choice(self, choice: Choice, mu: Bindings, op: ast.Op) -> list[Match]:
        if choice.kind == "|":
            found = [self.sequence(nothing(mu), operand, op) for operand in choice.operands]
            return unique(m for matches in found for m in matches)
        left = self.sequence(nothing(mu), choice.operands[0], op)
        for operand in choice.operands[1:]:
            left = unique(
                both(x, y)
                for x in left
                for y in self.sequence(nothing(x.mu), operand, op)
                if (simultaneous(x, y) if choice.kind == "&" else disjoint(x, y))
            )
            self._bounded(left)
        return left

    # Repetition

    def follow(self, m: Match, step: Step, op: ast.Op) -> list[Match]:
        """m followed by one step, repeated as often as its quantifier allows."""
        inside = step.inside
        answers = [m] if step.minimum == 0 else []
        runs = {(m, Map()): None}  # the group variables' values in the repetitions so far
        i = 0
        while runs and (step.maximum is None or i < step.maximum):
            i += 1
            runs = {
                run: None
                for left, lists in runs
                for run in self._once(left, lists, step, op, inside, first=i == 1)
            }
            if len(runs) > MOST_MATCHES:
                raise TooBig
            if i >= step.minimum:
                answers.extend(leave(right, lists, inside) for right, lists in runs)
        return unique(answers)

    def _once(
        self, left: Match, lists: Map, step: Step, op: ast.Op, inside: frozenset[str], first: bool
    ) -> Iterator[tuple[Match, Map]]:
        """One more repetition: the match, and all values of group variables up to its end."""
        previous = Map() if first else left.mu.values.only(step.group)
        start = replace(
            left,
            mu=replace(
                left.mu,
                values=left.mu.values.minus(inside),
                lists=left.mu.lists.minus(inside),
                previous=left.mu.previous.minus(inside).plus(previous),
            ),
        )
        if isinstance(step.atom, list):
            ends = self.sequence(start, step.atom, op)
        else:
            ends = self.join(start, op, step.atom)
        for end in ends:
            own = {v: lists.get(v, ()) + end.mu.lists.get(v, ()) for v in inside}
            if step.repeats:
                end = seal(end, len(left.absences), inside)
            yield end, Map(own)

    # Negation, and the sequence as a whole

    def sequence(self, m: Match, steps: list[Step], op: ast.Op) -> list[Match]:
        """((m op X1) op2 X2) ...; `op` joins m to the first step or to its repetitions."""
        matches = [m]
        waiting: list[Step] = []
        for step in steps:
            if step.negated:
                waiting.append(step)
                continue
            matches = self._bounded(
                unique(
                    with_absences(left, right, waiting)
                    for left in matches
                    for right in self.follow(left, step, step.op or op)
                )
            )
            waiting = []
        return [replace(x, absences=x.absences + last_place(x, waiting)) for x in matches]

    def stands(self, m: Match, fits: Callable[[Match, Match, Absence], bool]) -> bool:
        """Whether all absences of a finished match hold.

        `fits(x, m, absence)` is True if a match x of a step in first or last place fits into the
        window of m.
        """
        return not any(self._contradicted(absence, m, fits) for absence in m.absences)

    def _contradicted(
        self, absence: Absence, m: Match, fits: Callable[[Match, Match, Absence], bool]
    ) -> bool:
        mu = absence.own.over(m.mu) if absence.own else m.mu
        for x in self.atom(absence.step.atom, mu, absence.step.op or THEN):
            assert x.first is not None and x.last is not None
            after = absence.low is None or absence.low < x.first
            before = absence.high is None or x.last < absence.high
            inside = None not in (absence.low, absence.high) or fits(x, m, absence)
            if after and before and inside and self.stands(x, fits):
                return True
        return False

    def _bounded(self, matches: list[Match]) -> list[Match]:
        if len(matches) > MOST_MATCHES:
            raise TooBig
        return matches


def unique(matches: Iterable[Match]) -> list[Match]:
    return list(dict.fromkeys(matches))


def pair(m: Match, x: Match) -> Match:
    """(first(m), last(x), μ_x, trace(m) ∪ trace(x))."""
    first = x.first if m.first is None else m.first
    return Match(first, x.last, x.mu, m.trace | x.trace, m.absences + x.absences)


def both(x: Match, y: Match) -> Match:
    """The match of both, spanning the two; y was evaluated with x's bindings."""
    first = min(x.first, y.first)  # type: ignore[type-var]
    last = max(x.last, y.last)  # type: ignore[type-var]
    return Match(first, last, y.mu, x.trace | y.trace, x.absences + y.absences)


def forestalled(x: Match, spans: Iterable[tuple[Instant | None, Instant | None]]) -> bool:
    """Whether one of the candidates (first, last) begins earlier than x and ends no later."""
    return any(first < x.first and last <= x.last for first, last in spans)  # type: ignore[operator]


def simultaneous(x: Match, y: Match) -> bool:
    return len({item.instant[0] for item in x.trace | y.trace}) == 1


def disjoint(x: Match, y: Match) -> bool:
    return not x.positions & y.positions


def leave(m: Match, lists: Map, inside: frozenset[str]) -> Match:
    """The match after a repeated step: the value of a group variable is its last bound value."""
    last = {v: terms[-1] for v, terms in lists.items() if terms}
    mu = replace(
        m.mu,
        values=m.mu.values.minus(inside).plus(last),
        lists=m.mu.lists.plus(lists),
        previous=m.mu.previous.minus(inside),
    )
    return replace(m, mu=mu)


def seal(m: Match, known: int, inside: frozenset[str]) -> Match:
    """Give absences from this repetition its view of group variables and times."""
    if len(m.absences) == known:
        return m
    mu = m.mu
    own = Own(inside, mu.values.only(inside), mu.lists.only(inside), mu.previous, mu.times)
    fresh = tuple(replace(a, own=_widened(own, a.own)) for a in m.absences[known:])
    return replace(m, absences=m.absences[:known] + fresh)


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


def with_absences(left: Match, right: Match, waiting: list[Step]) -> Match:
    """`right` (`left` followed by one step Y) with the negated steps between the two."""
    if not waiting:
        return right
    added = [i.instant for i in right.trace if left.last is None or i.instant > left.last]
    fresh = tuple(Absence(step, left.last, min(added)) for step in waiting)
    return replace(right, absences=right.absences + fresh)


def last_place(m: Match, waiting: list[Step]) -> tuple[Absence, ...]:
    return tuple(Absence(step, m.last, None) for step in waiting)
