"""[[X]](μ): the matches of a sequence, enumerated (docs/meaning.md#operators to #negation).

Matches are built without negation, UNTIL and greed. Each carries conditions, which decide at the
end whether the match is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from spaseq.lang import ast
from tests.oracle.conditions import (
    Absence,
    Condition,
    Exit,
    Further,
    Own,
    Stop,
    first_after,
    followed,
    last_place,
    seal,
    view,
)
from tests.oracle.model import EMPTY, Bindings, Event, Instant, Item, Map, Match, TooBig, nothing
from tests.oracle.steps import Atom, Choice, Step, alternatives

MOST_MATCHES = 500
MOST_PAIRS = 5_000

THEN = ast.Op(";")
Solutions: TypeAlias = Callable[[Event, str, Bindings], Iterable[Map]]
Holds: TypeAlias = Callable[[Instant, Instant], bool]


@dataclass(frozen=True)
class Loop:
    """A loop so far: the match with σ before it, and what its repetitions bound.

    `lists` has all values of the group variables. `first` and `latest` are the first instants of
    the first and of the last repetition, and `own` is the view from inside the last one.
    """

    match: Match
    lists: Map = EMPTY
    first: Instant | None = None
    latest: Instant | None = None
    own: Own | None = None


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
        lists = {
            v: (*mu.lists.get(v, ()), term) for v, term in solution.items() if v in self._groups
        }
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

    def join(self, m: Match, op: ast.Op, atom: Atom, before: ast.Op) -> list[Match]:
        """The pairs of m with the matches of X that `op` allows; `before` stands before X."""
        found = self.atom(atom, m.mu, before)
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

    def follow(self, m: Match, step: Step, op: ast.Op, enter: ast.Op, sigma: bool) -> list[Match]:
        """m followed by one step, repeated as often as its quantifier allows.

        `op` is the operator before the step. `enter` joins the first repetition: another operator
        if the step begins a repetition of a bracket with its own operator. `sigma` says whether
        something before the step in its bracket has events.
        """
        low = m.last if sigma else None
        answers = []
        runs = [Loop(m)]
        i = 0
        while runs:
            bounded = i == step.maximum
            joined = enter if i == 0 else step.own or op
            following = []
            for run in runs:
                further = [] if bounded else list(self._once(run, step, op, joined))
                if i >= step.minimum:
                    more = until(run, step, low) + greedy(run, step, low, bounded, further)
                    answers.append(leave(run, step.inside, more))
                following.extend(further)
            runs = list(dict.fromkeys(following))
            if len(runs) > MOST_MATCHES:
                raise TooBig
            i += 1
        return unique(answers)

    def _once(self, run: Loop, step: Step, op: ast.Op, joined: ast.Op) -> Iterator[Loop]:
        """The loop with one more repetition, which `joined` joins to it."""
        left, inside = run.match, step.inside
        previous = Map() if run.first is None else left.mu.values.only(step.group)
        start = replace(
            left,
            mu=replace(
                left.mu,
                values=left.mu.values.minus(inside),
                lists=left.mu.lists.minus(inside).plus(run.lists.only(step.group)),
                previous=left.mu.previous.minus(inside).plus(previous),
            ),
        )
        if isinstance(step.atom, list):
            ends = self.sequence(start, step.atom, op, joined)
        else:
            ends = self.join(start, joined, step.atom, op)
        for end in ends:
            found = end.mu.lists.only(inside)  # for the step's own variables, of all repetitions
            inner = inside - step.group
            lists = {v: run.lists.get(v, ()) + found.get(v, ()) for v in inner}
            latest = first_after(left.last, end)
            own = None
            if step.repeats:
                own = view(end.mu, inside)
                end = seal(end, len(left.conditions), inside)
            yield Loop(end, found.plus(lists), run.first or latest, latest, own)

    # Negation, and the sequence as a whole

    def sequence(
        self, m: Match, steps: list[Step], op: ast.Op, enter: ast.Op | None = None
    ) -> list[Match]:
        """((m op X1) op2 X2) ...; `op` stands before X1, and `enter`, if given, joins X1 to m."""
        return unique(
            match
            for alternative in alternatives(steps)
            for match in self._sequence(m, alternative, op, enter or op)
        )

    def _sequence(self, m: Match, steps: list[Step], op: ast.Op, enter: ast.Op) -> list[Match]:
        matches = [m]
        waiting: list[Step] = []
        for step in steps:
            if step.negated:
                waiting.append(step)
                continue
            before = step.op or op
            matches = self._bounded(
                unique(
                    followed(left, right, waiting)
                    for left in matches
                    for right in self.follow(
                        left, step, before, step.op or enter, left.trace != m.trace
                    )
                )
            )
            waiting = []
        return [replace(x, conditions=x.conditions + last_place(x, waiting)) for x in matches]

    def stands(self, m: Match, holds: Holds) -> bool:
        """Whether a finished match meets its conditions; `holds` is the window's."""
        return not any(self._broken(c, m, holds) for c in m.conditions)

    def _broken(self, condition: Condition, m: Match, holds: Holds) -> bool:
        match condition:
            case Absence():
                return self._present(condition, m, holds)
            case Stop():
                return self._stopped(condition, m.mu)
            case Exit(further, high):
                assert m.first is not None
                return any(
                    (x.last <= high if high is not None else holds(m.first, x.last))
                    and not any(self._stopped(stop, x.over(m.mu)) for stop in x.stops)
                    for x in further
                )

    def _present(self, absence: Absence, m: Match, holds: Holds) -> bool:
        """Whether a match of a negated step lies where none may lie."""
        mu = absence.own.over(m.mu) if absence.own else m.mu
        for x in self.atom(absence.step.atom, mu, absence.step.op or THEN):
            assert x.first and x.last and m.first and m.last
            after = holds(x.first, m.last) if absence.low is None else absence.low < x.first
            before = holds(m.first, x.last) if absence.high is None else x.last < absence.high
            if absence.low is None:
                assert absence.high is not None
            if after and before and self.stands(x, holds):
                return True
        return False

    def _stopped(self, stop: Stop, mu: Bindings) -> bool:
        """Whether a match of UNTIL's GPM forbids the last repetition."""
        seen = stop.own.over(mu) if stop.own else mu
        return any(
            n.first is not None and stop.between(n.first) for n in self.pattern(stop.gpm, seen)
        )

    def _bounded(self, matches: list[Match]) -> list[Match]:
        if len(matches) > MOST_MATCHES:
            raise TooBig
        return matches


