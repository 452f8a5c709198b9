"""One event as Python strings, and what is joined over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra.triple_terms import OBJECT
from spaseq.gpm.graphs.term_parts import parts_of_event
from spaseq.rdf.terms.term import Triple

Solution: TypeAlias = dict[str, str]
"""N-Triples texts by variable, blank nodes of the pattern among them. Others are unbound."""


class EventGraph:
    """The distinct triples of one event, and the same by predicate.

    After `take_parts`, `by_predicate` also has the parts of the event's triple terms.
    """

    __slots__ = ("by_predicate", "triples")

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples = dict.fromkeys(triples)
        self.by_predicate: dict[str, list[Triple]] = {}
        for triple in self.triples:
            alike = self.by_predicate.get(triple[1])
            if alike is None:
                self.by_predicate[triple[1]] = [triple]
            else:
                alike.append(triple)

    def take_parts(self) -> None:
        """Take the parts of triple terms, if they are not there."""
        if OBJECT not in self.by_predicate:
            self.by_predicate |= parts_of_event(self.triples)


Operator: TypeAlias = Callable[[EventGraph], Sequence[Solution]]
"""The solutions of a pattern on an event; it raises TooManyPairs."""


class TooManyPairs(Exception):
    """An event needs columns, as it may have too many solutions."""


def check_pairs(left: int, right: int, most: int) -> None:
    """Raise TooManyPairs if a join of two operands with these numbers of solutions is too large."""
    if left * right > min(thresholds.current.event_pairs, most):
        raise TooManyPairs


def are_compatible(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Whether two solutions agree in the variables that both bind."""
    return all(left.get(name, text) == text for name, text in right.items())
