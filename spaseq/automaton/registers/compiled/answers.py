"""Answers to asked tests: FILTERs between steps that Python evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.row_store import Interner
from spaseq.automaton.program.bound_variables import EVENT_TIME, last_time
from spaseq.automaton.registers.compiled.answer_grid import AnswerGrid
from spaseq.automaton.registers.compiled.columnar_tests import columnar_test
from spaseq.automaton.registers.compiled.edge_tests import AskedTest
from spaseq.automaton.registers.compiled.replayed_runs import ReplayedRuns
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.run.runs import Values
from spaseq.compiled.arrays import Arrays, Bytes, Int64s
from spaseq.expr.compile import Options, compile_filter
from spaseq.expr.env import Env, PlainEnv
from spaseq.records import record

_FEW, _MOST = 1 << 12, 1 << 18
"""Initial places of the table, while an instant needs no more."""

_NOTED = 1 << 12
"""Least number of tests that are answered at once."""

_MOST_OF_RUNS = 1 << 15
"""The same where tests depend on whole runs, which stay in memory as long as their answers."""


@record
class _Asked(PlainEnv):
    """The variables that FILTERs see of a solution and a run: terms, PREV terms, and times (ms) by
    name.
    """

    own: Mapping[str, str | None]
    before: Mapping[str, str | None]
    times: Mapping[str, int]

    def value(self, name: str) -> str | None:
        term = self.own.get(name)
        return self.before.get(name) if term is None else term

    def previous(self, name: str) -> str | None:
        return self.before.get(name)

    def time(self, gpm: str) -> int | None:
        return self.times.get(last_time(gpm))

    def now(self) -> int | None:
        return self.times.get(EVENT_TIME)


class AskedAnswers:
    """The table of answers.

    `terms` has the ids of the terms of each variable. `replayed` are the runs, if tests depend on
    whole runs.
    """

    def __init__(
        self,
        tables: RunTables,
        options: Options,
        terms: Mapping[str, Interner],
        replayed: ReplayedRuns | None = None,
    ) -> None:
        self._tests, self._terms, self._asks = tables.asked, terms, tables.program.asks
        self._columnar = [columnar_test(test, options) for test in tables.asked]
        self._filters = [
            [compile_filter(condition, options) for condition in test.conditions]
            for test in tables.asked
        ]
        self._replayed = replayed
        # By test on a whole run: the width of a row, and (column, variable, place in `of_own`).
        self._widths: dict[int, int] = {}
        self._columns: dict[int, list[tuple[int, str, int]]] = {}
        for number, test in enumerate(tables.asked):
            if test.taken is not None and replayed is not None:
                columns = replayed.columns(test.taken)
                self._widths[number] = len(columns)
                self._columns[number] = [
                    (columns.index(n.variable), n.variable, i)
                    for i, n in enumerate(test.of_own)
                    if n.by_term
                ]
        self._lacked = -1  # the row at which the table was last too small
        self._grid = AnswerGrid(tables.asked, terms)
        self._table = self._empty(_FEW if tables.asked else 1)

    @property
    def arrays(self) -> Arrays:
        """The fields of `AnswerArrays`."""
        return (*self._table, self._grid.begin, self._grid.cell)

    def _empty(self, places: int) -> tuple[Int64s, Bytes, Int64s, Int64s]:
        """An empty table, as the first fields of `AnswerArrays`."""
        if self._replayed is not None:
            self._replayed.forget()
        width = 1 + int(np.diff(self._asks).max(initial=0))
        return (
            np.empty((places, width), np.int64),
            np.zeros(places, np.uint8),
            np.empty(max(places // 2, _NOTED if self._tests else 0), np.int64),
            np.zeros(4, np.int64),
        )

    def begin(self) -> None:
        """Begin with the rows of a batch, whose terms have ids."""
        self._table[3][kernel.AHEAD] = 0
        if self._tests:
            self._grid.grow()

    def forget(self) -> None:
        """Drop all answers: ids of terms may be reused."""
        if self._tests:
            self._table = self._empty(len(self._table[1]))
            self._grid.forget()

    def forget_runs(self) -> None:
        """Drop all answers that depend on runs, whose numbers have changed."""
        if self._replayed is not None:
            self.forget()

    def answer(self, row: int, node: Int64s) -> None:
        """Answer the tests recorded at a row; `node` has the nodes of all runs."""
        key, answer, noted, size = self._table
        asked = noted[: size[kernel.NOTED]]
        places, cells = asked[asked >= 0], ~asked[asked < 0]
        if self._replayed is not None:
            self._replayed.learn(self._runs(key[places].tolist()), node)
        tests = key[places, 0]
        for test in {*tests.tolist()}:
            own = places[tests == test]
            answer[own] = self._answers(test, key[own, 1:])
        if len(cells) <= thresholds.current.few_rows:
            for test, cell, decisive in self._grid.each(cells.tolist()):
                self._grid.cell[cell] = kernel.YES if self._holds(test, decisive) else kernel.NO
        else:
            for test, own, numbers in self._grid.asked(cells):
                self._grid.cell[own] = self._answers(test, numbers)
        size[kernel.NOTED] = 0
        if size[kernel.LACKING]:
            self._make_room(row)

    def _answers(self, test: int, numbers: Int64s) -> Bytes:
        """[n] the answers to a test, given the numbers [n, numbers] that decide it."""
        columns = self._columnar[test]
        if columns is None or len(numbers) <= thresholds.current.few_rows:
            holds = np.array([self._holds(test, own) for own in numbers.tolist()], np.bool_)
        else:
            holds = columns.holds(numbers, self._term)
        return np.where(holds, kernel.YES, kernel.NO).astype(np.uint8)

    def _holds(self, number: int, numbers: list[int]) -> bool:
        """Whether the FILTERs of a test hold, given the numbers that decide it."""
        test, replayed = self._tests[number], self._replayed
        if test.taken is None or replayed is None:
            env: Env = _seen(test, numbers, self._term)
        else:
            run, values, time_ms = self._solution(number, numbers)
            if test.late:
                return replayed.late_hold(run, test.taken, values, time_ms)
            env = replayed.seen(run, test.taken, values, time_ms)
        return all(condition(env) for condition in self._filters[number])

    def _solution(self, number: int, numbers: list[int]) -> tuple[int, Values, int]:
        """A run, and the values and the time (ms) of the offered solution."""
        test = self._tests[number]
        values: list[str | None] = [None] * self._widths[number]
        for column, variable, i in self._columns[number]:
            if numbers[i] != kernel.UNSET:
                values[column] = self._terms[variable].key(numbers[i])[0]
        run = numbers[len(test.of_own)]
        time_ms = next((numbers[i] for i, n in enumerate(test.of_own) if not n.by_term), 0)
        return run, tuple(values), time_ms

    def _runs(self, noted: list[list[int]]) -> Iterator[int]:
        """The runs on which recorded tests depend."""
        for test, *numbers in noted:
            if self._tests[test].taken is not None:
                yield numbers[len(self._tests[test].of_own)]

    def _term(self, variable: str, number: int) -> str | None:
        return self._terms[variable].key(number)[0]

    def _make_room(self, row: int) -> None:
        """An empty table, if it is full; larger if it may still grow, or if one instant does not
        fit.
        """
        size, places = self._table[3], len(self._table[1])
        size[kernel.LACKING] = 0
        if 2 * size[kernel.ENTRIES] < places:
            return
        most = _MOST if self._replayed is None else min(_MOST, _MOST_OF_RUNS)
        if places < most or row == self._lacked:
            places *= 2
        self._lacked = row
        self._table = self._empty(places)


def _seen(test: AskedTest, numbers: list[int], term: Callable[[str, int], str | None]) -> _Asked:
    """The variables that the FILTERs of a test see, given the numbers that it depends on."""
    terms: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    times: dict[str, int] = {}
    for i, number in enumerate((*test.of_own, *test.of_run)):
        if numbers[i] == kernel.UNSET:
            continue
        if not number.by_term:
            times[number.variable] = numbers[i]
        elif i < len(test.of_own):
            terms[number.variable] = term(number.variable, numbers[i])
        else:
            before[number.variable] = term(number.variable, numbers[i])
    return _Asked(terms, before, times)
