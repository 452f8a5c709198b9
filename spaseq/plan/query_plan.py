"""The physical plan of one query: static, picklable, shared by both stages and both runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spaseq.algebra.construct import Template
from spaseq.algebra.correlation import Correlation
from spaseq.algebra.nodes import Pattern
from spaseq.algebra.schema import Schema
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.program.window import Window
from spaseq.expr.compile import Options
from spaseq.expr.extension import Function
from spaseq.lang import ast
from spaseq.plan.rules import Rule
from spaseq.rdf.columns.solution_batch import SolutionColumns

EvaluatorName: TypeAlias = Literal[
    "registers",
    "lazy",
    "compact",
    "compiled-registers",
    "compiled-compact",
    "compiled-chain",
]


@dataclass(frozen=True, slots=True)
class GpmPlan:
    """One graph-pattern-matching expression.

    `pattern` holds the FILTERs that concern one event only; `conditions` those that look back at
    earlier steps, which become conditions on the automaton's edges. `membership` is the pattern
    with every FILTER left out, which decides an event's partitions (None: not needed). Stage 1
    evaluates the core of a correlated GPM, and the automaton its pattern. The values of `private`
    variables are handed on only where they tell solutions of one event apart.
    """

    name: str
    streams: tuple[int, ...]  # indexes in the plan's streams
    pattern: Pattern
    variables: tuple[str, ...]  # those a solution may bind, sorted; of a correlated GPM, EVENT last
    certain: frozenset[str]  # those every solution binds
    conditions: tuple[ast.Expr, ...] = ()
    membership: Pattern | None = None
    negated: bool = False  # used in negated steps only
    correlation: Correlation | None = None  # evaluated where the sequence takes the event
    private: frozenset[str] = frozenset()  # variables that nothing outside the pattern looks at


@dataclass(frozen=True, slots=True)
class ProjectedVariable:
    """One projected variable; `expr` None is the variable itself."""

    name: str
    expr: ast.Expr | None = None


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """The after-match skip; `gpm` for TO FIRST and TO LAST."""

    kind: Literal["NO SKIP", "CONSUME", "TO NEXT EVENT", "PAST LAST EVENT", "TO FIRST", "TO LAST"]
    gpm: str | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """Everything that is known of a query before it runs."""

    name: str  # of its answers: the REGISTER STREAM IRI, or the file's stem
    streams: tuple[str, ...]  # IRIs; SolutionBatch.stream counts these
    stream_names: tuple[str, ...]  # as the query calls them
    kbs: tuple[str, ...]  # graph IRIs the query names
    gpms: tuple[GpmPlan, ...]  # SolutionBatch.gpm counts these
    variables: tuple[str, ...]  # columns of SolutionBatch, sorted
    numbers: tuple[str, ...]  # those that conditions between steps read, sorted
    partition: tuple[str, ...]
    key: tuple[str, ...] | None  # stage 2 may be split by these; None: one partition
    key_reason: str  # why that key, or why none
    needs_instants: bool  # stage 2 also needs the events without solutions
    program: Program
    window: Window
    projection: tuple[ProjectedVariable, ...]
    distinct: bool
    strategy: Literal["ALL", "NEXT", "LAST", "MAX", "STRICT"]
    after_match: AfterMatch
    having: ast.Expr | None
    base: str | None  # base IRI of the query
    now_ms: int  # what NOW() is, everywhere in the run
    fingerprint: str  # hash of the query's canonical text and of the state format
    title: str = ""  # what messages call the query: the file's stem
    register: str | None = None  # IRI of REGISTER STREAM
    template: Template | None = None  # of CONSTRUCT; the projection is empty then
    evaluator: EvaluatorName = "registers"
    evaluator_reason: str = ""
    evaluator_key: tuple[str, ...] = ()  # evaluators of sets split a partition by these
    functions: tuple[Function, ...] = ()  # extension functions that the query calls
    services: tuple[str, ...] = ()  # IRIs of the endpoints that the query names after SERVICE
    schema: Schema | None = None  # patterns have been rewritten with it, but for those of EXISTS
    disabled: frozenset[Rule] = frozenset()  # rules that are switched off
    evaluator_order: tuple[int, ...] | None = None  # lazy takes the steps so, not the rarest first

    @property
    def columns(self) -> SolutionColumns:
        """The columns that stage 1 hands on."""
        return SolutionColumns(self.variables, self.numbers)

    @property
    def expressions(self) -> Options:
        """What the query's expressions take from the query around them."""
        groups = frozenset(self.program.owner)
        return Options(None, self.base, self.now_ms, groups, self.functions, self.schema)
