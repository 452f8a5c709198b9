"""Whether comparing numbers as float64 is comparing the terms they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from spaseq.automaton.registers.compiled.edge_tests import EdgeTest
from spaseq.rdf.terms.number_kinds import DATE_TIME, DOUBLE, EXACT, FLOAT, OTHER, SHORT


def decides(operator: str, one: int, other: int) -> bool:
    """Whether float64 decides a comparison of any two bound terms of these kinds.

    Where there is no number, `value` is NaN, so that everything but `!=` is false.
    """
    if OTHER in (one, other):
        return one != other and operator != "!="
    if DATE_TIME in (one, other):
        return False
    if DOUBLE in (one, other):
        return True
    return {one, other} <= {EXACT, SHORT} or one == other == FLOAT


class Seen:
    """The kinds that each compared number has had so far."""

    __slots__ = ("_compared", "kinds", "numbers")

    def __init__(self, compared: Sequence[EdgeTest]) -> None:
        self._compared = compared
        self.numbers = tuple(dict.fromkeys(n for t in compared for n in (t.own, t.earlier)))
        self.kinds: dict[str, set[int]] = {n.name: set() for n in self.numbers}

    def add(self, kinds: Mapping[str, set[int]]) -> bool:
        """Take note of the kinds of some numbers, by name, of bound terms; whether float64 still
        decides all comparisons."""
        news = False
        for name, found in kinds.items():
            seen = self.kinds[name]
            news |= not found <= seen
            seen |= found
        return not news or all(map(self._decided, self._compared))

    def _decided(self, test: EdgeTest) -> bool:
        own, earlier = self.kinds[test.own.name], self.kinds[test.earlier.name]
        if OTHER in earlier and test.operator not in ("=", "!="):
            return False  # a run that has no number to exceed waits no more, and would be lost
        pairs = product(own, earlier)
        return all(decides(test.operator, one, other) for one, other in pairs)

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        return self.kinds

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, dict)
        self.kinds = state
