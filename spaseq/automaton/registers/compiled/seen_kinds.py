"""Whether float64 compares numbers and accumulates SUM, MIN and MAX as SPARQL does.

A sum of xsd:double is a sum in float64, in the same order. A sum of whole numbers is exact up to
2^53. Other sums round differently. MIN and MAX need numbers that float64 orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np

from spaseq.automaton.registers.compiled.edge_tests import EdgeTest, EdgeTests, Number
from spaseq.compiled.arrays import Float64s, Int8s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.terms.number_kinds import DATE_TIME, DOUBLE, EXACT, FLOAT, OTHER, SHORT
from spaseq.stateful import Stateful


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


MOST = 2.0**53
"""Below it float64 represents all whole numbers; a sum that reaches it may be rounded."""

Totals: TypeAlias = Callable[[Number], Float64s]
"""The numbers that runs have accumulated."""


class SeenKinds(Stateful):
    """The kinds of terms that each number has had so far.

    Attributes:
        numbers: the numbers that are compared.
        kinds: their kinds, by name.
        accumulated: the numbers that registers accumulate.
        variables: their variables.
    """

    STATE = ("kinds", "_added", "_largest")

    def __init__(self, compared: EdgeTests, accumulated: Sequence[Number]) -> None:
        self._compared, self.accumulated = compared, tuple(accumulated)
        self.numbers = tuple(dict.fromkeys(n for t in compared for n in (t.left, t.right)))
        self.kinds: dict[str, set[int]] = {n.name: set() for n in self.numbers}
        self.variables = frozenset(n.variable for n in accumulated)
        self._added: dict[str, set[int]] = {v: set() for v in self.variables}  # kinds
        self._largest = dict.fromkeys(self.variables, 0.0)  # bounds of sums of whole numbers

    # --- compared numbers -------------------------------------------------------------------------

    def has(self, kinds: Mapping[str, set[int]]) -> bool:
        """Whether all kinds of bound terms, by the name of a number, have come before."""
        return all(added <= self.kinds[name] for name, added in kinds.items())

    def add(self, kinds: Mapping[str, set[int]]) -> bool:
        """Add kinds of bound terms, by the name of a number.

        Returns whether float64 still decides all comparisons.
        """
        for name, added in kinds.items():
            self.kinds[name] |= added
        return all(map(self._is_decided, self._compared))

    def variables_without_numbers(self, kinds: Mapping[str, set[int]]) -> frozenset[str]:
        """The compared variables of which a term, of these kinds, is no number."""
        names = {name for name, added in kinds.items() if {OTHER, DATE_TIME} & added}
        return frozenset(n.variable for n in self.numbers if n.variable and n.name in names)

    def _is_decided(self, test: EdgeTest) -> bool:
        left, right = self.kinds[test.left.name], self.kinds[test.right.name]
        if OTHER in right and test.operator not in ("=", "!="):
            # A run without a number has no threshold, so it no longer waits: it would be lost.
            return False
        return all(decides(test.operator, one, other) for one, other in product(left, right))

    # --- accumulated numbers ----------------------------------------------------------------------

    def holds(self, rows: SolutionBatch, totals: Totals) -> bool:
        """Whether float64 still suffices to accumulate after the rows of a batch."""
        columns = {}
        for variable in self.variables:
            bound = rows.values[variable].codes >= 0
            number = rows.numbers[variable]
            columns[variable] = number.value[bound], number.kind[bound]
        return self._holds(columns, totals)

    def holds_of(self, terms: Iterable[tuple[str, float, int]], totals: Totals) -> bool:
        """Whether float64 still suffices after some terms: (variable, float64, kind) of each."""
        of_variables: dict[str, tuple[list[float], list[int]]] = {}
        for variable, value, kind in terms:
            values, kinds = of_variables.setdefault(variable, ([], []))
            values.append(value)
            kinds.append(kind)
        columns = {v: (np.array(a), np.array(b, np.int8)) for v, (a, b) in of_variables.items()}
        return self._holds(columns, totals)

    def _holds(self, columns: dict[str, tuple[Float64s, Int8s]], totals: Totals) -> bool:
        for variable, (values, kinds) in columns.items():
            seen = self._added[variable]
            seen |= set(np.flatnonzero(np.bincount(kinds)).tolist())
            for number in self.accumulated:
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


def _ordered(kinds: set[int]) -> bool:
    """Whether float64 orders all numbers of these kinds."""
    return all(decides("<", one, other) for one, other in product(kinds, kinds))
