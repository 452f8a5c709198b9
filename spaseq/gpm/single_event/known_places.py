"""Joining single solutions with a part that reads no event by their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from spaseq import thresholds
from spaseq.expr.compile import Options, compile_term
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.leaves import TermOrNone
from spaseq.expr.place_tests import PlaceJoin, place_join
from spaseq.gpm.patterns.conjunction import FilterConjunct
from spaseq.gpm.single_event.event_graph import EventGraph, Solution, TooManyPairs
from spaseq.gpm.solutions.places import indexed
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.records import record


@record
class KnownPlaces:
    """The solutions `found` of a part that reads no event, found by an index on their places."""

    found: Solutions
    join: PlaceJoin
    options: Options
    asking: TermOrNone
    tests: tuple[Callable[[Env], bool], ...] = ()

    def with_tests(self, tests: tuple[Callable[[Env], bool], ...]) -> KnownPlaces:
        """The same with conditions that can be tested after the join."""
        return replace(self, tests=tests)

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution]:
        """The joined solutions that pass the tests.

        Raises:
            TooManyPairs: there are too many partners.
        """
        joined = []
        for solution in solutions:
            for partner in self._partners(self.asking(DictEnv(solution))):
                further = {**solution, **partner}
                if all(test(DictEnv(further)) for test in self.tests):
                    joined.append(further)
        return joined

    def _partners(self, term: str | None) -> Sequence[Solution]:
        if term is None:
            return ()
        rows = indexed(self.found, self.join.indexed, self.options).rows(term, self.join)
        if len(rows) > thresholds.current.known_pairs:
            raise TooManyPairs
        columns, texts = self.found.columns, self.found.lexicon
        return [{v: texts.text(int(column[row])) for v, column in columns.items()} for row in rows]


def known_places(
    found: Solutions,
    waiting: list[FilterConjunct],
    bound: Set[str],
    maybe: Set[str],
    options: Options,
) -> KnownPlaces | None:
    """The part as places, and its condition taken from `waiting`; None if no condition fits.

    `bound` are the variables that are bound before the join, `maybe` those that may be.
    """
    small = found.size < thresholds.current.narrowed_rows
    if (
        small
        or not maybe.isdisjoint(found.columns)
        or any(map(found.may_be_unbound, found.columns))
    ):
        return None
    for condition in waiting:
        join = place_join(condition.expr, bound, found.columns.keys())
        if join is not None and condition.early:
            waiting.remove(condition)
            return KnownPlaces(found, join, options, compile_term(join.asking, options))
    return None
