"""Answers of a query as values: the match and its trace (docs/meaning.md#matches). The extent of a
window event replaces its graph's IRI.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from spaseq.rdf.terms.term import Triple

Instant: TypeAlias = tuple[int, int]
"""(tau in milliseconds, k); ordered lexicographically."""

_SHIFT = 2**63
"""Added to times, so that no time is negative."""

AFTER_ALL = 2**31 - 1
"""k of the close of a window: after all instants of that time."""


def extent_text(begin: int, events: int) -> str:
    """The begin of a window's range (ms) and its number of events, as a text that no IRI is.

    >>> extent_text(1000, 2), extent_of("1000 2"), extent_of("http://e/graph")
    ('1000 2', (1000, 2), None)
    """
    return f"{begin} {events}"


def extent_of(event: str | None) -> tuple[int, int] | None:
    """The begin (ms) and the number of events, if `event` is not the IRI of an event's graph."""
    if event is None or " " not in event:
        return None
    begin, events = event.split(" ")
    return int(begin), int(events)


class TraceItem(NamedTuple):
    """One event of a match. `stream` is the stream's IRI, `event` its graph's IRI or None.

    Items compare in the order of a trace (docs/meaning.md#matches). No two items of one answer
    are equal in all fields before `event`.
    """

    time: int
    k: int
    gpm: str
    stream: str
    event: str | None


class Answer(NamedTuple):
    """One answer as a value.

    `bindings` are the projected variables that are bound, in order of projection, as N-Triples
    texts. `first` is the first event's instant. `end` is the last event's instant, or the close of
    the window with k = `AFTER_ALL`. `singles` are the match's single variables with their values,
    by name, and `lists` its group variables with their values in order, by name. Both leave out
    variables that no part of the query uses and that the trace determines.

    An answer of a CONSTRUCT query has no bindings, but a graph event: its triples in `graph`, each
    once, its IRI in `event`, and the time of `end`.
    """

    first: Instant
    end: Instant
    trace: tuple[TraceItem, ...]
    bindings: tuple[tuple[str, str], ...]
    singles: tuple[tuple[str, str], ...] = ()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()
    graph: tuple[Triple, ...] | None = None
    event: str | None = None

    @property
    def last(self) -> Instant:
        """The last event's instant."""
        item = self.trace[-1]
        return item.time, item.k

    def order_key(self) -> str:
        """A text whose code-point order is that of answers (docs/meaning.md#order-of-answers).

        End, first instant, trace by (instant, GPM name, stream), single variables' bindings,
        group variables' lists.
        """
        rows = [f"{time + _SHIFT:016x}{k:08x}" for time, k in (self.end, self.first)]
        rows += [
            f"{time + _SHIFT:016x}{k:08x}{gpm}\1{stream}\1"
            for time, k, gpm, stream, _ in self.trace
        ]
        rows.append("\0")
        rows += [f"{v}\1{x}\1" for v, x in self.singles]
        rows.append("\0")
        for v, xs in self.lists:
            rows.append(f"{v}\1")
            rows += [f"{x}\1" for x in xs]
            rows.append("\0")
        return "".join(rows)


class PartialAnswer(NamedTuple):
    """A partial match as a value: the fields of an answer, and its progress.

    `answer.end` is the last event's instant. `reached` names the GPM of that event. `waiting` are
    the names that the next step begins with, sorted. `closed` is the instant at which the window
    closed, or None if the streams ended before, which happens only under WITHIN n EVENTS.
    """

    answer: Answer
    reached: str
    waiting: tuple[str, ...]
    closed: Instant | None

    def order_key(self) -> str:
        """A text whose code-point order is that of partial matches: by closing, then as answers."""
        time, k = (_SHIFT - 1, AFTER_ALL) if self.closed is None else self.closed
        return f"{time + _SHIFT:016x}{k:08x}{self.answer.order_key()}"
