"""The graph patterns of a plan, the windows that they stand on, and what is kept between closes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from spaseq.algebra.nodes import Group, Pattern
from spaseq.algebra.translate import Correlation
from spaseq.lang import ast
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.records import record


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

    @property
    def row_variables(self) -> tuple[tuple[str, ...], ...]:
        """The variables of rows, by their numbers; an event without a content's solution has none.

        A content's operands have their numbers last.
        """
        contents = (
            (*content.gpm.variables, *(operand.number for operand in content.operands or ()))
            for content in self.contents
        )
        bare = ((),) * len(self.contents)
        return (*(gpm.variables for gpm in self.gpms), *contents, *bare)

    def number_of(self, content: int, bare: bool = False) -> int:
        """The number in rows of a content, or of the events in which it has no solution."""
        return len(self.gpms) + content + (len(self.contents) if bare else 0)
