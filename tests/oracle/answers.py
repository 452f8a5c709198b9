"""From matches to answers (docs/meaning.md#window to docs/meaning.md#after-match)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeAlias

from rdflib.term import Identifier

from spaseq.lang import ast
from tests.oracle.model import Bindings, Event, Instant, Item, Match, Refused
from tests.oracle.patterns import nt

AFTER_ALL = 2**31 - 1
"""k of the close of a window: after all instants of that time."""

Position: TypeAlias = tuple[Instant, str]


@dataclass(frozen=True)
class Answer:
    """One answer, with the fields of `spaseq.algebra.answers.Answer`."""

    first: Instant
    end: Instant
    trace: tuple[Item, ...]
    bindings: tuple[tuple[str, str], ...]
    singles: tuple[tuple[str, str], ...]
    lists: tuple[tuple[str, tuple[str, ...]], ...]
    mu: Bindings = field(compare=False, repr=False)

    @property
    def last(self) -> Instant:
        return self.trace[-1].instant

    @property
    def positions(self) -> frozenset[Position]:
        return frozenset(item.position for item in self.trace)

    def order(self) -> tuple[object, ...]:
        """End, first instant, trace, single variables' bindings, group variables' lists."""
        trace = tuple((i.instant, i.gpm, i.stream) for i in self.trace)
        return self.end, self.first, trace, self.singles, self.lists


# --- window ---------------------------------------------------------------------------------------


class Window:
    """WITHIN, over the events of one partition."""

    def __init__(self, window: ast.TimeWindow | ast.CountWindow | None, events: list[Event]):
        if window is None:
            raise Refused("WITHIN is required")
        self._window = window
        self._events = events

    def holds(self, first: Instant, last: Instant) -> bool:
        """Whether a match from `first` to `last` fits into one window."""
        match self._window:
            case ast.TimeWindow(tumbling=True):
                return self._close(first) == self._close(last)
            case ast.TimeWindow(length=length):
                return last[0] - first[0] <= length.ms
            case ast.CountWindow(events=n):
                return sum(first <= e.instant <= last for e in self._events) <= n

    def closing(self, first: Instant) -> Instant | None:
        """The close of the window; under WITHIN n EVENTS the n-th event's instant, if it comes."""
        match self._window:
            case ast.CountWindow(events=n):
                inside = [e.instant for e in self._events if e.instant >= first]
                return inside[n - 1] if len(inside) >= n else None
            case _:
                return self.close(first)

    def close(self, first: Instant) -> Instant:
        """The close of the window of a match that begins at `first`."""
        return self._close(first), AFTER_ALL

    def _close(self, first: Instant) -> int:
        match self._window:
            case ast.TimeWindow(length=length, tumbling=True, origin=origin):
                start = 0 if origin is None else milliseconds(origin)
                return start + ((first[0] - start) // length.ms + 1) * length.ms
            case ast.TimeWindow(length=length):
                return first[0] + length.ms
            case ast.CountWindow():
                raise Refused("negation at an end under WITHIN n EVENTS")


def milliseconds(text: str) -> int:
    """An `xsd:dateTime` in milliseconds, truncated; without a zone it is UTC."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


# --- the match as an answer -----------------------------------------------------------------------


def answer(m: Match, end: Instant, groups: frozenset[str]) -> Answer:
    """The answer before projection, without unbound variables."""
    assert m.first is not None
    trace = sorted(m.trace, key=lambda i: (i.instant, i.gpm, i.stream))
    singles = {v: nt(term) for v, term in m.mu.values.items() if v not in groups}
    lists = {v: tuple(map(nt, terms)) for v in groups if (terms := m.mu.lists.get(v))}
    order = tuple(sorted(singles.items())), tuple(sorted(lists.items()))
    return Answer(m.first, end, tuple(trace), (), *order, m.mu)


def merged(answers: list[Answer]) -> list[Answer]:
    """The answers in order; of those with equal trace, bindings and lists, one: the earliest."""
    by_content: dict[object, Answer] = {}
    for a in sorted(answers, key=Answer.order):
        by_content.setdefault(a.order()[1:], a)
    return list(by_content.values())


# --- selection ------------------------------------------------------------------------------------


def select(strategy: str, answers: list[Answer], instants: list[Instant]) -> list[Answer]:
    """The answers that the strategy picks from the ordered answers of one partition."""
    picked: list[Answer] = []
    for _, same_end in groupby(answers, key=lambda a: a.end):
        picked.extend(_select(strategy, list(same_end), instants))
    return picked


def _select(strategy: str, answers: list[Answer], instants: list[Instant]) -> list[Answer]:
    sets = {a.positions for a in answers}
    match strategy:
        case "ALL":
            return answers
        case "NEXT":
            kept = _greatest(sets, min)
        case "LAST":
            kept = _greatest(sets, max)
        case "MAX":
            kept = {c for c in sets if not any(c < other for other in sets)}
        case "STRICT":
            kept = {c for c in sets if _consecutive(c, instants)}
        case _:
            raise NotImplementedError(strategy)
    return [a for a in answers if a.positions in kept]


def _greatest(
    sets: set[frozenset[Position]], pick: Callable[[frozenset[Position]], Position]
) -> set[frozenset[Position]]:
    """The greatest set: C1 < C2 if the picked position of their difference is in C2."""
    return {c for c in sets if not any(c != d and pick(c ^ d) in d for d in sets)}


def _consecutive(positions: frozenset[Position], instants: list[Instant]) -> bool:
    own = sorted({instant for instant, _ in positions})
    start = instants.index(own[0])
    return instants[start : start + len(own)] == own


# --- after match ----------------------------------------------------------------------------------


def after_match(skip: ast.Skip | None, answers: list[Answer]) -> list[Answer]:
    """Filter one partition's ordered answers: each kept answer forbids some later ones."""
    kept: list[Answer] = []
    for a in answers:
        if skip is None or not any(_forbids(skip, k, a) or _mutes(skip, k, a) for k in kept):
            kept.append(a)
    return kept


def muted(skip: ast.Skip, answers: list[Answer]) -> int:
    """How many of one partition's ordered answers are muted, and not forbidden."""
    kept, count = list[Answer](), 0
    for a in answers:
        if any(_forbids(skip, k, a) for k in kept):
            continue
        if any(_mutes(skip, k, a) for k in kept):
            count += 1
        else:
            kept.append(a)
    return count


def _mutes(skip: ast.Skip, kept: Answer, a: Answer) -> bool:
    return skip.mute is not None and a.end[0] - kept.end[0] < skip.mute.ms


def _forbids(skip: ast.Skip, kept: Answer, a: Answer) -> bool:
    match skip.kind:
        case "NO SKIP":
            return False
        case "CONSUME":
            return a.end > kept.end and a.first <= kept.last
        case "TO NEXT EVENT":
            return a.first == kept.first
        case "PAST LAST EVENT":
            return a.first <= kept.last
        case "TO FIRST" | "TO LAST":
            assert skip.gpm is not None
            own = [i.instant for i in kept.trace if i.gpm == skip.gpm.name]
            pick = min if skip.kind == "TO FIRST" else max
            return bool(own) and a.first < pick(own)


# --- projection -----------------------------------------------------------------------------------

Evaluate: TypeAlias = Callable[[ast.Expr, Bindings], Identifier | None]


def distinct(answers: list[Answer]) -> list[Answer]:
    """For each end, keep the first of the answers with equal projected bindings."""
    seen: dict[object, Answer] = {}
    for a in answers:
        seen.setdefault((a.end, frozenset(a.bindings)), a)
    return list(seen.values())
