"""Answers to asked tests: FILTERs between steps that Python evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.row_store import Interner
from spaseq.automaton.program.bound_variables import EVENT_TIME, last_time
from spaseq.automaton.registers.compiled.edge_tests import AskedTest
from spaseq.automaton.registers.compiled.replayed_runs import ReplayedRuns
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.run.runs import Values
from spaseq.compiled.arrays import Arrays, Int32s, Int64s
from spaseq.expr.columns import TermRows, filter_rows
from spaseq.expr.compile import Options, compile_filter
from spaseq.expr.env import Env, PlainEnv
from spaseq.lang import ast
from spaseq.lang.variables import rewritten
from spaseq.records import record

_FEW, _MOST = 1 << 12, 1 << 18
"""Initial places of the table, while an instant needs no more."""

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


@record
class _ColumnarTest:
    """The FILTERs of a test as one FILTER over columns, with a variable in place of each PREV.

    `names` are the variables of the numbers that decide the test: `own` of the solution, then those
    of the run. A variable has the run's term where the solution leaves it unbound.
    """

    condition: ast.Expr
    names: tuple[str, ...]
    own: int

    def rows(self, numbers: Int64s, term: Callable[[str, int], str | None]) -> TermRows:
        """Rows [n] of terms, given the numbers [n, numbers that decide the test] of terms."""
        code: dict[str, int] = {}
        columns: dict[str, Int32s] = {}
        for i, name in enumerate(self.names):
            used, place = np.unique(numbers[:, i], return_inverse=True)
            texts = [None if n == kernel.UNSET else term(name, n) for n in used.tolist()]
            codes = [-1 if t is None else code.setdefault(t, len(code)) for t in texts]
            column = np.array(codes, np.int32)[place]
            if i < self.own:
                columns[name] = column
                continue
            columns[_PREVIOUS + name] = column
            own = columns.get(name, column)
            columns[name] = np.where(own < 0, column, own)
        return TermRows(columns, [*code], len(numbers))


_PREVIOUS = "_:previous "  # no variable of a query has such a name


def _columnar_test(test: AskedTest) -> _ColumnarTest | None:
    """A test as one FILTER over columns of terms; None if it depends on times or on a whole run."""
    numbers = *test.of_own, *test.of_run
    if test.taken is not None or not all(number.by_term for number in numbers):
        return None

    def change(node: ast.Node) -> ast.Node | None:
        return ast.Var(_PREVIOUS + node.var.name) if isinstance(node, ast.Prev) else None

    condition = rewritten(ast.And(test.conditions), change)
    return _ColumnarTest(condition, tuple(n.variable for n in numbers), len(test.of_own))


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
        self._options, self._columnar = options, [*map(_columnar_test, tables.asked)]
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
        self.arrays = self._empty(_FEW if tables.asked else 1)

    def _empty(self, places: int) -> Arrays:
        """An empty table, as the fields of `AnswerArrays`."""
        if self._replayed is not None:
            self._replayed.forget()
        width = 1 + int(np.diff(self._asks).max(initial=0))
        return (
            np.empty((places, width), np.int64),
            np.zeros(places, np.uint8),
            np.empty(places // 2, np.int64),
            np.zeros(4, np.int64),
        )

    def begin(self) -> None:
        """Begin with the rows of a batch."""
        self.arrays[3][kernel.AHEAD] = 0

    def forget(self) -> None:
        """Drop all answers: ids of terms may be reused."""
        if self._tests:
            self.arrays = self._empty(len(self.arrays[1]))

    def forget_runs(self) -> None:
        """Drop all answers that depend on runs, whose numbers have changed."""
        if self._replayed is not None:
            self.forget()

    def answer(self, row: int, node: Int64s) -> None:
        """Answer the tests recorded at a row; `node` has the nodes of all runs."""
        key, answer, noted, size = self.arrays
        asked = noted[: size[kernel.NOTED]]
        if self._replayed is not None:
            self._replayed.learn(self._runs(key[asked].tolist()), node)
        rest = asked
        if len(asked) > thresholds.current.few_rows:
            rest = self._in_columns(asked)
        for place, (test, *decisive) in zip(rest.tolist(), key[rest].tolist(), strict=True):
            answer[place] = kernel.YES if self._holds(test, decisive) else kernel.NO
        size[kernel.NOTED] = 0
        if size[kernel.LACKING]:
            self._make_room(row)

    def _in_columns(self, asked: Int64s) -> Int64s:
        """Answer tests at some places that depend on terms only; the other places."""
        key, answer, *_ = self.arrays
        left, tests = list[Int64s](), key[asked, 0]
        for test in np.unique(tests).tolist():
            places, columns = asked[tests == test], self._columnar[test]
            if columns is None:
                left.append(places)
                continue
            rows = columns.rows(key[places, 1:], self._term)
            holds = filter_rows(columns.condition, rows, self._options)
            answer[places] = np.where(holds, kernel.YES, kernel.NO)
        return np.concatenate([np.empty(0, np.int64), *left])

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
        """An empty table; larger if it may still grow, or if one instant does not fit."""
        places = len(self.arrays[1])
        most = _MOST if self._replayed is None else min(_MOST, _MOST_OF_RUNS)
        if places < most or row == self._lacked:
            places *= 2
        self._lacked = row
        self.arrays = self._empty(places)


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
