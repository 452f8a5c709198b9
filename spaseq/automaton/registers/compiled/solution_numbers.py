"""The numbers of solutions that tests compare or runs keep, and the kinds of their terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.row_store import Interner
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.registers.compiled.edge_tests import Number
from spaseq.automaton.registers.compiled.formulas import Formula
from spaseq.automaton.registers.compiled.seen_kinds import SeenKinds
from spaseq.automaton.registers.compiled.shared_ids import JoinedIds
from spaseq.automaton.run.event_rows import GpmRow, known_double
from spaseq.compiled.arrays import Float64s, Int32s, Int64s
from spaseq.expr.compile import Options
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.terms.number_kinds import KINDS, OTHER

_Double: TypeAlias = Callable[[str | None], tuple[float, int]]
"""Gives the (float64, kind) of a term, or of None where a variable is unbound."""

_RowNumber: TypeAlias = tuple[int, str, int | None, _Double]
"""How a number of a single solution is computed from its terms.

It has the index in `RunTables.numbers`, or -1; its name if it is compared by value, or ""; the
column, None for a constant; and what makes the number.
"""


class SolutionNumbers:
    """Computes the `numbers` of solutions, given what makes ids of terms.

    Args:
        numbers: in the order of the kernel's rows.
        seen: the kinds of the numbers that are compared by value.
        terms: by `Number.ids`, for the numbers by term.
        joined: the ids of `joined` numbers.
        gpms: whose solutions they are.
        expressions: the options of formulas.
    """

    def __init__(
        self,
        numbers: Sequence[Number],
        seen: SeenKinds,
        terms: Mapping[str, Interner],
        joined: JoinedIds,
        gpms: Sequence[GpmColumns],
        expressions: Options,
    ) -> None:
        self._numbers, self._seen, self._terms, self._ids = numbers, seen, terms, joined
        self._formulas = {n: Formula(n, expressions) for n in numbers if n.formula is not None}
        self._measures = [(i, n) for i, n in enumerate(numbers) if n.is_measure]
        self._joined = [(i, numbers.index(n.alone)) for i, n in enumerate(numbers) if n.is_joined]
        self._times = [(i, n.offset_ms) for i, n in enumerate(numbers) if n.offset_ms is not None]
        self._row_numbers = [*map(self._row_numbers_of, gpms), []]  # BARE last

    def with_formulas(self, rows: SolutionBatch) -> SolutionBatch:
        """The rows, with the results of formulas among their numbers, by name."""
        if not self._formulas:
            return rows
        numbers = dict(rows.numbers)
        for number, formula in self._formulas.items():
            variable = number.variable
            numbers[number.name] = (
                formula.column(rows.values[variable], rows.numbers[variable])
                if variable
                else formula.constant(len(rows))
            )
        return replace(rows, numbers=numbers)

    def kinds(self, rows: SolutionBatch) -> dict[str, set[int]]:
        """The kinds of the compared numbers, where their variables are bound."""
        by_name: dict[str, set[int]] = {}
        for number in self._seen.numbers:
            of_rows, variable = rows.numbers[number.name].kind, number.variable
            kinds = {kind for kind in KINDS if (of_rows == kind).any()}
            if variable and OTHER in kinds:  # of unbound variables, or of terms without a number
                bound = rows.values[variable].bound
                kinds = {kind for kind in kinds if ((of_rows == kind) & bound).any()}
            by_name[number.name] = kinds
        return by_name

    def of_rows(self, rows: SolutionBatch) -> Float64s:
        """[numbers, n] of the solutions of n rows, but for what `measure` fills in."""
        numbers = np.empty((len(self._numbers), len(rows)))
        for i, number in enumerate(self._numbers):
            if not (number.is_measure or number.is_joined):
                numbers[i] = self._column(number, rows)
        return numbers

    def _column(self, number: Number, rows: SolutionBatch) -> Float64s | Int64s:
        if number.offset_ms is not None:
            return rows.time + number.offset_ms
        if number.by_term:
            column = rows.values[number.variable]
            ids = self._terms[number.ids].numbers([column], len(rows))
            return np.where(column.bound, ids, np.nan)
        return rows.numbers[number.name].value

    def of_events(self, rows: Sequence[GpmRow], new_kinds: dict[str, set[int]]) -> Float64s:
        """The same of solutions that came one by one; adds kinds that are new, by name."""
        numbers, seen = np.empty((len(self._numbers), len(rows))), self._seen.kinds
        numbers.fill(np.nan)
        for j, (gpm, (*_, values)) in enumerate(rows):
            for i, name, column, double in self._row_numbers[gpm]:
                text = None if column is None else values[column]
                value, kind = double(text)
                if i >= 0:
                    numbers[i, j] = value
                if name and kind not in seen[name] and (text is not None or column is None):
                    new_kinds.setdefault(name, set()).add(kind)
        for i, offset_ms in self._times:
            numbers[i] = [row[1] + offset_ms for _, row in rows]
        return numbers

    def measure(self, numbers: Float64s, rows: OrderedRows) -> None:
        """Fill in the numbers that the place of a solution in its stream gives, or its slot."""
        for i, number in self._measures:
            numbers[i] = _measured(number, rows)
        for i, alone in self._joined:
            numbers[i] = self._ids.of_rows(rows.slot, numbers[alone])

    def _row_numbers_of(self, gpm: GpmColumns) -> list[_RowNumber]:
        columns: dict[str, int | None] = {v: i for i, v in enumerate(gpm.variables)}
        columns[""] = None  # a constant has no variable
        places = {n: i for i, n in enumerate(self._numbers) if not (n.is_measure or n.is_joined)}
        return [
            (
                places.get(n, -1),
                n.name if n in self._seen.numbers else "",
                columns[n.variable],
                self._double(n),
            )
            for n in dict.fromkeys([*places, *self._seen.numbers])
            if n.variable in columns
        ]

    def _double(self, number: Number) -> _Double:
        if number.by_term:
            terms = self._terms[number.ids]
            return lambda text: (np.nan if text is None else terms.number((text,)), OTHER)
        return known_double if number.formula is None else self._formulas[number].of


def _measured(number: Number, rows: OrderedRows) -> Float64s | Int64s | Int32s | float:
    match number.measure:
        case "time":
            return rows.time + number.plus
        case "instant":
            return rows.ordinal + number.plus
        case "slot":
            return rows.slot
        case "begin":
            return rows.number + rows.first_of_instant
        case "constant":
            return number.plus
    return np.nan
