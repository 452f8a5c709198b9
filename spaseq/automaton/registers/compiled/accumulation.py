"""Whether float64 registers accumulate SUM, MIN and MAX of repetitions as SPARQL does.

A sum of xsd:double is a sum in float64, in the same order. A sum of whole numbers is exact up to
2^53. Other sums round differently. MIN and MAX need numbers that float64 orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np

from spaseq.automaton.registers.compiled.edge_tests import Number
from spaseq.automaton.registers.compiled.exactness import decides
from spaseq.compiled.arrays import Float64s, Int8s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.terms.number_kinds import DOUBLE, EXACT

MOST = 2.0**53
"""Below it float64 represents all whole numbers; a sum that reaches it may be rounded."""

Totals: TypeAlias = Callable[[Number], Float64s]
"""The numbers that runs have accumulated."""


class Accumulation:
    """Watches the numbers that registers accumulate."""

    __slots__ = ("_kinds", "_largest", "numbers", "variables")

    def __init__(self, numbers: Sequence[Number]) -> None:
        self.numbers = tuple(numbers)
        self.variables = frozenset(n.variable for n in numbers)
        self._kinds: dict[str, set[int]] = {v: set() for v in self.variables}
        self._largest = dict.fromkeys(self.variables, 0.0)  # bounds of sums of whole numbers

    def holds(self, rows: SolutionBatch, totals: Totals) -> bool:
        """Whether float64 still suffices after the rows of a batch."""
        columns = {}
        for variable in self.variables:
            bound = rows.values[variable].codes >= 0
            number = rows.numbers[variable]
            columns[variable] = number.value[bound], number.kind[bound]
        return self._holds(columns, totals)

    def holds_of(self, terms: Iterable[tuple[str, float, int]], totals: Totals) -> bool:
        """Whether float64 still suffices after some terms: (variable, float64, kind) of each."""
        found: dict[str, tuple[list[float], list[int]]] = {}
        for variable, value, kind in terms:
            values, kinds = found.setdefault(variable, ([], []))
            values.append(value)
            kinds.append(kind)
        columns = {v: (np.array(a), np.array(b, np.int8)) for v, (a, b) in found.items()}
        return self._holds(columns, totals)

    def _holds(self, columns: dict[str, tuple[Float64s, Int8s]], totals: Totals) -> bool:
        for variable, (values, kinds) in columns.items():
            seen = self._kinds[variable]
            seen |= set(np.flatnonzero(np.bincount(kinds)).tolist())
            for number in self.numbers:
                if number.variable != variable:
                    continue
                if number.running == "SUM":
                    if not seen <= {EXACT, DOUBLE} or not self._adds_up(
                        number, values[kinds == EXACT], totals
                    ):
                        return False
                elif np.isnan(values).any() or not _ordered(seen):
                    return False
        return True

    def _adds_up(self, number: Number, values: Float64s, totals: Totals) -> bool:
        """Whether sums stay exact after some numbers that float64 represents exactly."""
        if (values != np.floor(values)).any():
            return False
        added, variable = float(np.abs(values).sum()), number.variable
        if self._largest[variable] + added >= MOST:
            reached = np.abs(totals(number))
            self._largest[variable] = float(reached.max(initial=0.0))
        self._largest[variable] += added
        return self._largest[variable] < MOST

    def snapshot(self) -> object:
        """The state for a snapshot."""
        return self._kinds, self._largest

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` returned."""
        assert isinstance(state, tuple)
        self._kinds, self._largest = state


def _ordered(kinds: set[int]) -> bool:
    """Whether float64 orders all numbers of these kinds."""
    return all(decides("<", one, other) for one, other in product(kinds, kinds))
