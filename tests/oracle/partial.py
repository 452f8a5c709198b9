"""The partial matches of a query over a streamset, by definition.

A level is the first k steps of the sequence as a query of its own, but that a variable is single or
a group variable as in the whole query. Every level is evaluated by
brute force, and then its matches are compared with all others. A match ends at its last instant,
so a level may also have a negated step or a greedy loop in last place under WITHIN n EVENTS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rdflib import Graph

from spaseq.lang import ast
from tests.oracle.answers import Answer, Window
from tests.oracle.model import Instant, Item, Streamset
from tests.oracle.oracle import QueryRun
from tests.oracle.patterns import terms_as_written
from tests.oracle.steps import Atom, Step, flat, parts


@dataclass(frozen=True)
class Partial:
    """A partial match: what an answer has, and how far it came.

    `reached` is the GPM of the last event, `waiting` the GPMs with which the next step begins.
    `closing` is the close of the window; None if the streams end before it is known.
    """

    answer: Answer
    reached: str
    waiting: tuple[str, ...]
    closing: Instant | None

    def order(self) -> tuple[object, ...]:
        """In order of closing, those that never close last, and then as answers."""
        return self.closing is None, self.closing or (0, 0), self.answer.order()


def partials(
    query: ast.Query, streams: Streamset, kb: Mapping[str, Graph] | None = None
) -> list[Partial]:
    """The partial matches of a SELECT query, in order.

    Raises:
        Refused: the language refuses the query, or the first steps of it as a query.
        TooBig: too many matches for brute force.
    """
    return partials_of(query, lambda upto: QueryRun(query, streams, kb or {}, upto=upto))


def partials_of(query: ast.Query, run: Callable[[int], QueryRun]) -> list[Partial]:
    """The same, where `run` makes the run of the first steps of a number."""
    with terms_as_written():
        steps = flat(query.sequence)
        ends = [i + 1 for i, step in enumerate(steps) if not step.negated]
        runs = [run(end) for end in ends]
        waiting = [begins_with(steps[end - 1].atom) for end in ends]
        found = []
        for *_, (key, events) in zip(*(run.partitions() for run in runs), strict=True):
            window = Window(query.window, events)
            levels = [run.matched(key, events) for run in runs]
            for k, a in undominated(levels):
                shown = runs[k].project(a)
                closing = window.closing(a.first)
                found.append(Partial(shown, a.trace[-1].gpm, waiting[k + 1], closing))
        return sorted(found, key=Partial.order)


def undominated(levels: list[list[Answer]]) -> list[tuple[int, Answer]]:
    """The partial matches of one partition, each with the index of its level.

    No match of a higher level has all of its trace, and no partial match has more than its trace,
    and agrees with it.
    """
    left = [
        (k, a)
        for k, matches in enumerate(levels[:-1])
        for a in matches
        if not any(
            items(b) >= items(a) and agrees(a, b) for higher in levels[k + 1 :] for b in higher
        )
    ]
    kept: list[tuple[int, Answer]] = []
    for k, a in sorted(left, key=lambda pair: -len(items(pair[1]))):  # long traces first
        if not any(items(b) > items(a) and agrees(a, b) for _, b in kept):
            kept.append((k, a))
    return kept


def items(a: Answer) -> frozenset[Item]:
    return frozenset(a.trace)


def agrees(a: Answer, b: Answer) -> bool:
    """Whether `b` has the single bindings of `a`."""
    return set(a.singles) <= set(b.singles)


def begins_with(atom: Atom) -> tuple[str, ...]:
    """The names of the GPMs with which a step can begin, sorted."""
    return tuple(sorted(set(_first_names(atom))))


def _first_names(atom: Atom) -> Iterator[str]:
    if isinstance(atom, str):
        yield atom
    for steps in parts(atom):
        yield from _first_of(steps)


def _first_of(steps: list[Step]) -> Iterator[str]:
    for step in steps:
        if step.negated:
            continue
        yield from _first_names(step.atom)
        if step.minimum > 0:
            return