def unique(matches: Iterable[Match]) -> list[Match]:
    return list(dict.fromkeys(matches))


def pair(m: Match, x: Match) -> Match:
    """(first(m), last(x), μ_x, trace(m) ∪ trace(x))."""
    first = x.first if m.first is None else m.first
    return Match(first, x.last, x.mu, m.trace | x.trace, m.conditions + x.conditions)


def both(x: Match, y: Match) -> Match:
    """The match of both, spanning the two; y was evaluated with x's bindings."""
    first = min(x.first, y.first)  # type: ignore[type-var]
    last = max(x.last, y.last)  # type: ignore[type-var]
    return Match(first, last, y.mu, x.trace | y.trace, x.conditions + y.conditions)


def forestalled(x: Match, spans: Iterable[tuple[Instant | None, Instant | None]]) -> bool:
    """Whether one of the candidates (first, last) begins earlier than x and ends no later."""
    return any(first < x.first and last <= x.last for first, last in spans)  # type: ignore[operator]


def simultaneous(x: Match, y: Match) -> bool:
    return len({item.instant[0] for item in x.trace | y.trace}) == 1


def disjoint(x: Match, y: Match) -> bool:
    return not x.positions & y.positions


def until(run: Loop, step: Step, low: Instant | None) -> tuple[Stop, ...]:
    """The condition of UNTIL on a loop that is left; none if it has no repetitions."""
    if step.until is None or run.first is None or run.latest is None:
        return ()
    return (Stop(step.until, low, run.first, run.latest, run.own),)


def greedy(
    run: Loop, step: Step, low: Instant | None, bounded: bool, further: list[Loop]
) -> tuple[Exit, ...]:
    """The condition on a greedy loop that is left below its upper bound."""
    if not step.greedy or bounded:
        return ()
    known = len(run.match.conditions)
    found = set()
    for x in further:
        assert x.match.last is not None
        inner = tuple(c for c in x.match.conditions[known:] if isinstance(c, Stop))
        found.add(Further(x.match.last, x.match.mu, inner + until(x, step, low)))
    return (Exit(frozenset(found)),)


def leave(run: Loop, inside: frozenset[str], more: tuple[Condition, ...]) -> Match:
    """The match after a repeated step: the value of a group variable is its last bound value."""
    m = run.match
    last = {v: terms[-1] for v, terms in run.lists.items() if terms}
    mu = replace(
        m.mu,
        values=m.mu.values.minus(inside).plus(last),
        lists=m.mu.lists.plus(run.lists),
        previous=m.mu.previous.minus(inside),
    )
    return replace(m, mu=mu, conditions=m.conditions + more)
