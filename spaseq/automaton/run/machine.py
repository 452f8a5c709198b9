"""A program prepared to run in this process: FILTERs compiled, columns looked up.

Each process builds it from the plan; it is not pickled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, fields
from itertools import compress
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.automaton.program.nfa import (
    Automaton,
    BracketLabel,
    Edge,
    GpmColumns,
    Program,
    State,
    TakeLabel,
)
from spaseq.automaton.program.selection import Strategy
from spaseq.automaton.program.window import Window
from spaseq.automaton.run.runs import Row, Values
from spaseq.automaton.run.waiting_limit import WaitingLimit
from spaseq.compiled.arrays import Bytes, Int32s
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.env import Env
from spaseq.expr.uses import timestamp_uses
from spaseq.lang import ast
from spaseq.records import record


@dataclass(slots=True)
class TakenCounts:
    """Counts by GPM since the start of the process, over all partitions; not in snapshots."""

    taken: Counter[int] = field(default_factory=Counter, compare=False)

    def taken_so_far(self, wanted: object | None) -> Counter[int] | None:
        """A copy of `taken`; None for a selection of partitions, as it has no partitions."""
        return Counter(self.taken) if wanted is None else None

    def take(self, gpm: Int32s, taken: Bytes) -> None:
        """Count the solutions of a batch for which `taken` [n] is 1, given the GPM of each [n]."""
        if len(taken) <= thresholds.current.few_rows:
            for number in compress(gpm.tolist(), taken.tolist()):
                self.taken[number] += 1
            return
        is_taken = taken == 1
        for number in range(int(gpm.max(initial=-1)) + 1):
            count = np.count_nonzero(is_taken & (gpm == number))
            if count:
                self.taken[number] += int(count)

    def take_nodes(self, nodes: Iterable[tuple[int, Row, int]]) -> None:
        """Count the solutions in the nodes that an instant has added to a trace, each once."""
        for gpm, _ in {(gpm, id(row)) for gpm, row, _ in nodes}:
            self.taken[gpm] += 1


CorrelatedSolver: TypeAlias = Callable[[int, str, tuple[tuple[str, str], ...]], Sequence[Values]]
"""Evaluates a GPM (its index) on an event (as the EVENT column holds it), values substituted."""


@record
class CorrelatedTake:
    """The evaluation of a correlated GPM when its event is taken."""

    gpm: int
    event: int  # column
    inputs: tuple[tuple[str, Callable[[Env], str | None]], ...]
    solve: CorrelatedSolver

    def solutions(self, values: Values, env: Env) -> Iterator[Values]:
        """The solutions for a row; `env` has the earlier bindings only."""
        event = values[self.event]
        assert event is not None
        known = ((name, term(env)) for name, term in self.inputs)
        for solution in self.solve(
            self.gpm, event, tuple((n, t) for n, t in known if t is not None)
        ):
            agree = zip(values, solution, strict=True)
            if all(a is None or i == self.event or a == b for i, (a, b) in enumerate(agree)):
                yield solution


@record
class CompiledTake:
    """The TAKE of one edge: how it reads a row, and the conditions on the row."""

    columns: dict[str, int]
    singles: tuple[tuple[int, str], ...]  # (column, variable) joined over the whole match
    groups: tuple[tuple[int, str], ...]  # (column, variable) joined within a repetition
    key: tuple[int, ...]  # columns of the edge's key
    conditions: tuple[Callable[[Env], bool], ...]
    moved: tuple[Callable[[Env], bool], ...]
    late: tuple[tuple[int, Callable[[Env], bool]], ...]  # with the occurrences of their steps
    correlation: CorrelatedTake | None = None


@dataclass(slots=True)
class Machine:
    """The program, its window, the settings of its evaluator, and tables of its edges.

    The tables are made when one of them is first read: compiled evaluators need none.
    """

    program: Program
    window: Window
    gpms: Sequence[GpmColumns]
    names: Sequence[str]  # GPM names
    checks_strict: bool = False  # the evaluator checks each match for SELECT STRICT
    expressions: Options = Options()  # noqa: RUF009 - frozen
    evaluator: str = "registers"
    partition: tuple[str, ...] = ()  # variables
    key: tuple[str, ...] = ()  # variables by which the evaluator splits a partition
    strategy: Strategy = "ALL"  # the selection that the evaluator applies itself
    streams: Sequence[str] = ()  # IRIs, for the positions that a selection compares
    limit: int | None = None  # matches of one instant, if the evaluator applies the limit
    consumes: bool = False  # the evaluator itself uses up the events of AFTER MATCH
    counts: TakenCounts = field(default_factory=TakenCounts)
    waiting: WaitingLimit | None = None  # on the partial matches
    carried: str | None = None  # variable: the first solution has a family's member, no partition
    solve: CorrelatedSolver | None = None  # needed where a GPM is correlated
    takes: dict[int, CompiledTake] = field(init=False)
    edges_of: dict[int, dict[int, Edge]] = field(init=False)  # GPM -> edges that take it, by number
    gpms_of: dict[int, frozenset[int]] = field(init=False)  # automaton -> the GPMs that it takes
    target: dict[int, State] = field(init=False)  # edge -> the state it leads to
    timed: frozenset[str] = field(init=False)  # GPMs whose TIMESTAMP some FILTER uses
    keeps_paths: bool = field(init=False)  # late FILTERs look at them
    statics: dict[int, object] = field(init=False)  # objects a snapshot refers to by number
    numbers: dict[int, int] = field(init=False)  # id(object) -> its number

    def __getattr__(self, name: str) -> object:
        """Make the tables, for a field that has no value yet."""
        if name not in _TABLES:
            raise AttributeError(name)
        self._make_tables()
        return getattr(self, name)

    def _make_tables(self) -> None:
        self.takes, self.target, self.statics, self.numbers = {}, {}, {}, {}
        solved = [g.correlation.parameters for g in self.gpms if g.correlation is not None]
        asked = [c for g in self.gpms for c in g.conditions]
        asked += [expr for parameters in solved for _, expr in parameters]
        self.timed = frozenset().union(*map(timestamp_uses, asked))
        compiled = [self._filters(g.conditions) for g in self.gpms]
        self.edges_of, self.gpms_of = {}, {}
        known: dict[object, CompiledTake] = {}
        for automaton in _automata(self.program):
            self.gpms_of[automaton.id] = automaton.gpms
            self.register(automaton)
            for state in automaton.states:
                self.register(state)
                for edge in state.edges:
                    self.register(edge)
                    self.target[edge.id] = automaton.states[edge.target]
                    if isinstance(edge.label, TakeLabel):
                        self.edges_of.setdefault(edge.label.gpm, {})[edge.id] = edge
                        self.takes[edge.id] = self._take(edge.label, compiled, known)
        self.keeps_paths = any(take.late for take in self.takes.values())

    def _filters(self, conditions: Sequence[ast.Expr]) -> tuple[Callable[[Env], bool], ...]:
        return tuple(compile_filter(c, self.expressions) for c in conditions)

    def register(self, static: object) -> None:
        """Let snapshots refer to an object by number instead of containing it."""
        number = len(self.statics)
        self.statics[number] = static
        self.numbers[id(static)] = number

    def _take(
        self,
        label: TakeLabel,
        compiled: list[tuple[Callable[[Env], bool], ...]],
        known: dict[object, CompiledTake],
    ) -> CompiledTake:
        """The TAKE of a label; an unrolled repetition has many equal ones."""
        grouped = frozenset([v for v, view in label.views.items() if view.kind == "current"])
        key = label.gpm, label.key, grouped, label.conditions, label.moved, label.late
        if key not in known:
            known[key] = self._new_take(label, compiled, grouped)
        return known[key]

    def _new_take(
        self,
        label: TakeLabel,
        compiled: list[tuple[Callable[[Env], bool], ...]],
        grouped: Set[str],
    ) -> CompiledTake:
        variables = self.gpms[label.gpm].variables
        correlation = self.gpms[label.gpm].correlation
        columns = {
            v: i for i, v in enumerate(variables) if correlation is None or i != correlation.event
        }
        return CompiledTake(
            columns,
            tuple((i, v) for v, i in columns.items() if v not in grouped),
            tuple((i, v) for v, i in columns.items() if v in grouped),
            tuple(columns[v] for v in label.key),
            compiled[label.gpm] if label.conditions is None else self._filters(label.conditions),
            self._filters(label.moved),
            tuple(
                zip(
                    [late.occurrence for late in label.late],
                    self._filters([late.condition for late in label.late]),
                    strict=True,
                )
            ),
            self._correlated(label.gpm),
        )

    def _correlated(self, gpm: int) -> CorrelatedTake | None:
        correlation = self.gpms[gpm].correlation
        if correlation is None:
            return None
        assert self.solve is not None
        reads: list[tuple[str, ast.Expr]] = [(v, ast.Var(v)) for v in correlation.reads]
        inputs = [
            (v, compile_term(e, self.expressions)) for v, e in [*reads, *correlation.parameters]
        ]
        return CorrelatedTake(gpm, correlation.event, tuple(inputs), self.solve)


_TABLES = frozenset(f.name for f in fields(Machine) if not f.init)


def _automata(program: Program) -> list[Automaton]:
    todo = [program.automaton, *(n.automaton for n in program.negated), *program.further.values()]
    for automaton in todo:  # grows while it is walked
        for state in automaton.states:
            for edge in state.edges:
                if isinstance(edge.label, BracketLabel):
                    todo.extend(a for a in edge.label.operands if a not in todo)
    return todo
