"""A program made ready to run in this process: conditions compiled, columns looked up.

Built from the plan wherever it runs; it is not pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Program, State, TakeLabel
from spaseq.automaton.program.selection import Strategy
from spaseq.automaton.program.window import Window
from spaseq.automaton.run.runs import Values
from spaseq.automaton.run.work_counts import WorkCounts
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.env import Env
from spaseq.expr.uses import timestamp_uses
from spaseq.lang import ast

CorrelatedSolver: TypeAlias = Callable[[int, str, tuple[tuple[str, str], ...]], Sequence[Values]]
"""The solutions of a GPM (its index) on an event (as EVENT holds it) with values substituted."""


@dataclass(frozen=True, slots=True)
class CorrelatedColumns:
    """Of a GPM that is evaluated when its event is taken: the column that holds the event, the
    variables whose values are substituted, and what else is, by variable."""

    event: int
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, ast.Expr], ...]


@dataclass(frozen=True, slots=True)
class GpmColumns:
    """What the automaton knows of a GPM: its variables, in the order of a row's values, the
    FILTERs that look back at earlier steps, and the variables that every solution binds."""

    variables: tuple[str, ...]
    conditions: tuple[ast.Expr, ...] = ()
    certain: frozenset[str] = frozenset()
    correlation: CorrelatedColumns | None = None


@dataclass(frozen=True, slots=True)
class CorrelatedTaking:
    """What is substituted when an event is taken, and the solver that gives the rows then."""

    gpm: int
    event: int  # column
    inputs: tuple[tuple[str, Callable[[Env], str | None]], ...]
    solve: CorrelatedSolver

    def solutions(self, values: Values, env: Env) -> Iterator[Values]:
        """The values of the rows that a row of the core stands for; `env` knows earlier bindings
        only."""
        event = values[self.event]
        assert event is not None
        known = ((name, term(env)) for name, term in self.inputs)
        for found in self.solve(self.gpm, event, tuple((n, t) for n, t in known if t is not None)):
            agree = zip(values, found, strict=True)
            if all(a is None or i == self.event or a == b for i, (a, b) in enumerate(agree)):
                yield found


@dataclass(frozen=True, slots=True)
class Taking:
    """How a row is taken along one edge."""

    columns: dict[str, int]
    singles: tuple[tuple[int, str], ...]  # (column, variable) joined over the whole match
    groups: tuple[tuple[int, str], ...]  # (column, variable) joined within a repetition
    key: tuple[int, ...]  # columns of the edge's key
    conditions: tuple[Callable[[Env], bool], ...]
    correlation: CorrelatedTaking | None = None


@dataclass(slots=True)
class Machine:
    """The program, its window, and tables over its edges."""

    program: Program
    window: Window
    gpms: Sequence[GpmColumns]
    names: Sequence[str]  # GPM names
    keep_instants: bool = False  # the selection strategy asks which instants are consecutive
    expressions: Options = Options()  # noqa: RUF009 - frozen
    evaluator: str = "registers"
    partition: tuple[str, ...] = ()  # variables
    key: tuple[str, ...] = ()  # variables by which chain and compact split a partition
    order: tuple[int, ...] | None = None  # in which lazy takes the steps; None: rarest first
    strategy: Strategy = "ALL"  # the selection that the evaluator applies itself
    streams: Sequence[str] = ()  # IRIs, for the positions that a selection compares
    limit: int | None = None  # matches that one instant may emit, if the evaluator sees to it
    limit_key: tuple[str, ...] = ()  # ... for each value of these variables of the key
    work: WorkCounts = field(
        default_factory=WorkCounts
    )  # of registers and lazy, over all partitions
    solve: CorrelatedSolver | None = None  # needed where a GPM is correlated
    takings: dict[int, Taking] = field(init=False)
    edges_of: dict[int, tuple[Edge, ...]] = field(init=False)  # GPM -> edges that take it
    target: dict[int, State] = field(init=False)  # edge -> the state it leads to
    timed: frozenset[str] = field(init=False)  # GPMs whose TIMESTAMP some FILTER asks for
    statics: dict[int, object] = field(init=False)  # objects a snapshot refers to by number
    numbers: dict[int, int] = field(init=False)  # id(object) -> its number

    def __post_init__(self) -> None:
        self.takings, self.target, self.statics, self.numbers = {}, {}, {}, {}
        self.timed = frozenset().union(
            *(timestamp_uses(c) for g in self.gpms for c in g.conditions)
        )
        compiled = [
            tuple(compile_filter(c, self.expressions) for c in g.conditions) for g in self.gpms
        ]
        edges: dict[int, list[Edge]] = {}
        for automaton in _automata(self.program):
            self.register(automaton)
            for state in automaton.states:
                self.register(state)
                for edge in state.edges:
                    self.register(edge)
                    self.target[edge.id] = automaton.states[edge.target]
                    if isinstance(edge.label, TakeLabel):
                        edges.setdefault(edge.label.gpm, []).append(edge)
                        self.takings[edge.id] = self._taking(edge.label, compiled)
        self.edges_of = {g: tuple(es) for g, es in edges.items()}

    def register(self, static: object) -> None:
        """Let snapshots refer to an object by number instead of holding it."""
        number = len(self.statics)
        self.statics[number] = static
        self.numbers[id(static)] = number

    def _taking(
        self, label: TakeLabel, compiled: list[tuple[Callable[[Env], bool], ...]]
    ) -> Taking:
        variables = self.gpms[label.gpm].variables
        correlation = self.gpms[label.gpm].correlation
        columns = {
            v: i for i, v in enumerate(variables) if correlation is None or i != correlation.event
        }
        grouped = {v for v, view in label.views.items() if view.kind == "current"}
        return Taking(
            columns,
            tuple((i, v) for v, i in columns.items() if v not in grouped),
            tuple((i, v) for v, i in columns.items() if v in grouped),
            tuple(columns[v] for v in label.key),
            compiled[label.gpm],
            self._correlated(label.gpm),
        )

    def _correlated(self, gpm: int) -> CorrelatedTaking | None:
        correlation = self.gpms[gpm].correlation
        if correlation is None:
            return None
        assert self.solve is not None
        reads: list[tuple[str, ast.Expr]] = [(v, ast.Var(v)) for v in correlation.reads]
        inputs = [
            (v, compile_term(e, self.expressions)) for v, e in [*reads, *correlation.parameters]
        ]
        return CorrelatedTaking(gpm, correlation.event, tuple(inputs), self.solve)


def _automata(program: Program) -> list[Automaton]:
    todo = [program.automaton, *(n.automaton for n in program.negated)]
    for automaton in todo:  # grows while it is walked
        for state in automaton.states:
            for edge in state.edges:
                if isinstance(edge.label, BracketLabel):
                    todo.extend(a for a in edge.label.operands if a not in todo)
    return todo
