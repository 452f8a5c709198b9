"""The physical plan of one query: static and picklable; both stages and both runtimes share it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.algebra.construct import Template
from spaseq.algebra.nodes import Pattern
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.program.outer_steps import events_of_each_match, required_gpms
from spaseq.automaton.program.window import Window
from spaseq.expr.compile import Options
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.scope import Scope
from spaseq.lang.sequence import Chain
from spaseq.lang.shapes import Shape, Shaped
from spaseq.lang.variables import is_made
from spaseq.plan.pattern_plan import GpmPlan, PatternPlan, WindowPlan
from spaseq.plan.signatures import UNSIGNED, Signature
from spaseq.plan.split_patterns import SplitPattern
from spaseq.rdf.schema import Schema
from spaseq.records import record


@record
class CompileOptions:
    """How a query is compiled.

    `file` is the file name in findings. Tests use `evaluator` to force one. `schema` is the schema
    of entailment. `disable` names rules of the planner (`spaseq.plan.rules`) to leave out. `pushed`
    says that events come one by one. With `partial` the plan has the levels that partial matches
    need. `several` says that the query runs beside others.
    """

    file: str | None = None
    evaluator: str | None = None
    schema: Schema | None = None
    disable: Iterable[str] = ()
    pushed: bool = False
    partial: bool = False
    several: bool = False


AS_USUAL = CompileOptions()


EvaluatorName: TypeAlias = Literal[
    "registers",
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
class Inputs:
    """The streams, windows, graphs and endpoints that a query reads.

    `predicates` has for each stream the predicate IRIs, sorted, of the triples that the readers
    keep; None keeps all triples.
    """

    streams: tuple[str, ...]  # IRIs; SolutionBatch.stream counts these
    stream_names: tuple[str, ...]  # the query's names for them
    kbs: tuple[str, ...]  # graph IRIs of the knowledge base
    services: tuple[str, ...]  # IRIs of the endpoints that stand after SERVICE
    predicates: tuple[tuple[str, ...] | None, ...]
    windows: tuple[WindowPlan, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The IRIs of the streams and the names of the windows, which solutions count."""
        return (*self.streams, *(window.name for window in self.windows))


@record
class EvaluatorChoice:
    """The evaluator of a sequence.

    An evaluator of sets splits a partition by the variables of `key`. `asked` says that the caller
    chose it, not the planner.
    """

    name: EvaluatorName
    reason: str
    key: tuple[str, ...] = ()
    asked: bool = False


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

    @property
    def own_key(self) -> tuple[str, ...]:
        """The variables of `key` that are none of PARTITION BY's."""
        return tuple(v for v in self.key.variables or () if v not in self.partition)

    @property
    def own_partition(self) -> tuple[str, ...]:
        """The variables of PARTITION BY as written: without the number of a family's member."""
        return tuple(v for v in self.partition if not is_made(v))


@record
class ProjectedVariable:
    """One projected variable; `expr` None is the variable itself."""

    name: str
    expr: ast.Expr | None = None


@record
class ComputedVariable:
    """A variable of a GPM that is computed of each match in which the GPM has an event.

    With `each` it is a group variable: it has a value for each of these events, with the values
    that these group variables have at it.
    """

    name: str
    gpm: str
    expr: ast.Expr
    each: tuple[str, ...] | None = None


@record
class AfterMatch:
    """The after-match skip; `gpm` for TO FIRST and TO LAST.

    A kept answer drops the answers that end less than `mute_ms` after it.
    """

    kind: Literal["NO SKIP", "CONSUME", "TO NEXT EVENT", "PAST LAST EVENT", "TO FIRST", "TO LAST"]
    gpm: str | None = None
    mute_ms: int = 0

    @property
    def keeps_all(self) -> bool:
        """Whether no answer forbids or mutes another."""
        return self.kind == "NO SKIP" and not self.mute_ms


