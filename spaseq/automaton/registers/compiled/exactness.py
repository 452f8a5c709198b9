"""Whether float64 decides a comparison as its two terms do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from spaseq.automaton.registers.compiled.edge_tests import EdgeTest, EdgeTests
from spaseq.rdf.terms.number_kinds import DATE_TIME, DOUBLE, EXACT, FLOAT, OTHER, SHORT


def decides(operator: str, left: int, right: int) -> bool:
    """Whether float64 decides a comparison of any two bound terms of these kinds.

    The number of a term without one is NaN, so that every comparison but `!=` is false.
    """
    if OTHER in (left, right):
        return left != right and operator != "!="
    if DATE_TIME in (left, right):
        return False
    if DOUBLE in (left, right):
        return True
    return {left, right} <= {EXACT, SHORT} or left == right == FLOAT


class SeenKinds:
    """The kinds of terms that each compared number has had so far."""

    __slots__ = ("_compared", "kinds", "numbers")

    def __init__(self, compared: EdgeTests) -> None:
        self._compared = compared
        self.numbers = tuple(dict.fromkeys(n for t in compared for n in (t.left, t.right)))
        self.kinds: dict[str, set[int]] = {n.name: set() for n in self.numbers}

    def add(self, kinds: Mapping[str, set[int]]) -> bool:
        """Add kinds of bound terms by the name of a number; whether float64 still decides all."""
        is_new = False
        for name, added in kinds.items():
            seen = self.kinds[name]
            is_new |= not added <= seen
            seen |= added
        return not is_new or all(map(self._is_decided, self._compared))

    def _is_decided(self, test: EdgeTest) -> bool:
        left, right = self.kinds[test.left.name], self.kinds[test.right.name]
        if OTHER in right and test.operator not in ("=", "!="):
            # A run without a number has no threshold, so it no longer waits: it would be lost.
            return False
        return all(decides(test.operator, one, other) for one, other in product(left, right))

    def snapshot(self) -> object:
        """The kinds seen, for a snapshot."""
        return self.kinds

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` returned."""
        assert isinstance(state, dict)
        self.kinds = state
