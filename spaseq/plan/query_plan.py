"""The physical plan of one query: static and picklable; both stages and both runtimes share it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.algebra.construct import Template
from spaseq.algebra.nodes import Group, Pattern
from spaseq.algebra.translate import Correlation
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
from spaseq.plan.signatures import UNSIGNED, Signature
from spaseq.plan.split_patterns import SplitPattern
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.records import record

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
class PanesExtent:
    """Windows that close at origin + i * slide, for every integer i (ms)."""

    range_ms: int
    slide_ms: int
    origin_ms: int


@record
class EachEventExtent:
    """Windows that end with each event: by time (ms) or by a number of events."""

    range_ms: int | None
    events: int | None


@record
class SessionExtent:
    """Events that are less than the gap apart (ms)."""

    gap_ms: int


Extent: TypeAlias = PanesExtent | EachEventExtent | SessionExtent


@record
class WindowPlan:
    """A window. `held` describes the events that stage 2 keeps to evaluate GPMs at its closes.

    `content` is its index in the plan's contents, None if stage 2 keeps the content of all GPMs on
    the window.
    """

    name: str
    streams: tuple[int, ...]  # indexes in the plan's streams
    extent: Extent
    held: ContentPlan
    content: int | None


@record
class WindowSource:
    """A window that a GPM stands on (an index), or the changes between two of its events."""

    window: int
    change: Literal["NEW", "GONE"] | None = None


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
    windows: tuple[WindowSource, ...] = ()
    needed: tuple[str, ...] = ()  # substituted on each window event: PARTITION BY's, and NOW

    @property
    def core(self) -> Pattern:
        """The pattern that stage 1 evaluates."""
        return self.pattern if self.correlation is None else self.correlation.core


@record
class Operand:
    """An operand of aggregates in kept groups: the values of a variable.

    Rows have the `number`, and the `text` only where the number does not determine the term. With
    `needs_text` a double has its text, too, unless that is known to be canonical.
    """

    variable: str
    number: str  # variables of the columns
    text: str
    needs_text: bool


@record
class ContentPlan:
    """The content of windows that stage 1 passes on: triples of events with some predicates.

    `gpm` is the pattern of KEY; its solutions give the partitions of an event. `predicates` are
    N-Triples texts; None for all. `counted` are the streams (indexes) with other readers than
    windows.

    With `operands` it has the input of groups and joins: all solutions of the pattern inside EVENT,
    and a bare row for each event without one (`PatternPlan.number_of`).
    """

    gpm: GpmPlan
    predicates: tuple[str, ...] | None
    counted: tuple[int, ...]
    operands: tuple[Operand, ...] | None = None


@record
class KeptGroups:
    """Groups of a GPM that stage 2 keeps from one window event to the next.

    `group` is the part of the GPM's pattern whose solutions they are. `columns` are the variables
    of the content that have the values of its keys. `operands` has an index in the content's
    operands for each aggregate, None for a count of rows. Only events of `stream` (an index) count,
    if it is given. If the order of rows matters, the rows of an event are sorted by the texts of
    the columns `order`.
    """

    gpm: int
    content: int
    group: Group
    columns: tuple[str, ...]
    operands: tuple[int | None, ...]
    stream: int | None = None
    order: tuple[str, ...] = ()

    @property
    def contents(self) -> tuple[int, ...]:
        """The indexes of the contents from which stage 2 makes them."""
        return (self.content,)


@record
class JoinedPart:
    """A part of a join across the events of a window: the solutions of a content (an index).

    Only events of `stream` (an index) count, if it is given.
    """

    content: int
    stream: int | None = None


@record
class JoinEdge:
    """Two parts of a join, by index, and the variables that they have in common."""

    first: int
    second: int
    variables: tuple[str, ...]


@record
class KeptJoin:
    """A join of a GPM that stage 2 keeps from one window event to the next.

    The edges make a tree of the parts. `variables` are the columns of the join, each with the part
    (an index) that binds it. `pattern` is the GPM's, in which `joined` replaces the parts.
    """

    gpm: int
    parts: tuple[JoinedPart, ...]
    edges: tuple[JoinEdge, ...]
    variables: tuple[tuple[str, int], ...]
    pattern: Pattern
    joined: Pattern

    @property
    def contents(self) -> tuple[int, ...]:
        """The indexes of the contents from which stage 2 makes it."""
        return tuple(dict.fromkeys(part.content for part in self.parts))


@record
class Membership:
    """A GPM's pattern without FILTERs: it decides the partitions of events (docs/meaning.md,
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
    patterns over lifted events are evaluated on the lift's columns, without triples; with `places`
    FILTERs that compare an event's place with places of the KB use a spatial index.
    """

    rare_first: bool = False
    shared: bool = False
    lazy: bool = False
    virtual: bool = False
    places: bool = False


FASTEST = PatternEvaluation(rare_first=True, shared=True, lazy=True, virtual=True, places=True)


@record
class PatternPlan:
    """Stage 1: the GPMs, numbered by SolutionBatch.gpm, and the columns of its solutions.

    `memberships` is empty if stage 1 does not need the partitions of all events.
    """

    gpms: tuple[GpmPlan, ...]
    columns: SolutionColumns
    memberships: tuple[Membership, ...] = ()
    evaluation: PatternEvaluation = PatternEvaluation()
    contents: tuple[ContentPlan, ...] = ()
    kept: tuple[KeptGroups | KeptJoin, ...] = ()

    @property
    def evaluated(self) -> tuple[GpmPlan, ...]:
        """The GPMs, then the contents of windows, in the order of their numbers in rows."""
        return (*self.gpms, *(content.gpm for content in self.contents))

    def number_of(self, content: int, bare: bool = False) -> int:
        """The number in rows of a content, or of the events in which it has no solution."""
        return len(self.gpms) + content + (len(self.contents) if bare else 0)


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
