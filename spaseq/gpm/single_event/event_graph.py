"""One event as Python strings, and joins of single solutions with parts that read no event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra.constants import OBJECT
from spaseq.expr.compile import Options, compile_term
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.leaves import TermOrNone
from spaseq.expr.place_tests import PlaceJoin, place_join
from spaseq.gpm.graphs.triple_source import parts_of_event
from spaseq.gpm.patterns.conjunction import FilterConjunct
from spaseq.gpm.solutions.joins import join
from spaseq.gpm.solutions.places import indexed
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.terms.term import Triple
from spaseq.records import record

Solution: TypeAlias = dict[str, str]
"""N-Triples texts by variable, blank nodes of the pattern among them. Others are unbound."""


class EventGraph:
    """The distinct triples of one event, and the same by predicate.

    After `take_parts`, `by_predicate` also has the parts of the event's triple terms. `given` are
    the values of variables for a pattern with `Given`.
    """

    __slots__ = ("by_predicate", "given", "triples")

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.given: Mapping[str, str] = {}
        self.triples = dict.fromkeys(triples)
        self.by_predicate: dict[str, list[Triple]] = {}
        for triple in self.triples:
            alike = self.by_predicate.get(triple[1])
            if alike is None:
                self.by_predicate[triple[1]] = [triple]
            else:
                alike.append(triple)

    def take_parts(self) -> None:
        """Add the parts of triple terms, if not done yet."""
        if OBJECT not in self.by_predicate:
            self.by_predicate |= parts_of_event(self.triples)


Operator: TypeAlias = Callable[[EventGraph], Sequence[Solution]]
"""The solutions of a pattern on an event; it raises NeedsColumns."""


class NeedsColumns(Exception):
    """An event needs columns: it may have too many solutions, or their order decides."""


def check_pairs(left: int, right: int, most: int) -> None:
    """Raise NeedsColumns if a join of two operands with these numbers of solutions is too large."""
    if left * right > min(thresholds.current.event_pairs, most):
        raise NeedsColumns


def are_compatible(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Whether two solutions agree in the variables that both bind."""
    return all(left.get(name, text) == text for name, text in right.items())


@record
class KnownPlaces:
    """The solutions `found` of a part that reads no event, indexed by their places."""

    found: Solutions
    join: PlaceJoin
    options: Options
    asking: TermOrNone
    tests: tuple[Callable[[Env], bool], ...] = ()

    def with_tests(self, tests: tuple[Callable[[Env], bool], ...]) -> KnownPlaces:
        """The same with conditions to test after the join."""
        return replace(self, tests=tests)

    def extended(self, solutions: Sequence[Solution], graph: EventGraph) -> list[Solution]:
        """The joined solutions that pass the tests.

        Raises:
            NeedsColumns: there are too many partners.
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
            raise NeedsColumns
        columns, texts = self.found.columns, self.found.lexicon
        return [{v: texts.text(int(column[row])) for v, column in columns.items()} for row in rows]


def known_places(
    solutions: Solutions,
    waiting: list[FilterConjunct],
    bound: Set[str],
    maybe: Set[str],
    options: Options,
) -> KnownPlaces | None:
    """The part as places, and its condition taken from `waiting`; None if no condition fits.

    `bound` are the variables that are bound before the join, `maybe` those that may be.
    """
    small = solutions.size < thresholds.current.narrowed_rows
    if (
        small
        or not maybe.isdisjoint(solutions.columns)
        or any(map(solutions.may_be_unbound, solutions.columns))
    ):
        return None
    for condition in waiting:
        join = place_join(condition.expr, bound, solutions.columns.keys())
        if join is not None and condition.early:
            waiting.remove(condition)
            return KnownPlaces(solutions, join, options, compile_term(join.asking, options))
    return None


class KnownPart:
    """A part of a pattern that reads no event, to join with solutions of the triple patterns.

    It is joined once for equal values of the variables that it shares with the triple patterns.
    The `tests` are conditions that can be tested after the join.
    """

    def __init__(
        self, solutions: Solutions, bound: frozenset[str], tests: Iterable[Callable[[Env], bool]]
    ) -> None:
        """`solutions` are the part's solutions, `bound` the variables bound before the join."""
        self._found, self._tests = solutions, tuple(tests)
        self._shared = tuple(v for v in solutions.columns if v in bound)
        self._added = tuple(v for v in solutions.columns if v not in bound)
        self._partners = lru_cache(thresholds.current.remembered_results)(self._joined)

    def extended(self, solutions: Iterable[Solution], graph: EventGraph) -> list[Solution]:
        """The joined solutions that pass the tests.

        Raises:
            NeedsColumns: there are too many partners.
        """
        joined = []
        for solution in solutions:
            partners = self._partners(tuple([solution[v] for v in self._shared]))
            if partners is None:
                raise NeedsColumns
            for partner in partners:
                further = {**solution, **partner}
                if all(test(DictEnv(further)) for test in self._tests):
                    joined.append(further)
        return joined

    def _joined(self, values: tuple[str, ...]) -> tuple[Solution, ...] | None:
        lexicon = self._found.lexicon
        codes = lexicon.find(values)
        if (codes < 0).any():
            return ()
        columns = {v: codes[i : i + 1] for i, v in enumerate(self._shared)}
        both = join(Solutions(1, None, columns, lexicon), self._found)
        if both.size > thresholds.current.known_pairs:
            return None
        texts = [lexicon.take(both.columns[v]) for v in self._added]
        rows = zip(*texts, strict=True) if texts else iter([()] * both.size)
        return tuple([dict(zip(self._added, row, strict=True)) for row in rows])


class KnownTable:
    """As `KnownPart`, for solutions that bind different variables, one by one."""

    def __init__(self, solutions: Solutions) -> None:
        """No variable of `solutions` may be unbound."""
        self._found = solutions
        self._parts: dict[tuple[str, ...], KnownPart] = {}  # by the variables that are bound

    def joined(self, solution: Solution, graph: EventGraph) -> list[Solution]:
        """The solutions joined with one; NeedsColumns if there are too many."""
        shared = self.shared(solution)
        part = self._parts.get(shared)
        if part is None:
            part = self._parts[shared] = KnownPart(self._found, frozenset(shared), ())
        return part.extended([solution], graph)

    def shared(self, solution: Solution) -> tuple[str, ...]:
        """The variables that a solution binds, too."""
        return tuple([v for v in self._found.columns if v in solution])


def known_table(solutions: Solutions | None) -> KnownTable | None:
    """The table of a part; None if a variable may be unbound in it."""
    if solutions is None or any(map(solutions.may_be_unbound, solutions.columns)):
        return None
    return KnownTable(solutions)


def can_be_joined(solutions: Solutions, bound: Set[str], unsure: Set[str]) -> bool:
    """Whether a `KnownPart` of these solutions is possible and pays off.

    `bound` are the variables that are bound before the join, `unsure` those that may be.
    """
    shares = any(v in bound for v in solutions.columns)
    certain = not any(v in unsure or solutions.may_be_unbound(v) for v in solutions.columns)
    return certain and (shares or solutions.size <= thresholds.current.known_pairs)
