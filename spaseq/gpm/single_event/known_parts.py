"""Joining single solutions with the parts of a graph pattern that read no event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import lru_cache

from spaseq import thresholds
from spaseq.expr.env import DictEnv, Env
from spaseq.gpm.single_event.event_graph import EventGraph, Solution, TooManyPairs
from spaseq.gpm.solutions.joins import join
from spaseq.gpm.solutions.solutions import Solutions


class KnownPart:
    """A part of a pattern that reads no event, to join with solutions of the triple patterns.

    It is joined once for equal values of the variables that it shares with the triple patterns.
    The `tests` are conditions that can be tested after the join.
    """

    def __init__(
        self, found: Solutions, bound: frozenset[str], tests: Iterable[Callable[[Env], bool]]
    ) -> None:
        """`found` are the part's solutions, `bound` the variables bound before the join."""
        self._found, self._tests = found, tuple(tests)
        self._shared = tuple(v for v in found.columns if v in bound)
        self._added = tuple(v for v in found.columns if v not in bound)
        self._partners = lru_cache(thresholds.current.remembered_results)(self._joined)

    def extended(self, solutions: Iterable[Solution], graph: EventGraph) -> list[Solution]:
        """The joined solutions that pass the tests.

        Raises:
            TooManyPairs: there are too many partners.
        """
        found = []
        for solution in solutions:
            partners = self._partners(tuple([solution[v] for v in self._shared]))
            if partners is None:
                raise TooManyPairs
            for partner in partners:
                further = {**solution, **partner}
                if all(test(DictEnv(further)) for test in self._tests):
                    found.append(further)
        return found

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
    """The same for solutions that bind different variables, one by one."""

    def __init__(self, found: Solutions) -> None:
        """No variable of `found` may be unbound."""
        self._found = found
        self._parts: dict[tuple[str, ...], KnownPart] = {}  # by the variables that are bound

    def joined(self, solution: Solution, graph: EventGraph) -> list[Solution]:
        """The solutions joined with one; TooManyPairs if there are too many."""
        shared = self.shared(solution)
        part = self._parts.get(shared)
        if part is None:
            part = self._parts[shared] = KnownPart(self._found, frozenset(shared), ())
        return part.extended([solution], graph)

    def shared(self, solution: Solution) -> tuple[str, ...]:
        """The variables that a solution binds, too."""
        return tuple([v for v in self._found.columns if v in solution])


def known_table(found: Solutions | None) -> KnownTable | None:
    """The table of a part; None if a variable may be unbound in it."""
    if found is None or any(map(found.may_be_unbound, found.columns)):
        return None
    return KnownTable(found)


def can_be_joined(found: Solutions, bound: Set[str], unsure: Set[str]) -> bool:
    """Whether a `KnownPart` of these solutions is possible and pays off.

    `bound` are the variables that are bound before the join, `unsure` those that may be.
    """
    shares = any(v in bound for v in found.columns)
    certain = not any(v in unsure or found.may_be_unbound(v) for v in found.columns)
    return certain and (shares or found.size <= thresholds.current.known_pairs)
