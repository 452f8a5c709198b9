"""Joining single solutions with the parts of a graph pattern that read no event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from spaseq.expr.env import DictEnv, Env
from spaseq.gpm.solutions.joins import join
from spaseq.gpm.solutions.solutions import Solutions

Solution = dict[str, str]
"""N-Triples texts by variable, blank nodes of the pattern among them."""

_REMEMBERED = 4096
"""Number of values in the cache of join partners."""

_MOST = 64
"""Most partners per solution; with more, the join is done in columns."""


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
        self._partners = lru_cache(_REMEMBERED)(self._joined)

    def extended(self, solutions: Iterable[Solution]) -> list[Solution] | None:
        """The joined solutions that pass the tests; None if there are too many partners."""
        found = []
        for solution in solutions:
            partners = self._partners(tuple([solution[v] for v in self._shared]))
            if partners is None:
                return None
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
        if both.size > _MOST:
            return None
        texts = [lexicon.take(both.columns[v]) for v in self._added]
        rows = zip(*texts, strict=True) if texts else iter([()] * both.size)
        return tuple([dict(zip(self._added, row, strict=True)) for row in rows])


def can_be_joined(found: Solutions, bound: frozenset[str]) -> bool:
    """Whether a `KnownPart` of these solutions is possible and pays off."""
    shares = any(v in bound for v in found.columns)
    certain = not any(found.may_be_unbound(v) for v in found.columns)
    return certain and (shares or found.size <= _MOST)
