"""The physical plan of one query: static and picklable; both stages and both runtimes share it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.algebra.construct import Template
from spaseq.algebra.correlation import Correlation
from spaseq.algebra.groups import constant_text
from spaseq.algebra.nodes import Pattern
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.program.required_gpms import required_gpms, required_steps
from spaseq.automaton.program.window import Window
from spaseq.expr.compile import Options
from spaseq.lang import ast
from spaseq.lang.scope import Scope
from spaseq.lang.sequence import Chain
from spaseq.lang.shapes import Shape, Shaped
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.records import record

EvaluatorName: TypeAlias = Literal[
    "registers",
    "lazy",
    "compact",
    "compiled-registers",
    "compiled-compact",
    "compiled-chain",
]

Strategy: TypeAlias = Literal["ALL", "NEXT", "LAST", "MAX", "STRICT"]


@record
class Identity:
    """The names of a query.

    `title` is the file's stem, which messages use; `register` the IRI of REGISTER STREAM. `name`,
    which answers carry, is `register` if there is one, and `title` otherwise.
    """

    name: str
    title: str
    register: str | None


@record
class Signature:
    """Hashes of a query, each a SHA-256 in hexadecimal.

    The fingerprint is that of the canonical text and of all else that the state depends on: only
    state with an equal one is restored. `canonical` is that of the canonical text alone; ids of
    answers depend on it.
    """

    fingerprint: str
    canonical: str


UNSIGNED = Signature("", "")
"""The signature of a plan that is not complete."""


@record
class Inputs:
    """The streams, graphs and endpoints that a query reads.

    `predicates` has for each stream the predicate IRIs, sorted, of the triples that the readers
    keep; None keeps all triples.
    """

    streams: tuple[str, ...]  # IRIs; SolutionBatch.stream counts these
    stream_names: tuple[str, ...]  # as the query calls them
    kbs: tuple[str, ...]  # graph IRIs of the knowledge base
    services: tuple[str, ...]  # IRIs of the endpoints that stand after SERVICE
    predicates: tuple[tuple[str, ...] | None, ...]


@record
class GpmPlan:
    """One graph-pattern-matching expression.

    `pattern` holds the FILTERs that use only one event. `conditions` are the FILTERs that use
    earlier steps; they become conditions on the automaton's edges. Stage 1 evaluates the core of a
    correlated GPM, and the automaton evaluates its pattern. Stage 1 passes the values of `private`
    variables only if they distinguish solutions of the same event. `awaited` is the GPM in a form
    that queries its endpoints only if a partial match awaits the event.
    """

    name: str
    streams: tuple[int, ...]  # indexes in the plan's streams
    pattern: Pattern
    variables: tuple[str, ...]  # a solution may bind them; sorted; EVENT last if correlated
    certain: frozenset[str]  # variables that every solution binds
    conditions: tuple[ast.Expr, ...] = ()
    negated: bool = False  # used in negated steps only
    correlation: Correlation | None = None  # evaluated where the sequence takes the event
    private: frozenset[str] = frozenset()  # variables that are not used outside the pattern
    awaited: GpmPlan | None = None


@record
class Membership:
    """A GPM's pattern without FILTERs: it decides the partitions of events (docs/language.md,
    Partition).

    An event of its streams is in the partition of each solution that binds all variables of
    PARTITION BY. The sequence need not use the GPM.
    """

    gpm: str
    streams: tuple[int, ...]  # indexes in the plan's streams
    pattern: Pattern


@record
class PatternEvaluation:
    """How stage 1 evaluates graph patterns; all ways give the same solutions.

    With `rare_first` the triple pattern with the fewest matches comes first; with `shared` equal
    triple patterns of several GPMs are evaluated once; with `lazy` OPTIONAL, paths, EXISTS and
    other operands are evaluated only on events whose triple patterns match; with `virtual` triple
    patterns over lifted events are evaluated on the lift's columns, without triples.
    """

    rare_first: bool = False
    shared: bool = False
    lazy: bool = False
    virtual: bool = False


FASTEST = PatternEvaluation(rare_first=True, shared=True, lazy=True, virtual=True)


@record
class PatternPlan:
    """Stage 1: the GPMs, which SolutionBatch.gpm counts, and the columns that it hands on.

    `memberships` is empty if stage 1 need not know the partitions of all events.
    """

    gpms: tuple[GpmPlan, ...]
    columns: SolutionColumns
    memberships: tuple[Membership, ...] = ()
    evaluation: PatternEvaluation = PatternEvaluation()


@record
class EvaluatorChoice:
    """The evaluator of a sequence.

    An evaluator of sets splits a partition by the variables of `key`. `asked` says that the caller
    chose, not the planner. `order` is for tests: the lazy evaluator takes the steps in this order,
    not the rarest first.
    """

    name: EvaluatorName
    reason: str
    key: tuple[str, ...] = ()
    asked: bool = False
    order: tuple[int, ...] | None = None


@record
class StageKey:
    """The variables by whose values stage 2 may be split; None: it is one partition."""

    variables: tuple[str, ...] | None
    reason: str


@record
class SequencePlan:
    """Stage 2: the sequence as written and as an automaton, and the automaton's evaluator.

    With `needs_instants` stage 2 also gets the events without solutions.
    """

    chain: Chain
    scope: Scope
    program: Program
    window: Window
    partition: tuple[str, ...]  # variables of PARTITION BY
    key: StageKey
    needs_instants: bool
    evaluator: EvaluatorChoice


@record
class ProjectedVariable:
    """One projected variable; `expr` None is the variable itself."""

    name: str
    expr: ast.Expr | None = None


@record
class AfterMatch:
    """The after-match skip; `gpm` for TO FIRST and TO LAST."""

    kind: Literal["NO SKIP", "CONSUME", "TO NEXT EVENT", "PAST LAST EVENT", "TO FIRST", "TO LAST"]
    gpm: str | None = None


@record
class AnswerPlan:
    """From matches to answers. A query with a CONSTRUCT template has no projection."""

    projection: tuple[ProjectedVariable, ...]
    distinct: bool
    strategy: Strategy
    after_match: AfterMatch
    having: ast.Expr | None
    template: Template | None


@record
class QueryPlan:
    """A query, ready to run.

    `expressions` is the context of the query's expressions: the base IRI, the time of NOW(), the
    group variables, the extension functions and the schema of entailment. `disabled` names the
    rules that were left out. `levels` are empty unless partial matches are asked for. A query of a
    run with several has its text as `shaped`, if others may differ from it in constants only; it
    `is_member` if it runs together with them. A query that fits a template (`MemberPlan`) makes its
    constants anew whenever somebody reads `shaped`.
    """

    identity: Identity
    inputs: Inputs
    patterns: PatternPlan
    sequence: SequencePlan
    answers: AnswerPlan
    expressions: Options
    disabled: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    shaped: Shaped | None = None
    is_member: bool = False
    signature: Signature = UNSIGNED

    @property
    def shape(self) -> Shape | None:
        """The query without the constants that others of its family may differ in."""
        return None if self.shaped is None else self.shaped.shape

    @property
    def constant_texts(self) -> tuple[str, ...]:
        """The canonical N-Triples texts of the constants of a query that has a shape."""
        assert self.shaped is not None
        return tuple(map(constant_text, self.shaped.constants))

    @property
    def evaluator(self) -> EvaluatorName:
        """The evaluator of the sequence."""
        return self.sequence.evaluator.name

    @property
    def required_gpms(self) -> tuple[int, ...]:
        """The GPMs (indexes, ascending) of which every match has a solution."""
        required = required_gpms(self.sequence.chain)
        return tuple(i for i, gpm in enumerate(self.patterns.gpms) if gpm.name in required)

    @property
    def required_steps(self) -> tuple[int, ...]:
        """GPMs (indexes) of which every match has solutions, each at a later instant."""
        numbers = {gpm.name: i for i, gpm in enumerate(self.patterns.gpms)}
        return tuple(numbers[name] for name in required_steps(self.sequence.chain))

    def with_identity(self, identity: Identity) -> QueryPlan:
        """The plan under other names."""
        return replace(self, identity=identity)

    def without_shape(self) -> QueryPlan:
        """The plan without what only the planner reads: workers get less."""
        return replace(self, shaped=None)


@record
class Level:
    """The first steps of a sequence as a query, and the GPM names that the next step begins with.

    A match of a level is a match of the whole sequence, or a part of one.
    """

    plan: QueryPlan
    waiting: tuple[str, ...]
