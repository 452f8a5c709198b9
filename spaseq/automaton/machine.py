"""A program made ready to run in this process: conditions compiled, columns looked up.

Built from the plan wherever it runs; it is not pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spaseq.automaton.nfa import Automaton, Branch, Edge, Program, State, Take
from spaseq.automaton.selection import Strategy
from spaseq.automaton.window import Window
from spaseq.automaton.work import Work
from spaseq.expr.compile import Options, compile_filter
from spaseq.expr.env import Env
from spaseq.expr.uses import timestamp_uses
from spaseq.lang import ast


@dataclass(frozen=True, slots=True)
class GpmColumns:
    """What the automaton knows of a GPM: its variables, in the order of a row's values, the
    FILTERs that look back at earlier steps, and the variables that every solution binds."""

    variables: tuple[str, ...]
    conditions: tuple[ast.Expr, ...] = ()
    certain: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Taking:
    """How a row is taken along one edge."""

    columns: dict[str, int]
    singles: tuple[tuple[int, str], ...]  # (column, variable) joined over the whole match
    groups: tuple[tuple[int, str], ...]  # (column, variable) joined within a repetition
    key: tuple[int, ...]  # columns of the edge's key
    conditions: tuple[Callable[[Env], bool], ...]


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
    key: tuple[str, ...] = ()  # variables by which chain and compact split a partition
    order: tuple[int, ...] | None = None  # in which lazy takes the steps; None: rarest first
    strategy: Strategy = "ALL"  # the selection that the evaluator applies itself
    streams: Sequence[str] = ()  # IRIs, for the positions that a selection compares
    limit: int | None = None  # matches that one instant may emit, if the evaluator sees to it
    limit_key: tuple[str, ...] = ()  # ... for each value of these variables of the key
    work: Work = field(default_factory=Work)  # of registers and lazy, over all partitions
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
                    if isinstance(edge.label, Take):
                        edges.setdefault(edge.label.gpm, []).append(edge)
                        self.takings[edge.id] = self._taking(edge.label, compiled)
        self.edges_of = {g: tuple(es) for g, es in edges.items()}

    def register(self, static: object) -> None:
        """Let snapshots refer to an object by number instead of holding it."""
        number = len(self.statics)
        self.statics[number] = static
        self.numbers[id(static)] = number

    def _taking(self, label: Take, compiled: list[tuple[Callable[[Env], bool], ...]]) -> Taking:
        variables = self.gpms[label.gpm].variables
        columns = {v: i for i, v in enumerate(variables)}
        grouped = {v for v, view in label.views.items() if view.kind == "current"}
        return Taking(
            columns,
            tuple((i, v) for v, i in columns.items() if v not in grouped),
            tuple((i, v) for v, i in columns.items() if v in grouped),
            tuple(columns[v] for v in label.key),
            compiled[label.gpm],
        )


def _automata(program: Program) -> list[Automaton]:
    todo = [program.automaton, *(n.automaton for n in program.negated)]
    for automaton in todo:  # grows while it is walked
        for state in automaton.states:
            for edge in state.edges:
                if isinstance(edge.label, Branch):
                    todo.extend(a for a in edge.label.operands if a not in todo)
    return todo
