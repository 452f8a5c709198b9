"""Parts of a graph pattern that read no event, joined with single solutions as Python texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from spaseq.expr.env import DictEnv, Env
from spaseq.gpm.solutions.joins import join
from spaseq.gpm.solutions.solutions import Solutions

Solution = dict[str, str]
"""N-Triples texts by variable, blank nodes of the pattern among them."""

_REMEMBERED = 4096
"""Values for whose variables it is remembered what they are joined with."""

_MOST = 64
"""More partners than this are left to columns."""


class KnownPart:
    """What a part of a pattern adds to a solution of the event.

    It is joined as columns are, once for the same values of the variables that it shares with the
    event's triple patterns. `tests` are conditions that can be tested then.
    """

    def __init__(
        self, found: Solutions, bound: frozenset[str], tests: Iterable[Callable[[Env], bool]]
    ) -> None:
        """`found` are the part's solutions, `bound` the variables that have values before."""
        self._found, self._tests = found, tuple(tests)
        self._shared = tuple(v for v in found.columns if v in bound)
        self._added = tuple(v for v in found.columns if v not in bound)
        self._partners = lru_cache(_REMEMBERED)(self._joined)

    def extended(self, solutions: Iterable[Solution]) -> list[Solution] | None:
        """The solutions joined with those of the part, and tested; None if they are too many."""
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
    """Whether a `KnownPart` can be made of a part's solutions, and is worth it."""
    shares = any(v in bound for v in found.columns)
    certain = not any(found.may_be_unbound(v) for v in found.columns)
    return certain and (shares or found.size <= _MOST)