@record
class AnswerPlan:
    """From matches to answers. A query with a CONSTRUCT template has no projection.

    `computed` are the variables of BINDs that stage 1 leaves out.
    """

    projection: tuple[ProjectedVariable, ...]
    distinct: bool
    strategy: Strategy
    after_match: AfterMatch
    having: ast.Expr | None
    template: Template | None
    computed: tuple[ComputedVariable, ...] = ()


@record
class ChangingGraphs:
    """The graphs of the knowledge base that change while a query runs.

    Attributes:
        graphs: their IRIs.
        makers: for each of the query's last streams the graph whose changes it brings.
        candidates: for each GPM a pattern that matches every event on which the GPM may match.
        splits: the GPMs, split into the candidates and the joins with them; None if that is
            impossible.
        every_event: whether events without a candidate matter, too.
        by_windows: whether only GPMs on windows read them, so that stage 1 matches events.
    """

    graphs: tuple[str, ...]
    makers: tuple[str, ...]
    candidates: tuple[Pattern, ...]
    splits: tuple[SplitPattern, ...] | None
    every_event: bool
    by_windows: bool


@record
class QueryPlan:
    """A query, ready to run.

    `expressions` is the context of the query's expressions: the base IRI, the time of NOW(), the
    group variables, the extension functions and the schema of entailment. `disabled` names the
    rules that were left out. `levels` are empty without partial matches. In a run of several,
    `shaped` is the query's text, if others may differ from it in constants only; the query
    `is_member` if it runs together with them. For a query that fits a template (`MemberPlan`),
    `shaped` is computed at each reading.
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
    changing: ChangingGraphs | None = None

    @property
    def maintained(self) -> str | None:
        """The IRI of the graph that the query maintains, if any."""
        return None if self.answers.template is None else self.answers.template.graph

    @property
    def outer_streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that the query names."""
        streams, changing = self.inputs.streams, self.changing
        return streams if changing is None else streams[: len(streams) - len(changing.makers)]

    @property
    def made(self) -> str | None:
        """The IRI of the stream that the query registers, or of the graph that it maintains."""
        return self.maintained or self.identity.register

    @property
    def keeps_all_matches(self) -> bool:
        """Whether the selection strategy keeps every match; for MAX, whether no match contains
        another.
        """
        strategy = self.answers.strategy
        if strategy == "MAX":
            return events_of_each_match(self.sequence.program) is not None
        return strategy == "ALL"

    @property
    def is_stateless(self) -> bool:
        """Whether the solutions of the GPMs depend on the event and the knowledge base alone."""
        shared = self.patterns.evaluation.shared
        return shared and not self.sequence.needs_instants and not self.inputs.services

    @property
    def is_matched_at_once(self) -> bool:
        """Whether events are matched with changing graphs before the sequence takes them.

        Windows and correlated GPMs need the graphs at the time when the sequence takes them.
        """
        correlated = any(gpm.correlation is not None for gpm in self.patterns.gpms)
        return self.changing is not None and not self.inputs.windows and not correlated

    @property
    def shape(self) -> Shape | None:
        """The query without the constants that others of its family may differ in."""
        return None if self.shaped is None else self.shaped.shape

    def sources_of(self, gpm: GpmPlan) -> tuple[str, ...]:
        """The names of the streams and windows of a GPM, as in the query."""
        inputs = self.inputs
        streams = (inputs.stream_names[stream] for stream in gpm.streams)
        windows = ((own.change, inputs.windows[own.window].name) for own in gpm.windows)
        return (*streams, *(" ".join(filter(None, own)) for own in windows))

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

    def with_identity(self, identity: Identity) -> QueryPlan:
        """The plan under other names."""
        return replace(self, identity=identity)

    def without_shape(self) -> QueryPlan:
        """The plan without the parts that only the planner reads; workers get this."""
        return replace(self, shaped=None)


@record
class Level:
    """The first steps of a sequence as a query, and the GPM names of the next step.

    A match of a level is a match of the whole sequence, or a part of one.
    """

    plan: QueryPlan
    waiting: tuple[str, ...]
